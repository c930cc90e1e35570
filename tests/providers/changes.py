"""Strategies for the content of events, for properties that hold for both providers."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from providers.events import Day, Event, Moment
from providers.timestamps import DAY, instant

NEW_YEAR = instant("2026-01-01T00:00:00Z")
MAILBOX = "America/New_York"
ZONES = [None, "UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Auckland"]
SECOND = 1000

# The API rejects control characters; providers trim white space at the ends.
LETTERS = st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\xa0")
LINES = st.text(LETTERS, max_size=40)
DESCRIPTIONS = st.lists(LINES, max_size=4).map(lambda lines: "\n".join(lines).rstrip())
EMAILS = st.lists(st.sampled_from(["bob@x.org", "Eve@X.org", "dan@y.org", "o'neil@z.org"]), unique=True)
HELD = st.sampled_from([{}, {"meeting": True}, {"meeting_url": "https://a.example/1?x=y&z"}])


@st.composite
def times(draw: Any, step: int = 1) -> dict[str, Any]:
    """Two edges of a timed event, at multiples of ``step`` milliseconds."""
    at = draw(st.integers(NEW_YEAR // step, (NEW_YEAR + 700 * DAY) // step)) * step
    length = draw(st.integers(0, 3 * DAY // step)) * step
    return {
        "start": Moment(at, draw(st.sampled_from(ZONES))),
        "end": Moment(at + length, draw(st.sampled_from(ZONES))),
    }


@st.composite
def days(draw: Any) -> dict[str, Any]:
    """Two edges of an all-day event."""
    first = draw(st.dates(date(2026, 1, 1), date(2027, 12, 1)))
    last = first + timedelta(days=draw(st.integers(1, 5)))
    return {"start": Day(first.isoformat()), "end": Day(last.isoformat())}


@st.composite
def texts(draw: Any) -> dict[str, Any]:
    """Everything but the times; a meeting URL comes with a location, which would follow it otherwise."""
    written = {
        "subject": draw(st.none() | LINES),
        "description": draw(st.none() | DESCRIPTIONS),
        "location": draw(LINES),
        "attendees": draw(st.none() | EMAILS.map(tuple)),
        "meta_id": draw(st.none() | st.text(LETTERS, min_size=1, max_size=20)),
    }
    return {name: value for name, value in written.items() if value is not None} | draw(HELD)


def midnight(day: Day) -> int:
    """The start of a day in the account's zone."""
    return int(datetime.fromisoformat(day.date).replace(tzinfo=ZoneInfo(MAILBOX)).timestamp() * 1000)


def assert_is(event: Event, written: dict[str, Any], meeting: str) -> None:
    """Check that an event has the written content; the provider's own meetings begin with ``meeting``."""
    for name in ("subject", "description", "location"):
        assert getattr(event, name) == written.get(name, "")
    assert event.meta_id == written.get("meta_id")
    assert tuple(each.email for each in event.attendees) == written.get("attendees", ())
    edges = [written["start"], written["end"]]
    assert [event.start, event.end] == [e.at if isinstance(e, Moment) else midnight(e) for e in edges]
    assert event.all_day is isinstance(edges[0], Day)
    if "meeting" in written:
        assert (event.meeting_url or "").startswith(meeting)
    else:
        assert event.meeting_url == written.get("meeting_url")


def merged(before: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """The content after an update; an event has only one online meeting at a time."""
    gone = {"meeting", "meeting_url"} if {"meeting", "meeting_url"} & sent.keys() else set()
    return {name: value for name, value in before.items() if name not in gone} | sent
