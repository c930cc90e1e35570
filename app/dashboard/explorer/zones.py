"""The time zones of people, where their clocks differ from the picture's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import NamedTuple
from zoneinfo import ZoneInfo

from app.availability import connections
from app.dashboard.explorer.svg import ShownDay, clock_of
from app.http.authentication import authentication
from scheduling.windows import zone_exists
from store.sql.queries.connection_rows import ConnectionRef

# Cities with another name in zones that providers still send: CLDR names zones by their first name.
# https://www.unicode.org/reports/tr35/#Time_Zone_Identifiers
_RENAMED = {
    "Calcutta": "Kolkata",
    "Godthab": "Nuuk",
    "Katmandu": "Kathmandu",
    "Kiev": "Kyiv",
    "Rangoon": "Yangon",
    "Saigon": "Ho Chi Minh City",
}

MINUS, SPACE = "\N{MINUS SIGN}", "\N{NO-BREAK SPACE}"


class PersonZone(NamedTuple):
    """A zone beside a name: ``city`` and ``difference`` are shown, ``words`` is read aloud.

    ``difference`` is ``-6 h`` with a minus sign, ``words`` is ``6 hours behind``, ``clock`` the present local
    time. If clocks change within the days shown, both name each difference.
    """

    name: str
    city: str
    difference: str
    words: str
    clock: str


def of_users(
    people: Mapping[str, Sequence[ConnectionRef]],
    zone: ZoneInfo,
    days: Sequence[ShownDay],
    now: int,
    stated: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, PersonZone]:
    """The zones of those users whose clocks differ from ``zone`` in the days shown; ``now`` in milliseconds.

    ``people`` has the connections of each user, ``stated`` the zones of profiles. Users without a known zone
    are absent.
    """
    # The first read of a personal connection stores its main calendar and zone.
    unknown = [ref for refs in people.values() for ref in refs if not connections.is_identified(ref)]
    found = connections.identified(authentication(), unknown) if unknown else {}
    known = {user: [found.get(ref.id, ref) for ref in refs] for user, refs in people.items()}
    stored = {user: name for user, refs in known.items() if (name := _zone_of(refs)) is not None}
    return _differing({**stored, **stated}, zone, days, now)


def _zone_of(connections: Sequence[ConnectionRef]) -> str | None:
    """The zone of the first live connection that has one."""
    return next((each.time_zone for each in connections if each.alive and each.time_zone), None)


def _differing(
    stored: Mapping[str, str], zone: ZoneInfo, days: Sequence[ShownDay], now: int
) -> dict[str, PersonZone]:
    # Many people share few zones.
    zones = {name: person_zone(name, zone, days, now) for name in set(stored.values())}
    return {user: found for user, name in stored.items() if (found := zones[name]) is not None}


def person_zone(name: str, zone: ZoneInfo, days: Sequence[ShownDay], now: int) -> PersonZone | None:
    """How the clock of the zone ``name`` differs from that of ``zone``; None if it does not, or is unknown.

    Zones with equal clocks on these days count as one: many have two names, such as Asia/Kolkata.
    """
    # The worker that stored the name may have had other time zone data.
    if not zone_exists(name):
        return None
    other = ZoneInfo(name)
    moments = (at for day in days for at in (day.start, day.end - 1))
    differences = list(dict.fromkeys(_minutes(other, at) - _minutes(zone, at) for at in moments))
    if not any(differences):
        return None
    city = name.rpartition("/")[2].replace("_", " ")
    return PersonZone(
        name,
        # The signs of zones such as Etc/GMT+5 are reversed, so only the last part would mislead.
        name if name.startswith("Etc/") else _RENAMED.get(city, city),
        ", then ".join(map(_signed, differences)),
        ", then ".join(map(_worded, differences)),
        clock_of(other, now),
    )


def _minutes(zone: ZoneInfo, at: int) -> int:
    """The offset of a zone from UTC, in minutes."""
    offset = datetime.fromtimestamp(at / 1000, UTC).astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds() / 60)


def _signed(difference: int) -> str:
    hours, minutes = divmod(abs(difference), 60)
    sign = MINUS if difference < 0 else "+" if difference else ""
    return f"{sign}{hours}:{minutes:02d}{SPACE}h" if minutes else f"{sign}{hours}{SPACE}h"


def _worded(difference: int) -> str:
    if not difference:
        return "the same time"
    parts = zip(divmod(abs(difference), 60), ("hour", "minute"), strict=True)
    amount = " ".join(f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in parts if count)
    return f"{amount} {'behind' if difference < 0 else 'ahead'}"
