"""Parses Microsoft Graph's JSON; pure functions.

Answers of calendarView are decoded to what decides whether an event makes its owner busy. An answer to
twenty mailboxes has thousands of events. Objects with these fields are decoded in half the time of
dictionaries, take a quarter of the memory, and are not tracked by the garbage collector.

https://learn.microsoft.com/en-us/graph/api/calendar-list-calendarview
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, timedelta, tzinfo
from typing import Any, TypedDict, cast
from zoneinfo import ZoneInfo

import msgspec

from providers.base import Calendar, MainCalendar, Period
from providers.colors import foreground
from providers.errors import ProviderError, Unreadable
from providers.http.calls import Json, json_object, unreadable
from providers.http.json_validation import SHAPE_ERRORS, array, identifier, original, shown
from providers.microsoft.batch import Pages
from providers.microsoft.errors import PROVIDER
from providers.microsoft.payloads import GraphCalendar, GraphEvent
from providers.timestamps import DAY, FIRST_MIDNIGHT, LAST_MIDNIGHT, ordered, wall_instant
from scheduling.zones import iana_zone

# Graph documents only the names; the values approximate Outlook on the web.
# https://learn.microsoft.com/en-us/graph/api/resources/calendar#calendarcolor-values
COLORS = {
    "auto": "#0078d4",
    "lightBlue": "#a6d1f5",
    "lightGreen": "#87d28e",
    "lightOrange": "#fcab73",
    "lightGray": "#c0c0c0",
    "lightYellow": "#f5f37b",
    "lightTeal": "#7fd8d8",
    "lightPink": "#ef85c8",
    "lightBrown": "#bca58a",
    "lightRed": "#f88c9b",
    "maxColor": "#0078d4",
}


class Moment(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Seven digits of fraction and no offset: the zone is a separate field, of any type if it is odd."""

    date_time: str
    time_zone: Any = None


class ResponseStatus(msgspec.Struct, frozen=True, gc=False):
    """The owner's response to the invitation."""

    response: str | None = None


class BusyEvent(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """An event: when it takes place, and whether its owner is busy."""

    start: Moment | None = None
    end: Moment | None = None
    show_as: str | None = None
    is_all_day: bool | None = None
    is_cancelled: bool | None = None
    response_status: ResponseStatus | None = None


# The type of each field in JSON.
_TYPES = {each.encode_name: each.type for each in msgspec.structs.fields(BusyEvent)}

_Page = TypedDict(
    "_Page",
    {"value": list[BusyEvent], "@odata.nextLink": Any, "timeZone": Any, "error": Any},
    total=False,
)


class _Part(TypedDict, total=False):
    id: Any
    status: Any
    headers: Any
    body: _Page | None


class _Batch(TypedDict):
    responses: list[_Part]


_batches = msgspec.json.Decoder(_Batch)


def decode_view(content: bytes) -> Json | None:
    """The answer to a batch, whose events are ``BusyEvent``. It is plain JSON if a part has another form.

    :func:`view_events` reads both, so a malformed part does not concern the others.
    """
    try:
        return dict(_batches.decode(content))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json_object(content)


def view_events(values: list[Any]) -> list[BusyEvent]:
    """The events of a page. A field of another type counts as missing, so one odd event spoils no other.

    :raise msgspec.ValidationError: if an entry is no event
    """
    try:
        return msgspec.convert(values, list[BusyEvent])
    except msgspec.ValidationError:
        return [view_event(each) for each in values]


def view_event(record: object) -> BusyEvent:
    """One event; raises like :func:`view_events`."""
    try:
        return msgspec.convert(record, BusyEvent)
    except msgspec.ValidationError:
        if not isinstance(record, dict):
            raise
        return msgspec.convert({name: each for name, each in record.items() if _fits(name, each)}, BusyEvent)


def _fits(name: str, value: object) -> bool:
    if name not in _TYPES:
        return False
    try:
        msgspec.convert(value, _TYPES[name])
    except msgspec.ValidationError:
        return False
    return True


# All other values mean busy, including "unknown" and future ones:
# https://learn.microsoft.com/en-us/graph/api/resources/event#properties (showAs)
NOT_BUSY = frozenset({"free", "workingElsewhere"})

# The IANA zone of a mailbox, None when it has none that can be known, or a failure that may pass.
Zone = str | None | ProviderError


class UnknownZone(ProviderError):
    """A time has a zone that only its mailbox defines, so it cannot be converted."""


def mailbox_zone(settings: Pages | None) -> Zone:
    """The IANA zone of a mailbox from the answer for its settings.

    None without permission to read it, when Graph refuses it, and when there is none or a custom one.
    https://learn.microsoft.com/en-us/graph/api/user-get-mailboxsettings
    """
    if isinstance(settings, ProviderError):
        return settings if settings.retryable and not isinstance(settings, Unreadable) else None
    name = settings[0].get("timeZone") if settings else None
    return iana_zone(name) if isinstance(name, str) else None


def busy(pages: Iterable[Json], zone: Zone, operation: str, *, without: str | None = None) -> list[Period]:
    """The busy periods of one calendarView, unsorted; ``zone`` is the mailbox's.

    Without it, an all-day event covers its days in every zone, and so does a time in an unknown zone. The
    event with the id ``without`` does not count; the pages must be plain JSON then.

    :raise ProviderError: ``zone`` when it is an error and an all-day event needs it; Unreadable when a page
        cannot be parsed, or a busy event states no time
    """
    try:
        found = (values(page) for page in pages)
        if without is not None:
            found = ([each for each in entries if each.get("id") != without] for entries in found)
        events = [event for entries in found for event in view_events(entries)]
        return [_period(event, zone, _widest) for event in events if _blocks(event)]
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, operation) from None


