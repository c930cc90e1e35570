"""The parameters of a busy or scheduling request, after schema validation: ranges, windows, options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from app.availability.freshness import now
from app.availability.result import BusyResult
from app.availability.selection import CalendarSelector
from app.http.error_codes import Code
from app.http.errors import ApiError, Invalid
from app.schemas.availability import MOST_WINDOW_DAYS, WEEKDAYS
from app.schemas.timestamps import from_milliseconds
from app.services import services
from scheduling.json_render import timestamp
from scheduling.query import Query, count_limit
from scheduling.windows import DAY, MINUTE, Window
from store.sql.queries.connections import ConnectionRef

MINUTES_OF_A_DAY = 1440


class RangeTooLarge(ApiError):
    """400: the range is too long, or its answer could be too large. Several shorter ranges are accepted."""

    def __init__(self, error: str, *, param: str = "end") -> None:
        super().__init__(error, Code.RANGE_TOO_LARGE, param=param)


def time_range(
    query: Mapping[str, Any], zone: ZoneInfo, names: tuple[str, str] = ("start", "end")
) -> tuple[int, int]:
    """The start and end of a range in milliseconds; ``names`` are those of the query parameters.

    :raise ApiError: for a range that is empty or too long
    """
    start, end = (query[name].milliseconds(zone) for name in names)
    if start >= end:
        raise Invalid(f"{names[0]} must be before {names[1]}", param=names[0])
    longest = services().settings.longest_range_days
    if end - start > longest * DAY and _local_days(start, end, zone) > longest:
        sentence = f"The range from {names[0]} to {names[1]} must not be longer than {longest} days"
        raise RangeTooLarge(sentence, param=names[1])
    return start, end


def _local_days(start: int, end: int, zone: ZoneInfo) -> float:
    """The length of a range in days of the local clock; one day may last 23 or 25 hours."""
    first, last = (from_milliseconds(edge).written.astimezone(zone) for edge in (start, end))
    return (last.replace(tzinfo=None) - first.replace(tzinfo=None)) / timedelta(days=1)


def age(result: BusyResult) -> dict[str, str]:
    """The ``Age`` header: whole seconds since the oldest read; 0 if nothing was read."""
    oldest = result.oldest_read
    return {"Age": str(0 if oldest is None else max(0, now() - oldest) // 1000)}


def selector(query: Mapping[str, Any], *, primary_only: bool) -> CalendarSelector:
    """The calendars that the query selects; ``primary_only`` is used if it names none."""
    return CalendarSelector(tuple(query.get("calendarIds", ())), primary_only)


def of_provider(connections: Sequence[ConnectionRef], query: Mapping[str, Any]) -> list[ConnectionRef]:
    """The connections of the providers in the parameter ``provider``; all if it is empty."""
    providers = query["provider"]
    return [connection for connection in connections if not providers or connection.provider in providers]


def slot_query(
    query: Mapping[str, Any], zone: ZoneInfo, schedules: Sequence[Mapping[str, Any]] | None = None
) -> Query:
    """The engine's query for slots inside the weekly schedules, if there are any, and the daily window.

    :raise ApiError: for a range that is empty or too long, or too many windows
    """
    (question,) = slot_queries(query, zone, [schedules])
    return question


def slot_queries(
    query: Mapping[str, Any], zone: ZoneInfo, schedules: Sequence[Sequence[Mapping[str, Any]] | None]
) -> list[Query]:
    """The engine's query for each of several users, whose schedules differ.

    :raise ApiError: for a range that is empty or too long, or too many windows
    """
    start, end = time_range(query, zone)
    _check_windows(schedules, start, end)
    step = query.get("slotStep")
    question = Query(
        start=start,
        end=end,
        duration=query["slotDuration"] * MINUTE,
        padding_before=query["padding"] * MINUTE,
        padding_after=query["padding"] * MINUTE,
        max_overlaps=query["maxOverlaps"],
        zone=str(zone),
        each_day=_daily_window(query),
        step=None if step is None else step * MINUTE,
        align_clock=query["align"] == "clock",
    )
    return [
        question if each is None else replace(question, windows=weekly_windows(each)) for each in schedules
    ]


def _check_windows(schedules: Sequence[Sequence[Mapping[str, Any]] | None], start: int, end: int) -> None:
    """Limit the product of windows and days to the number that the engine can process in about a second.

    :raise RangeTooLarge: above the limit
    """
    # Users without schedules of their own share one list object, which counts once.
    windows = sum(map(len, {id(each): each for each in schedules if each is not None}.values()))
    days = -(-(end - start) // DAY)
    if windows * days > MOST_WINDOW_DAYS:
        raise RangeTooLarge(
            f"schedules have {windows} windows over {days} days, and windows times days must not exceed "
            f"{MOST_WINDOW_DAYS}; narrow the range, or send fewer windows"
        )


def check_size(members: Mapping[Query, int]) -> None:
    """Refuse a request whose answer could hold too many slots, before any provider is called.

    ``members`` has the number of users for each query. Counting stops above the limit.

    :raise RangeTooLarge: above the limit
    """
    most = services().settings.most_slots
    if sum(rough_limit(question) * count for question, count in members.items()) <= most:
        return
    slots = 0
    for question, count in members.items():
        slots += count_limit(question, count)
        if slots > most:
            raise RangeTooLarge(
                f"The answer could hold more than {most} slots; narrow the range, or ask for longer slots"
            )


def rough_limit(question: Query) -> int:
    """A cheap upper bound of ``count_limit``: the slots of the whole range, without regard to windows."""
    length = question.end - question.start
    if not question.align_clock:
        return length // min(question.stride, question.duration)
    # The multiples restart at each midnight and at each change of the UTC offset, at most
    # one in two days.
    return length // question.stride + 2 * (length // DAY) + 4


def _daily_window(query: Mapping[str, Any]) -> Window | None:
    """The daily window; None if the query has neither edge."""
    earliest, latest = query.get("earliestTimeEachDay"), query.get("latestTimeEachDay")
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


def options(query: Mapping[str, Any], question: Query) -> dict[str, Any]:
    """The options of the query, as the answer repeats them."""
    echoed: dict[str, Any] = {
        "start": timestamp(question.start),
        "end": timestamp(question.end),
        "maxOverlaps": query["maxOverlaps"],
        "padding": query["padding"],
        "slotDuration": query["slotDuration"],
        "timeZone": question.zone,
    }
    for name in ("earliestTimeEachDay", "latestTimeEachDay"):
        if name in query:
            echoed[name] = clock(query[name])
    if "slotStep" in query:
        echoed["slotStep"] = query["slotStep"]
    if question.align_clock:
        echoed["align"] = "clock"
    return echoed


def echoed_schedules(schedules: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Weekly schedules, as the answer repeats them."""
    return [
        {"days": schedule["days"], "start": clock(schedule["start"]), "end": clock(schedule["end"])}
        for schedule in schedules
    ]


def clock(minutes: int) -> str:
    """Minutes since midnight as ``HH:MM``."""
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
