"""Parameters of availability requests: timestamps, zones, slot options, and the age of cached data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypedDict, TypeVar

from almanac_client.answers import Answer
from almanac_client.records import OnFailure, Provider, SlotAlignment
from almanac_client.transport import Reply

T = TypeVar("T")

# A date means its start. A datetime without a zone, and a text without an offset, are local times in the
# zone of the request.
When = datetime | date | str


class Reading(TypedDict, total=False):
    """Parameters of every request for busy or free time.

    ``zone`` is the IANA zone of local times in the request (default: UTC). ``max_age`` limits the age of
    cached data in seconds; 0 makes Almanac read from the providers.
    """

    zone: str
    provider: Sequence[Provider]
    max_age: int


class AccountReading(Reading, total=False):
    """The same for one user."""

    calendar_ids: Sequence[str]


class SlotOptions(Reading, total=False):
    """The properties of a slot, in minutes, as in the OpenAPI document; missing ones have the default."""

    slot_duration: int
    padding: int
    max_overlaps: int
    slot_step: int
    align: SlotAlignment
    # A daily window, in local times like ``09:00``. Slots lie inside it and inside weekly schedules.
    earliest_time_each_day: str
    latest_time_each_day: str


class UserSlotOptions(SlotOptions, total=False):
    """The same for one user. ``on_failure="partial"``: an unreadable calendar does not fail the request."""

    calendar_ids: Sequence[str]
    on_failure: OnFailure


def timestamp(when: When) -> str:
    """A timestamp in Almanac's format."""
    return when if isinstance(when, str) else when.isoformat()


def query(options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Query parameters by Almanac's names; None values are left out."""
    given = {**more, **options}
    return {
        camel(name): _text(value)
        for name, value in given.items()
        if value is not None and name not in ("zone", "max_age")
    }


def body(**fields: Any) -> dict[str, Any]:
    """A body by Almanac's names; None values are left out."""
    return {camel(name): value for name, value in fields.items() if value is not None}


def headers(options: Mapping[str, Any]) -> dict[str, str]:
    """The headers for the zone and the maximum age of cached data."""
    found: dict[str, str] = {}
    if options.get("zone") is not None:
        found["X-Timezone"] = options["zone"]
    if options.get("max_age") is not None:
        found["Cache-Control"] = f"max-age={options['max_age']}" if options["max_age"] else "no-cache"
    return found


def answer(reply: Reply, kind: type[T], *, accounted_for: bool = False) -> Answer[T]:
    """An answer with typed data and the calendars that could not be read."""
    data: T = reply.body["data"]
    age = reply.headers.get("Age")
    return Answer(
        data,
        reply.body.get("failedCalendars", ()),
        reply.body.get("failedUsers", ()),
        int(age) if age is not None else None,
        accounted_for,
    )


def camel(name: str) -> str:
    """``slot_duration`` as ``slotDuration``."""
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return timestamp(value) if isinstance(value, date) else value
