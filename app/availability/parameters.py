"""The parameters of a busy or scheduling request, after schema validation: ranges, windows, options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from werkzeug.datastructures import RequestCacheControl
from werkzeug.http import parse_cache_control_header

from app.availability.result import BusyResult
from app.availability.selection import CalendarSelector
from app.http.errors import ApiError, Invalid
from app.schemas.availability import MAX_WINDOW_DAYS, WEEKDAYS
from app.schemas.error_codes import Code
from app.schemas.parameters import LEAST_BUSY
from app.schemas.timestamps import from_milliseconds
from app.services import services
from scheduling import hours as zoned
from scheduling.json_render import timestamp
from scheduling.query import OfMembers, Query, max_slots_of
from scheduling.windows import DAY, MINUTE, DateOverride, Window
from store.cache.busy_cache import now_ms as now_ms
from store.sql.queries.connection_rows import ConnectionRef

# Users of a slot are ordered by what is booked this long before and after its start.
AROUND = 7 * DAY

# In seconds. Nothing cached is as old as that; larger numbers would only be too large to compute with.
A_YEAR = 365 * 86_400


@dataclass(frozen=True, slots=True)
class Freshness:
    """An answer uses no read from before ``newer_than``, in milliseconds; None allows any cached read."""

    newer_than: int | None = None


def required_freshness(cache_control: str | None) -> Freshness:
    """The freshness that a client requires by the header ``Cache-Control``.

    ``cache_control`` is the value of the header; None, for a client that sent none, allows any cached read.
    """
    if cache_control is None:
        return Freshness()
    # Directives are case-insensitive, but the parser only knows lower case.
    control = parse_cache_control_header(cache_control.lower(), cls=RequestCacheControl)
    if control.no_cache:
        return Freshness(newer_than=now_ms())
    if control.max_age is not None:
        return Freshness(newer_than=now_ms() - min(max(0, control.max_age), A_YEAR) * 1000)
    return Freshness()


MINUTES_OF_A_DAY = 1440


class RangeTooLarge(ApiError):
    """400: the range is too long, or its answer could be too large. Several shorter ranges are accepted."""

    def __init__(self, error: str, *, param: str = "end") -> None:
        super().__init__(error, Code.RANGE_TOO_LARGE, param=param)


def time_range(
    params: Mapping[str, Any], zone: ZoneInfo, names: tuple[str, str] = ("start", "end")
) -> tuple[int, int]:
    """The start and end of a range in milliseconds; ``names`` are those of the query parameters.

    :raise ApiError: for a range that is empty or too long
    """
    start, end = (params[name].milliseconds(zone) for name in names)
    if start >= end:
        raise Invalid(f"{names[0]} must be before {names[1]}", param=names[0])
    longest = services().settings.max_range_days
    if end - start > longest * DAY and _local_days(start, end, zone) > longest:
        sentence = f"The range from {names[0]} to {names[1]} must not be longer than {longest} days"
        raise RangeTooLarge(sentence, param=names[1])
    return start, end


def _local_days(start: int, end: int, zone: ZoneInfo) -> float:
    """The length of a range in days of the local clock; one day may last 23 or 25 hours."""
    first, last = (from_milliseconds(edge).written.astimezone(zone) for edge in (start, end))
    return (last.replace(tzinfo=None) - first.replace(tzinfo=None)) / timedelta(days=1)


def age_header(result: BusyResult) -> dict[str, str]:
    """The ``Age`` header: whole seconds since the oldest read; 0 if nothing was read."""
    oldest = result.oldest_read
    return {"Age": str(0 if oldest is None else max(0, now_ms() - oldest) // 1000)}


def selector(params: Mapping[str, Any], *, primary_only: bool) -> CalendarSelector:
    """The calendars that the query selects; ``primary_only`` is used if it does not say."""
    return CalendarSelector(tuple(params.get("calendarIds", ())), params.get("primaryOnly", primary_only))


def chosen(connections: Sequence[ConnectionRef], params: Mapping[str, Any]) -> list[ConnectionRef]:
    """The connections that the parameters ``provider`` and ``connection`` choose; all without them."""
    providers, ids = params["provider"], params.get("connection")
    return [
        connection
        for connection in connections
        if (not providers or connection.provider in providers) and (not ids or connection.public_id in ids)
    ]


class RequestedHours(NamedTuple):
    """The weekly schedules of a request or a user, and the overrides of dates; None where none are given.

    ``zone`` is theirs, None for that of the request.
    """

    schedules: Sequence[Mapping[str, Any]] | None = None
    overrides: Sequence[Mapping[str, Any]] | None = None
    zone: ZoneInfo | None = None

    @classmethod
    def of(cls, *bodies: Mapping[str, Any]) -> RequestedHours:
        """Those of the first body that has them."""
        return cls(
            next((body["schedules"] for body in bodies if body["schedules"] is not None), None),
            next((body["overrides"] for body in bodies if body["overrides"] is not None), None),
            next((body["timeZone"] for body in bodies if body.get("timeZone") is not None), None),
        )

    @property
    def are_given(self) -> bool:
        """Whether there are schedules or overrides."""
        return self.schedules is not None or self.overrides is not None


ANY_HOURS = RequestedHours()


def slot_query(params: Mapping[str, Any], zone: ZoneInfo, hours: RequestedHours = ANY_HOURS) -> Query:
    """The engine's query for slots inside the weekly schedules, if there are any, and the daily window.

    :raise ApiError: for a range that is empty or too long, or too many windows
    """
    (query,) = slot_queries(params, zone, [hours])
    return query


def slot_queries(params: Mapping[str, Any], zone: ZoneInfo, hours: Sequence[RequestedHours]) -> list[Query]:
    """The engine's query for each of several users, whose schedules and overrides differ.

    :raise ApiError: for a range that is empty or too long, or too many windows
    """
    start, end = time_range(params, zone)
    _check_windows(hours, start, end)
    step = params.get("slotStep")
    padding = params["padding"]
    query = Query(
        start=start,
        end=end,
        duration=params["slotDuration"] * MINUTE,
        padding_before=params.get("paddingBefore", padding) * MINUTE,
        padding_after=params.get("paddingAfter", padding) * MINUTE,
        max_overlaps=params["maxOverlaps"],
        zone=str(zone),
        each_day=_daily_window(params),
        step=None if step is None else step * MINUTE,
        align_clock=params["align"] == "clock",
        not_before=not_before(params),
        limit=params.get("limit"),
    )
    within = {key: within_hours(query, each) for key, each in _distinct(hours).items()}
    return [within[identity(each)] for each in hours]


def common_range(queries: Sequence[Query]) -> tuple[int, int]:
    """The range over which busy periods are read for the queries of several users."""
    ranges = [query.busy_range() for query in set(queries)] or [(0, 1)]
    return min(start for start, _ in ranges), max(end for _, end in ranges)


def range_to_read(params: Mapping[str, Any], query: Query) -> tuple[int, int]:
    """The range over which busy periods are read, for the slots and for the order of their users."""
    start, end = query.busy_range()
    if params.get("order") == LEAST_BUSY:
        start, end = min(start, query.start - AROUND), max(end, query.end + AROUND)
    return start, end


def not_before(params: Mapping[str, Any]) -> int | None:
    """The first moment that the notice allows, as a whole minute: slots should not start at odd seconds."""
    minutes = params.get("minimumNotice")
    return None if minutes is None else earliest_start(minutes, now_ms())


def earliest_start(minutes: int, now: int) -> int:
    """The first moment that a notice allows at a moment, which is in milliseconds."""
    return (-(-now // MINUTE) + minutes) * MINUTE


def _distinct(hours: Sequence[RequestedHours]) -> dict[tuple[int, int, str], RequestedHours]:
    """The different hours by identity: users without hours of their own share the lists of the request."""
    return {identity(each): each for each in hours}


def identity(hours: RequestedHours) -> tuple[int, int, str]:
    """What tells hours of one request apart, without comparing their windows."""
    return id(hours.schedules), id(hours.overrides), str(hours.zone)


def within_hours(query: Query, hours: RequestedHours) -> Query:
    """The query for slots inside these hours; the zone of the query stays that of the request."""
    if not hours.are_given:
        return query
    windows = None if hours.schedules is None else weekly_windows(hours.schedules)
    overrides = date_overrides(hours.overrides or ())
    if hours.zone is None or str(hours.zone) == query.zone:
        return replace(query, windows=windows, overrides=overrides)
    return replace(query, hours=(zoned.Hours(str(hours.zone), windows, overrides),))


def _check_windows(hours: Sequence[RequestedHours], start: int, end: int) -> None:
    """Limit the product of windows and days to the number that the engine can process in about a second.

    :raise RangeTooLarge: above the limit
    """
    distinct = _distinct(hours).values()
    # An override without schedules opens every other day.
    windows = sum(
        len(each.schedules) if each.schedules is not None else bool(each.overrides) for each in distinct
    )
    days = -(-(end - start) // DAY)
    on_dates = sum(
        len(override["windows"]) + 1 for each in distinct if each.overrides for override in each.overrides
    )
    if windows * days + on_dates > MAX_WINDOW_DAYS:
        raise RangeTooLarge(
            f"schedules have {windows} windows over {days} days{_and_overrides(on_dates)}, and windows times "
            f"days must not exceed {MAX_WINDOW_DAYS}; narrow the range, or send fewer windows"
        )


def _and_overrides(count: int) -> str:
    return f" and overrides have {count} dates and windows" if count else ""


def check_slot_count(members: Mapping[Query, int], own: OfMembers = None) -> None:
    """Refuse a request whose answer could hold too many slots, before any provider is called.

    ``members`` has the number of users for each query. Counting stops above the limit. ``own`` is what
    differs for each user of the only query.

    :raise RangeTooLarge: above the limit
    """
    most = services().settings.max_slots
    if sum(rough_max_slots(query) * count for query, count in members.items()) <= most:
        return
    slots = 0
    for query, count in members.items():
        slots += max_slots_of(query, count, own)
        if slots > most:
            raise RangeTooLarge(
                f"The answer could hold more than {most} slots; narrow the range, or ask for longer slots"
            )


def rough_max_slots(query: Query) -> int:
    """A cheap upper bound of ``max_slots_of``: the slots of the whole range, without regard to windows."""
    length = query.end - query.start
    if not query.align_clock:
        return _limited(query, length // min(query.stride, query.duration))
    # The multiples restart at each midnight and at each change of the UTC offset, at most
    # one in two days.
    return _limited(query, length // query.stride + 2 * (length // DAY) + 4)


def _limited(query: Query, count: int) -> int:
    return count if query.limit is None else min(count, query.limit)


def _daily_window(params: Mapping[str, Any]) -> Window | None:
    """The daily window; None if the query has neither edge."""
    earliest, latest = params.get("earliestTimeEachDay"), params.get("latestTimeEachDay")
    if earliest is None and latest is None:
        return None
    return Window.daily(earliest or 0, latest or MINUTES_OF_A_DAY)


def weekly_windows(schedules: Sequence[Mapping[str, Any]]) -> tuple[Window, ...]:
    """The windows of weekly schedules."""
    return tuple(
        Window(
            frozenset(WEEKDAYS.index(day) for day in schedule["days"]),
            schedule["start"],
            schedule["end"] or MINUTES_OF_A_DAY,
        )
        for schedule in schedules
    )


def date_overrides(overrides: Sequence[Mapping[str, Any]]) -> tuple[DateOverride, ...]:
    """The windows of dates that have an override."""
    return tuple(
        DateOverride(
            override["date"],
            tuple((each["start"], each["end"] or MINUTES_OF_A_DAY) for each in override["windows"]),
        )
        for override in overrides
    )


def echoed_options(
    params: Mapping[str, Any], query: Query, hours: RequestedHours = ANY_HOURS, *, profiled: bool = False
) -> dict[str, Any]:
    """The options of the query, as the answer repeats them; ``profiled``: a stored profile applied."""
    echoed: dict[str, Any] = {
        "start": timestamp(query.start),
        "end": timestamp(query.end),
        "maxOverlaps": params["maxOverlaps"],
        "padding": params["padding"],
        "slotDuration": params["slotDuration"],
        "timeZone": query.zone if hours.zone is None else str(hours.zone),
    }
    for name in ("earliestTimeEachDay", "latestTimeEachDay"):
        if name in params:
            echoed[name] = clock(params[name])
    for name in ("slotStep", "paddingBefore", "paddingAfter", "minimumNotice", "limit"):
        if name in params:
            echoed[name] = params[name]
    if hours.overrides is not None:
        echoed["overrides"] = echoed_overrides(hours.overrides)
    if query.align_clock:
        echoed["align"] = "clock"
    if profiled:
        echoed["profile"] = True
    return echoed


def echoed_schedules(schedules: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Weekly schedules, as the answer repeats them."""
    return [
        {"days": schedule["days"], "start": clock(schedule["start"]), "end": clock(schedule["end"])}
        for schedule in schedules
    ]


def echoed_overrides(overrides: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Overrides of dates, as the answer repeats them."""
    return [
        {
            "date": f"{override['date']}",
            "windows": [
                {"start": clock(window["start"]), "end": clock(window["end"])}
                for window in override["windows"]
            ],
        }
        for override in overrides
    ]


def clock(minutes: int) -> str:
    """Minutes since midnight as ``HH:MM``."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
