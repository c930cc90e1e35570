"""Names of time zones: IANA's and Windows', in both directions, and the several names of one IANA zone.

tzlocal has the table of the Unicode CLDR (``windowsZones.xml``). Its release 5.4.5 is of October 2026; a new
one follows each change of the CLDR.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from functools import cache, lru_cache
from importlib.resources import files

from tzlocal.windows_tz import tz_win, win_tz

from scheduling.windows import zone_exists

# Names that the CLDR leaves out. Exchange writes the first ones. Windows has dropped or renamed the others,
# and mailboxes keep them. "Customized Time Zone" and "tzone://Microsoft/Custom" are no zones: their offsets
# are not defined anywhere.
_TO_IANA = {
    "tzone://microsoft/utc": "UTC",
    "coordinated universal time": "UTC",
    "utc": "UTC",
    "gmt": "UTC",
    "z": "UTC",
    "armenian standard time": "Asia/Yerevan",
    "kamchatka standard time": "Asia/Kamchatka",
    "mexico standard time": "America/Mexico_City",
    "mexico standard time 2": "America/Chihuahua",
    # UTC-2 all year. Windows moved its clock in summer, where no place does.
    "mid-atlantic standard time": "Etc/GMT+2",
}

# Missing entries of tzlocal's table in the other direction.
_TO_WINDOWS = {
    "GMT": "UTC",
    "Antarctica/Troll": "Greenwich Standard Time",
    "EST5EDT": "Eastern Standard Time",
    "CST6CDT": "Central Standard Time",
    "MST7MDT": "Mountain Standard Time",
    "PST8PDT": "Pacific Standard Time",
    "Europe/Uzhgorod": "FLE Standard Time",
    "Europe/Zaporozhye": "FLE Standard Time",
    "US/East-Indiana": "US Eastern Standard Time",
}

_WINDOWS = {name.lower(): zone for name, zone in win_tz.items()}


@lru_cache(maxsize=1024)
def iana_zone(name: str) -> str | None:
    """The IANA zone for a Windows name, in any case, or an IANA name; None when unknown.

    The zone is one that ``zoneinfo`` can load.
    """
    folded = name.strip().lower()
    zone = _TO_IANA.get(folded) or _WINDOWS.get(folded) or name.strip()
    if zone == "Etc/UTC":
        zone = "UTC"
    return zone if zone_exists(zone) else None


def windows_zone(iana: str) -> str | None:
    """The Windows name of an IANA zone, None when it has none."""
    return _TO_WINDOWS.get(iana) or tz_win.get(iana)


def renamed_zone(iana: str) -> str | None:
    """Another name of the same IANA zone, None when it has none: ``Europe/Kiev`` for ``Europe/Kyiv``.

    A database that is older than ours knows only the older name, a stricter one only the newer.
    """
    names = _links().get(iana, ())
    return max(names, key=lambda name: SequenceMatcher(None, name, iana).ratio(), default=None)


@cache
def _links() -> dict[str, list[str]]:
    """The names that each name of the IANA database is linked with, in either direction."""
    names: dict[str, list[str]] = {}
    for line in files("tzdata").joinpath("zoneinfo", "tzdata.zi").read_text("ascii").splitlines():
        if line.startswith("L "):
            _, zone, link = line.split()
            names.setdefault(link, []).append(zone)
            names.setdefault(zone, []).append(link)
    return names
