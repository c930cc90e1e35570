"""The sentence of each verdict, in the zone of the request, with dates where they differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.availability import explanation, explanation_text
from app.availability.explanation_text import UnreadCalendar
from app.availability.result import BusyResult
from app.availability.selection import Target, main_calendar
from providers.base import PRIMARY
from scheduling.explain import Verdict, explain
from scheduling.intervals import Groups
from scheduling.query import Query
from scheduling.windows import DAY, MINUTE, Window
from store.cache.busy_cache import CalendarKey
from store.sql.queries.connection_rows import ConnectionRef
from store.sql.queries.holds import ActiveTime
from tests.scheduling.strategies import at

# A Monday in Berlin, one hour ahead of UTC.
BERLIN = "Europe/Berlin"
WORK = Window.daily(540, 1020)
WEEK = (Window(frozenset({0, 1}), 540, 1020),)
DAYS = Query(
    at("2026-11-23T00:00+01:00"), at("2026-11-26T00:00+01:00"), 30 * MINUTE, zone=BERLIN, each_day=WORK
)
CALENDARS = ["ada@example.com", "calendar AAMk of ada@contoso.example", "c", "d", "e"]


def local(text):
    """A time in Berlin in November: ``10:20`` on the Monday, or ``24T10:20`` on another day."""
    day, time = text.split("T") if "T" in text else ("23", text)
    return at(f"2026-11-{day}T{time}+01:00")


def explained(query, text, *calendars):
    """The verdict and its sentence, without its first words on the Monday."""
    busy = [[(local(start), local(end)) for start, end in each] for each in calendars]
    groups, owners = Groups.of(busy), np.zeros(len(busy), np.int64)
    (found,) = explain(query, local(text), groups, owners, 1)
    sentence = explanation_text.verdict_sentence(found, query, CALENDARS)
    opening = f"{text} on Monday 23 November 2026 (Europe/Berlin) is "
    return found.verdict, sentence.removeprefix(opening).removeprefix("not offered: ")


TEN = ("10:00", "10:30")
PADDED = replace(DAYS, padding_before=10 * MINUTE, padding_after=10 * MINUTE)
ROOMY = replace(PADDED, max_overlaps=1)
RARE = replace(DAYS, step=60 * MINUTE)
CLOCK = replace(DAYS, align_clock=True, each_day=None)
WHOLE = replace(DAYS, each_day=None)


# By verdict: the query, the moment, the busy periods of each calendar, and the rest of the sentence.
SENTENCES = {
    "offered": [
        (DAYS, "09:10", (), "within a slot that is offered, from 09:00 to 09:30."),
        (DAYS, "09:30", (), "offered: it is the start of the slot from 09:30 to 10:00."),
        (
            replace(DAYS, step=10 * MINUTE),
            "09:20",
            (),
            "offered: it is the start of the slot from 09:20 to 09:50.",
        ),
    ],
    "outsideRange": [
        (
            DAYS,
            "22T10:00",
            (),
            "10:00 on Sunday 22 November 2026 (Europe/Berlin) is not offered: the range asked for begins at"
            " 00:00 on Monday 23 November.",
        ),
        (replace(DAYS, end=local("12:00")), "12:00", (), "the range asked for ends at 12:00."),
    ],
    "outsideWindow": [
        (DAYS, "08:20", (), "it lies outside the daily window, which opens at 09:00."),
        (
            DAYS,
            "17:00",
            (),
            "it lies outside the daily window, which closes at 17:00 and opens again at 09:00 on Tuesday 24"
            " November.",
        ),
        (
            replace(DAYS, windows=WEEK, each_day=None),
            "25T10:00",
            (),
            "10:00 on Wednesday 25 November 2026 (Europe/Berlin) is not offered: it lies outside the weekly"
            " schedule, which closes at 17:00 on Tuesday 24 November.",
        ),
        (
            replace(DAYS, windows=(), each_day=None),
            "10:00",
            (),
            "it lies outside the weekly schedule, which is never open in the range asked for.",
        ),
    ],
    "busy": [
        (DAYS, "10:20", ([TEN],), "ada@example.com is busy from 10:00 to 10:30."),
        (
            DAYS,
            "10:20",
            ([TEN], [("09:00", "11:00")]),
            "calendar AAMk of ada@contoso.example is busy from 09:00 to 11:00, and 1 more calendar is busy "
            "then.",
        ),
        (
            DAYS,
            "10:20",
            ([TEN], [TEN], [TEN], [("09:00", "09:30")]),
            "ada@example.com is busy from 10:00 to 10:30, and 2 more calendars are busy then.",
        ),
        (
            DAYS,
            "10:20",
            ([("22T22:00", "24T01:00")],),
            "ada@example.com is busy until 01:00 on Tuesday 24 November.",
        ),
        (
            DAYS,
            "24T10:20",
            ([("24T10:00", "27T01:00")],),
            "10:20 on Tuesday 24 November 2026 (Europe/Berlin) is not offered: ada@example.com is busy from"
            " 10:00 on.",
        ),
        (
            DAYS,
            "10:20",
            ([("20T10:00", "27T01:00")],),
            "ada@example.com is busy throughout the range asked for.",
        ),
        (
            DAYS,
            "10:20",
            ([("10:00", "24T10:30")],),
            "ada@example.com is busy from 10:00 on Monday 23 November to 10:30 on Tuesday 24 November.",
        ),
        (DAYS, "16:30", ([("16:00", "24T00:00")],), "ada@example.com is busy from 16:00 to midnight."),
    ],
    "padding": [
        (
            PADDED,
            "10:35",
            ([TEN],),
            "ada@example.com is busy from 10:00 to 10:30, and 10 minutes of padding keep it blocked until "
            "10:40.",
        ),
        (
            PADDED,
            "09:50",
            ([TEN],),
            "ada@example.com is busy from 10:00 to 10:30, and 10 minutes of padding keep it blocked from "
            "09:50 on.",
        ),
        (
            replace(DAYS, padding_before=MINUTE, padding_after=MINUTE),
            "10:30",
            ([TEN],),
            "ada@example.com is busy from 10:00 to 10:30, and 1 minute of padding keeps it blocked until "
            "10:31.",
        ),
        (
            replace(DAYS, padding_before=5 * MINUTE, padding_after=20 * MINUTE),
            "10:40",
            ([TEN],),
            "ada@example.com is busy from 10:00 to 10:30, and 20 minutes of padding keep it blocked until "
            "10:50.",
        ),
        (
            replace(DAYS, padding_before=5 * MINUTE, padding_after=20 * MINUTE),
            "09:57",
            ([TEN],),
            "ada@example.com is busy from 10:00 to 10:30, and 5 minutes of padding keep it blocked from "
            "09:55 on.",
        ),
    ],
    "tooManyOverlaps": [
        (
            replace(ROOMY, padding_before=5 * MINUTE, padding_after=20 * MINUTE),
            "10:45",
            ([TEN], [("10:40", "11:00")]),
            "2 busy periods, with padding of 5 minutes before and 20 minutes after each, overlap there, and"
            " 1 may: ada@example.com from 10:00 to 10:30 and calendar AAMk of ada@contoso.example from "
            "10:40 to 11:00.",
        ),
        (
            ROOMY,
            "10:35",
            ([TEN], [("10:40", "11:00")]),
            "2 busy periods, with 10 minutes of padding on both sides, overlap there, and 1 may: "
            "ada@example.com from 10:00 to 10:30 and calendar AAMk of ada@contoso.example from 10:40 to "
            "11:00.",
        ),
        (
            replace(DAYS, max_overlaps=3),
            "10:10",
            ([TEN],) * 5,
            "5 busy periods overlap there, and 3 may: ada@example.com from 10:00 to 10:30, calendar AAMk of"
            " ada@contoso.example from 10:00 to 10:30, c from 10:00 to 10:30 and 2 more.",
        ),
    ],
    "tooSoon": [
        (
            replace(DAYS, not_before=local("11:00")),
            "10:35",
            ([TEN],),
            "with the minimum notice, no slot starts before 11:00.",
        ),
    ],
    "beyondLimit": [
        (
            replace(DAYS, limit=2),
            "10:35",
            (),
            "a slot would cover it, but only the first 2 slots are returned, the last of which starts at "
            "09:30.",
        ),
        (
            replace(DAYS, limit=1),
            "10:05",
            (),
            "a slot would cover it, but only the first slot is returned, which starts at 09:00.",
        ),
    ],
    "remainder": [
        (
            replace(DAYS, limit=1),
            "11:20",
            ([TEN, ("11:25", "13:00")],),
            "no slot of the free time from 10:30 to 11:25 covers it.",
        ),
        (
            DAYS,
            "09:40",
            ([("09:50", "11:00")],),
            "the last slot of the free time from 09:00 to 09:50 ends at 09:30, and the 20 minutes after it "
            "are too short for another.",
        ),
        (
            DAYS,
            "09:30",
            ([("09:31", "11:00")],),
            "the last slot of the free time from 09:00 to 09:31 ends at 09:30, and the 1 minute after it is"
            " too short for another.",
        ),
        (
            RARE,
            "16:45",
            (),
            "the last slot of the free time from 09:00 to 17:00 ends at 16:30, and the next would start too"
            " late: slots of 30 minutes start every 60 minutes.",
        ),
    ],
    "tooShort": [
        (
            DAYS,
            "10:15",
            ([("09:00", "10:10"), ("10:30", "11:00")],),
            "only 20 minutes are free, from 10:10 to 10:30, and a slot takes 30 minutes.",
        ),
        (
            DAYS,
            "10:10",
            ([("09:00", "10:10"), ("10:11", "11:00")],),
            "only 1 minute is free, from 10:10 to 10:11, and a slot takes 30 minutes.",
        ),
    ],
    "betweenSlots": [
        (
            RARE,
            "09:45",
            (),
            "slots of 30 minutes start every 60 minutes, and none that fits into the free time from 09:00 "
            "to 17:00 covers it; the next slot starts at 10:00.",
        ),
        (
            CLOCK,
            "09:15",
            ([("22T00:00", "09:10")],),
            "slots start where the clock shows a multiple of 30 minutes, and none that fits into the free "
            "time from 09:10 on Monday 23 November to 00:00 on Thursday 26 November covers it; the next "
            "slot starts at 09:30.",
        ),
        (
            CLOCK,
            "25T23:15",
            ([("22T00:00", "25T23:10"), ("25T23:50", "27T00:00")],),
            "23:15 on Wednesday 25 November 2026 (Europe/Berlin) is not offered: slots start where the "
            "clock shows a multiple of 30 minutes, and none that fits into the free time from 23:10 to "
            "23:50 covers it.",
        ),
    ],
}


@pytest.mark.parametrize(
    ("verdict", "query", "moment", "calendars", "sentence"),
    [(verdict, *row) for verdict, rows in SENTENCES.items() for row in rows],
)
def test_each_verdict_has_a_sentence(verdict, query, moment, calendars, sentence):
    assert explained(query, moment, *calendars) == (verdict, sentence)


def test_every_verdict_is_in_the_table():
    assert SENTENCES.keys() == set(Verdict)


def sentence_at(query, moment, *busy):
    (found,) = explain(query, moment, Groups.of([busy]), np.zeros(1, np.int64), 1)
    return explanation_text.verdict_sentence(found, query, CALENDARS)


def test_times_are_as_fine_as_they_are():
    query = Query(at("2026-11-23T09:00:00.250"), at("2026-11-23T09:01:30"), MINUTE)
    assert sentence_at(query, at("2026-11-23T09:01:10")) == (
        "09:01:10 on Monday 23 November 2026 (UTC) is not offered: the last slot of the free time from "
        "09:00:00.250 to 09:01:30 ends at 09:01:00.250, and the 29.75 seconds after it are too short for "
        "another."
    )
    short = Query(query.start, query.end, 2 * MINUTE)
    assert "only 1 minute 29.75 seconds are free" in sentence_at(short, query.start)


def test_a_time_that_the_clock_shows_twice_has_its_offset():
    day = at("2026-10-25")
    query = Query(day, day + DAY, 30 * MINUTE, zone=BERLIN)
    period = at("2026-10-25T00:30"), at("2026-10-25T01:45")
    assert sentence_at(query, at("2026-10-25T01:10"), period) == (
        "02:10 (UTC+01:00) on Sunday 25 October 2026 (Europe/Berlin) is not offered: "
        "ada@example.com is busy from "
        "02:30 (UTC+02:00) to 02:45 (UTC+01:00)."
    )


def test_a_date_of_another_year_has_its_year():
    start = at("2026-12-31T12:00")
    query = Query(start, start + DAY, 30 * MINUTE, each_day=Window.daily(540, 660))
    assert sentence_at(query, start).endswith("which opens at 09:00 on Friday 1 January 2027.")


NINE = local("09:00")
TEAM = UnreadCalendar("google", "team@example.com", "accessDenied")
HERS = UnreadCalendar("microsoft", "primary", "rateLimited")


@pytest.mark.parametrize(
    ("unread", "expected"),
    [
        ([TEAM], "Google's calendar team@example.com could not be read (access is denied)"),
        (
            [TEAM, HERS],
            "Google's calendar team@example.com (access is denied) and the main calendar at Microsoft "
            "(the provider's limit is reached) could not be read",
        ),
        (
            [TEAM, HERS, TEAM, HERS, TEAM],
            "Google's calendar team@example.com (access is denied), the main calendar at Microsoft "
            "(the provider's limit is reached), "
            "Google's calendar team@example.com (access is denied) and 2 more could not be read",
        ),
    ],
)
def test_calendars_that_could_not_be_read_are_named_with_the_reason(unread, expected):
    assert explanation_text.unread_sentence(NINE, BERLIN, unread) == (
        f"09:00 on Monday 23 November 2026 (Europe/Berlin) is not offered: {expected}, so nothing is offered."
    )


def test_calendars_that_do_not_count_are_named():
    assert explanation_text.left_out_sentence([TEAM]) == (
        "Not counted, because unread: Google's calendar team@example.com (access is denied)."
    )


def test_a_user_without_calendars():
    assert explanation_text.no_calendars_sentence(NINE, BERLIN) == (
        "09:00 on Monday 23 November 2026 (Europe/Berlin) is not offered: no calendar is connected, "
        "so nothing is "
        "offered."
    )


OPENING, LATER, NOON = (at(f"2026-11-23T{time}:00") for time in ("09", "10", "12"))
QUERY = Query(OPENING, NOON, 60 * MINUTE)
BUSY = (OPENING, LATER)


def account(name):
    return ConnectionRef(f"id-{name}", name, "google", f"{name}@example.com", frozenset(), True)


def busy_result(requests):
    """A result of requests, each a list of calendars with their busy periods."""
    rows = [(n, target, busy) for n, request in enumerate(requests) for target, busy in request]
    return BusyResult(
        targets=[target for _, target, _ in rows],
        user_of=np.array([n for n, _, _ in rows], np.int64),
        user_count=len(requests),
        busy=Groups.of([busy for _, _, busy in rows]),
        unread={},
        failed_connections={},
        oldest_read=None,
    )


def test_held_time_is_free_when_the_last_of_its_holds_has_expired():
    expiries = [OPENING - 20 * MINUTE, OPENING - 10 * MINUTE, OPENING - 15 * MINUTE]
    holds = [ActiveTime(f"hold_{number}", *BUSY, each) for number, each in enumerate(expiries)]
    result = replace(busy_result([[(main_calendar(account("held")), [])]]), held={0: holds})

    found = explanation.explain_user(result, QUERY, OPENING)

    assert [each.expires_at for each in found.held] == expiries
    assert found.sentence.endswith("The hold expires at 08:50.")


def test_a_calendar_without_an_address_is_named_by_its_id():
    nameless = account("x")
    nameless = ConnectionRef(nameless.id, "x", "microsoft", None, frozenset(), True)
    calendar = Target(nameless, CalendarKey(nameless.id, "AAMk"), "AAMk")
    found = explanation.explain_user(busy_result([[(calendar, [BUSY])]]), QUERY, OPENING)
    assert found.sentence.endswith("not offered: AAMk is busy until 10:00.")
    main = Target(nameless, CalendarKey(nameless.id, PRIMARY), PRIMARY)
    found = explanation.explain_user(busy_result([[(main, [BUSY])]]), QUERY, OPENING)
    assert found.sentence.endswith("not offered: the main calendar at Microsoft is busy until 10:00.")