def values(page: Json) -> list[Any]:
    """The entries of a page. A page with an error is not whole: Graph may fail while it sends the entries."""
    if page.get("error"):
        raise TypeError("the page has an error")
    return array(page["value"])


def is_cancelled(event: GraphEvent) -> bool:
    """Whether the event is cancelled."""
    return event.get("isCancelled") is True


def period(event: GraphEvent, zone: Zone, operation: str) -> Period:
    """When an event takes place.

    :raise ProviderError: ``zone`` when it is an error and needed; UnknownZone for a time in an unknown zone
    :raise ValueError: when that is not stated clearly
    """

    def refuse(_edge: tzinfo) -> tzinfo:
        raise UnknownZone(f"{PROVIDER} gave a time in an unknown time zone", operation=operation)

    return _period(view_event(event), zone, refuse)


def shown_period(event: GraphEvent, zone: Zone) -> Period:
    """When an event takes place, for a list, which needs one definite time.

    A time in an unknown zone is read in ``originalStartTimeZone``, else in the mailbox's zone, else in UTC,
    which is the zone that every call asks for by its header ``Prefer``.
    https://learn.microsoft.com/en-us/graph/api/resources/event#properties (originalStartTimeZone)

    :raise ProviderError: ``zone`` when it is an error and needed
    :raise ValueError: when the time is not stated clearly
    """

    def other(_edge: tzinfo) -> tzinfo:
        stated = iana_zone(shown(event.get("originalStartTimeZone")))
        if stated is None and isinstance(zone, ProviderError):
            raise zone
        return ZoneInfo(stated or str(zone or "UTC"))

    return _period(view_event(event), zone, other)


def _blocks(event: BusyEvent) -> bool:
    """Whether the event makes its owner busy: not when cancelled, declined, free or working elsewhere."""
    status = event.response_status
    if event.is_cancelled or (status is not None and status.response == "declined"):
        return False
    return event.show_as not in NOT_BUSY


def _period(event: BusyEvent, zone: Zone, unknown: Callable[[tzinfo], tzinfo]) -> Period:
    """When an event takes place; from the first to the last moment if it can be read in two ways.

    ``unknown`` gives the zone of a time whose own one is not known.
    """
    start, end = event.start, event.end
    if start is None or end is None:
        raise TypeError("no time")
    # From midnight to midnight may also be whole days of another zone, so ``is_all_day`` decides.
    found: list[Period] = []
    between_midnights = _is_midnight(start) and _is_midnight(end)
    if (event.is_all_day is not False and between_midnights) or (event.is_all_day and _is_odd(start, end)):
        # All-day dates are labelled with the requested zone, but not converted to it.
        if isinstance(zone, ProviderError):
            raise zone
        first, last = (FIRST_MIDNIGHT, LAST_MIDNIGHT) if zone is None else (ZoneInfo(zone),) * 2
        begins_on, ends_on = _whole_days(start, end)
        found.append(ordered(wall_instant(begins_on, first), wall_instant(ends_on, last, up=True)))
    if not (found and event.is_all_day and between_midnights):
        begins = _zone(start) or unknown(FIRST_MIDNIGHT)
        ends = _zone(end) or unknown(LAST_MIDNIGHT)
        found.append(
            ordered(wall_instant(start.date_time, begins), wall_instant(end.date_time, ends, up=True))
        )
    return min(since for since, _ in found), max(until for _, until in found)


