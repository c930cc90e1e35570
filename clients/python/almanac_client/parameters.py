"""Parameters of requests: timestamps, zones, slot options, and the age of cached data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, TypedDict
from zoneinfo import ZoneInfo

from almanac_client.words import OnFailure, ProfileUse, Provider, SlotAlignment, UserOrder

# A date means its start. A datetime without a zone, and a text without an offset, are local times in the
# zone of the request.
When = datetime | date | str
# A local time of the day, like ``time(9)`` or ``"09:00"``.
Clock = time | str


class Reading(TypedDict, total=False):
    """Parameters of every request for busy or free time.

    ``zone`` is the IANA zone of local times in the request (default: UTC). ``max_age`` limits the age of
    cached data in seconds; 0 makes Almanac read from the providers.
    """

    zone: str | ZoneInfo
    provider: Sequence[Provider]
    # Only these connections, by id.
    connection: Sequence[str]
    max_age: int


class AccountReading(Reading, total=False):
    """The same for one user."""

    calendar_ids: Sequence[str]


class SlotOptions(Reading, total=False):
    """The properties of slots, in minutes, as in the OpenAPI document; missing ones have the default."""

    slot_duration: int
    padding: int
    # Padding on one side; the default is ``padding``.
    padding_before: int
    padding_after: int
    max_overlaps: int
    slot_step: int
    align: SlotAlignment
    # No slot starts earlier than this many minutes from now.
    minimum_notice: int
    # The most slots of each user, earliest first.
    limit: int
    # A daily window. Slots lie inside it and inside weekly schedules.
    earliest_time_each_day: Clock
    latest_time_each_day: Clock
    # False: all calendars of each account, not only the main one.
    primary_only: bool
    # "ignore": the stored availability of the users does not count.
    profile: ProfileUse


class UserSlotOptions(SlotOptions, total=False):
    """The same for one user. ``on_failure="partial"``: an unreadable calendar does not fail the request."""

    calendar_ids: Sequence[str]
    on_failure: OnFailure


class OrganizationSlotOptions(SlotOptions, total=False):
    """The same for an organization. ``order="leastBusy"``: the least booked members of a slot come first."""

    order: UserOrder


class GroupOptions(OrganizationSlotOptions, total=False):
    """The same for groups. ``on_failure="partial"``: "all" means all users whose calendars could be read."""

    on_failure: OnFailure


# Parameters that are sent as headers.
IN_HEADERS = ("zone", "max_age")


def query(options: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Query parameters by Almanac's names; None values and empty lists are left out."""
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in body(options, **more).items()
        if value != []
    }


# Fields of bodies in which None is a value.
NULLABLE = ("reminders",)


def body(options: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A body by Almanac's names; None values are left out, unless None is a value of the field."""
    return {
        camel(name): value_of(value)
        for name, value in {**more, **(options or {})}.items()
        if (value is not None or name in NULLABLE) and name not in IN_HEADERS
    }


def headers(options: Mapping[str, Any]) -> dict[str, str]:
    """The headers for the zone and the maximum age of cached data."""
    found: dict[str, str] = {}
    if options.get("zone") is not None:
        found["X-Timezone"] = str(options["zone"])
    if options.get("max_age") is not None:
        found["Cache-Control"] = f"max-age={options['max_age']}" if options["max_age"] else "no-cache"
    return found


def value_of(value: Any) -> Any:
    """A value in Almanac's format; keys of dictionaries get Almanac's names."""
    match value:
        case time():
            return value.isoformat("minutes")
        case date():
            return value.isoformat()
        case ZoneInfo():
            return str(value)
        case Mapping():
            return {camel(name): value_of(each) for name, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [value_of(each) for each in value]
    return value


def camel(name: str) -> str:
    """``slot_duration`` as ``slotDuration``."""
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)


def matching(etag: str | None) -> dict[str, str]:
    """The header of a change that is made only if its subject still has this ``ETag``."""
    return {} if etag is None else {"If-Match": etag}
