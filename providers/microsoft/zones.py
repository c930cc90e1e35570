"""Windows and IANA zone names, in both directions."""

from __future__ import annotations

from functools import lru_cache

from tzlocal.windows_tz import tz_win, win_tz

from scheduling.windows import zone_exists

# Names written by Exchange that no table has. "Customized Time Zone" and "tzone://Microsoft/Custom" are
# left out: their offsets are not defined anywhere.
_TO_IANA = {
    "tzone://microsoft/utc": "UTC",
    "coordinated universal time": "UTC",
    "utc": "UTC",
    "gmt": "UTC",
    "z": "UTC",
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