def _length(start: Moment, end: Moment) -> int:
    since, until = ordered(wall_instant(start.date_time, UTC), wall_instant(end.date_time, UTC, up=True))
    return until - since


def _is_odd(start: Moment, end: Moment) -> bool:
    """Whether an all-day event has no whole number of days: then the dates that it names are meant.

    Its edges must be midnights: https://learn.microsoft.com/en-us/graph/api/resources/event#properties.
    Other clients write {"isAllDay": true, "end": {"dateTime": "2026-12-14T23:59:59", "timeZone": "UTC"}}.
    """
    length = _length(start, end)
    return length == 0 or length % DAY != 0


def _whole_days(start: Moment, end: Moment) -> tuple[str, str]:
    """The first midnight and the last as wall clock: all days that are begun, at least one.

    :raise ValueError: if the event ends before it begins
    """
    if not _is_odd(start, end):
        return start.date_time, end.date_time
    first = date.fromisoformat(start.date_time[:10])
    return str(first), str(first + timedelta(days=max(1, -(-_length(start, end) // DAY))))


def _widest(edge: tzinfo) -> tzinfo:
    return edge


def _is_midnight(moment: Moment) -> bool:
    return not moment.date_time[11:].strip("0:.")


def _zone(moment: Moment) -> tzinfo | None:
    name = moment.time_zone
    if name == "UTC":
        return UTC
    zone = iana_zone(name) if isinstance(name, str) else None
    return None if zone is None else ZoneInfo(zone)


def calendars(pages: Iterable[Json], email: str | None, zone: str, operation: str) -> list[Calendar]:
    """The calendars of an account; Graph has one zone for all of them, the mailbox's.

    :raise Unavailable: when a page cannot be parsed
    """
    try:
        found = [each for page in pages for each in cast("list[GraphCalendar]", values(page))]
        own = {_owner(each) for each in found if each.get("isDefaultCalendar")} | {(email or "").lower()}
        each_once = {each["id"]: each for each in found}
        return [_calendar(each, own - {""}, zone) for each in each_once.values()]
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, operation) from None


def main_calendar(entry: Json, zone: str, operation: str) -> MainCalendar:
    """The default calendar of a mailbox: its id and its owner's address; ``zone`` is the mailbox's.

    :raise Unavailable: when the record is not a calendar
    """
    try:
        found = cast("GraphCalendar", entry)
        return MainCalendar(identifier(found["id"]), _owner(found), zone)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, operation) from None


def _calendar(entry: GraphCalendar, own: set[str], zone: str) -> Calendar:
    color = background(shown(entry.get("color")), shown(entry.get("hexColor")))
    return Calendar(
        id=identifier(entry["id"]),
        provider="microsoft",
        subject=shown(entry.get("name")),
        access_role=_role(entry, own),
        primary=entry.get("isDefaultCalendar") is True,
        selected=True,
        background_color=color,
        foreground_color=foreground(color),
        time_zone=zone,
        original=original(entry),
        owner=_owner(entry),
    )


def _role(entry: GraphCalendar, own: set[str]) -> str:
    """The role: Graph has none, so it is derived from the owner and ``canEdit``."""
    if entry.get("isDefaultCalendar") or _owner(entry) in own:
        return "owner"
    return "writer" if entry.get("canEdit") else "reader"


def _owner(entry: GraphCalendar) -> str:
    owner = entry.get("owner")
    return shown(owner.get("address")).lower() if isinstance(owner, dict) else ""


def background(name: str, chosen: str) -> str:
    """The colour the user has chosen, else the named colour, as ``#rrggbb``."""
    if re.fullmatch(r"#[0-9a-fA-F]{6}", chosen):
        return chosen.lower()
    return COLORS.get(name, COLORS["auto"])
