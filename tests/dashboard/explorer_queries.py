"""Strategies for queries of the explorer, near changes of clocks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import assume
from hypothesis import strategies as st

from app.dashboard.explorer.form import DAYS, ExplorerQuery
from app.schemas import timestamps
from scheduling.query import Query
from scheduling.windows import MINUTE, Window
from tests.scheduling.strategies import ODD_TIMES, schedules


def edge(zone: ZoneInfo, day: date) -> int:
    """The start of a day as the API parses a range's edge, in milliseconds."""
    return timestamps.parse(f"{day}").milliseconds(zone)


def explorer_query(
    zone: str, first: date, days: int, windows: tuple[Window, ...] | None, **more: object
) -> ExplorerQuery:
    """A query without users."""
    clock = ZoneInfo(zone)
    start, end = edge(clock, first), edge(clock, first + timedelta(days=days))
    options = {"duration": 30 * MINUTE, **more}
    slot_query = Query(start=start, end=end, zone=zone, windows=windows, **options)
    return ExplorerQuery(None, (), clock, first, days, {}, {}, None, slot_query)


hours = st.tuples(st.integers(0, 23), st.integers(1, 24)).filter(lambda pair: pair[0] < pair[1])
daily = hours.map(lambda pair: (Window.daily(pair[0] * 60, pair[1] * 60),))


@st.composite
def explorer_queries(draw: st.DrawFn) -> ExplorerQuery:
    """Queries of every length, near a clock change of a time zone."""
    zone, text = draw(st.sampled_from(ODD_TIMES))
    odd = datetime.fromisoformat(text).replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).date()
    days = int(draw(st.sampled_from(DAYS)))
    first = odd - timedelta(days=draw(st.integers(0, days)))
    clock = ZoneInfo(zone)
    assume(edge(clock, first) < edge(clock, first + timedelta(days=days)))
    return explorer_query(
        zone,
        first,
        days,
        draw(st.none() | daily | schedules),
        duration=draw(st.integers(5, 120)) * MINUTE,
        padding_before=draw(st.sampled_from([0, 10, 60])) * MINUTE,
        padding_after=draw(st.sampled_from([0, 10, 60])) * MINUTE,
        step=draw(st.none() | st.integers(5, 1500).map(lambda minutes: minutes * MINUTE)),
        align_clock=draw(st.booleans()),
    )
