"""Recurrences and cursors of changes: of bounded work, or refused."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.events import change_cursor
from app.events.change_cursor import Cursor, Owner
from app.http.errors import ApiError
from providers import recurrence
from providers.events import Day, Moment
from providers.microsoft.recurrence import require_pattern
from providers.recurrence import BadRecurrence, Series, day_at
from providers.timestamps import DAY, instant
from store.security.crypto import Keyring
from tests.fuzz import recurrences
from tests.fuzz.counting import count

pytestmark = pytest.mark.fuzz

STARTS = st.sampled_from(
    [
        Moment(instant("2026-10-15T07:00:00Z"), "Europe/Berlin"),
        Moment(instant("2027-03-28T01:30:00Z"), "Europe/Berlin"),
        Moment(instant("2026-01-31T23:59:59Z"), "Asia/Tokyo"),
        Day("2028-02-29"),
    ]
)
# Nearly right rules get further than most texts.
RULES = st.builds(
    lambda frequency, parts: f"RRULE:FREQ={frequency};{';'.join(parts)}",
    st.sampled_from(["SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"]),
    st.lists(recurrences.PARTS, max_size=3),
)
# The work of one series, in seconds; a bound of the expansion itself ends it.
WORK = 20.0


@given(st.lists(RULES, max_size=1), recurrences.TEXTS, STARTS, st.integers(0, 400))
def test_a_recurrence_is_of_bounded_work_or_refused(rules, others, start, days):
    count("recurrences tried")
    began = time.monotonic()
    lines = [*rules, *(each for each in others if isinstance(each, str))]
    try:
        given_ = recurrence.parse(lines, "Europe/Berlin")
        recurrence.require_modest(given_)
        series = Series(start, given_)
        series.require_sound()
    except BadRecurrence:
        count("recurrences refused")
    else:
        later = (
            Moment(start.at + days * DAY) if isinstance(start, Moment) else day_at(series.first + days * DAY)
        )
        with suppress(BadRecurrence):
            series.beginning(later)
        assert series.ended_before(later).rule
        assert series.in_form().is_like(series)
        with suppress(BadRecurrence):
            require_pattern(given_, start)
        assert recurrence.parse(recurrence.lines(given_), "Europe/Berlin") == given_
    assert time.monotonic() - began < WORK


KEYRING = Keyring([b"k" * 32])
OWNER = Owner(1, None)
KNOWN = Cursor(0, DAY, ("google",), (), (), {("connection", "calendar"): "token"})


@given(st.data())
def test_a_changed_cursor_of_changes_is_refused(data):
    count("cursors tried")
    text = change_cursor.seal(KNOWN, OWNER, KEYRING)
    place = data.draw(st.integers(0, len(text) - 1))
    put = data.draw(st.text(max_size=3))
    changed = text[:place] + put + text[place + data.draw(st.integers(0, 3)) :]
    try:
        found = change_cursor.unseal(changed, OWNER, KEYRING)
    except ApiError:
        return
    # The last letter has bits that belong to no byte.
    assert found == KNOWN
    assert changed[:-1] == text[:-1]
