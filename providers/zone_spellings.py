"""The spellings of an event's zone that a write tries, for a provider that does not know the first one.

Providers' databases of zones are of different ages: one knows ``Europe/Kyiv``, another only ``Europe/Kiev``
or Windows' ``FLE Standard Time``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from providers.errors import ZoneRefused
from scheduling.zones import iana_zone

Json = dict[str, Any]

_EDGES = ("start", "end")


def write_with_known_zone(
    body: Json | None, other_name: Callable[[str], str | None], write: Callable[[Json | None], Json]
) -> Json:
    """The answer to ``write``: with the body, else with other names of its zones, else with times in UTC.

    :raise ZoneRefused: when the provider refuses every spelling
    """
    for spelling in _spellings(body, other_name):
        try:
            return write(spelling)
        except ZoneRefused as error:
            refused = error
    raise refused


def _spellings(body: Json | None, other_name: Callable[[str], str | None]) -> Iterator[Json | None]:
    yield body
    zones = {name: edge["timeZone"] for name, edge in _edges(body).items() if edge.get("timeZone")}
    if not zones:
        return
    others = {name: other_name(zone) for name, zone in zones.items()}
    if any(others.values()):
        yield _changed(body, {name: {"timeZone": zone} for name, zone in others.items() if zone})
    yield _changed(body, {name: _in_utc(_edges(body)[name], body) for name in zones})


def _edges(body: Json | None) -> dict[str, Json]:
    return {name: body[name] for name in _EDGES if isinstance(body.get(name), dict)} if body else {}


def _changed(body: Json | None, edges: dict[str, Json]) -> Json:
    whole = body or {}
    return whole | {name: whole[name] | change for name, change in edges.items()}


def _in_utc(edge: Json, body: Json | None) -> Json:
    """The same instant in UTC; the same day, for an event of whole days."""
    text, zone = edge.get("dateTime"), iana_zone(edge["timeZone"])
    if text is None or zone is None or (body or {}).get("isAllDay"):
        return {"timeZone": "UTC"}
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        # Google's times have an offset already.
        return {"timeZone": "UTC"}
    instant = moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).replace(tzinfo=None)
    return {"dateTime": instant.isoformat(timespec="milliseconds"), "timeZone": "UTC"}
