"""Explanations of a given lookup result, without an HTTP request."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.availability import explanation
from app.availability.result import BusyResult, UnreadCalendar
from app.availability.selection import Target, main_calendar
from providers.base import PRIMARY, Failed
from providers.errors import Reason
from scheduling.intervals import Groups
from scheduling.query import Query
from scheduling.windows import MINUTE
from store.cache.busy_cache import CalendarKey
from store.sql.queries.connection_rows import ConnectionRef
from store.sql.queries.holds import ActiveTime
from tests.scheduling.strategies import at

NINE, TEN, NOON = (at(f"2026-11-23T{time}:00") for time in ("09", "10", "12"))
QUERY = Query(NINE, NOON, 60 * MINUTE)
SILENT = Failed(Reason.PROVIDER_ERROR, "Google has not answered in time")
BUSY = (NINE, TEN)


def account(name):
    return ConnectionRef(f"id-{name}", name, "google", f"{name}@example.com", frozenset(), True)


def side(name):
    """A calendar that is not the main one."""
    connection = account(name)
    return Target(connection, CalendarKey(connection.id, "side"), "side")


def busy_result(requests, unread=(), accounts=()):
    """A result of requests, each a list of calendars with their busy periods."""
    rows = [(n, target, busy) for n, request in enumerate(requests) for target, busy in request]
    return BusyResult(
        targets=[target for _, target, _ in rows],
        user_of=np.array([n for n, _, _ in rows], np.int64),
        user_count=len(requests),
        busy=Groups.of([busy for _, _, busy in rows]),
        unread={index: UnreadCalendar(SILENT) for index in unread},
        failed_connections={n: [(account(f"user{n}"), SILENT)] for n in accounts},
        oldest_read=None,
    )


@pytest.fixture
def several():
    """Requests: free in two calendars; no calendars; busy in the second one; main calendar unread."""
    return busy_result(
        [
            [(main_calendar(account("free")), []), (side("free"), [(TEN, NOON)])],
            [],
            [(main_calendar(account("busy")), []), (side("busy"), [BUSY])],
            [(main_calendar(account("ill")), []), (side("ill"), [BUSY])],
        ],
        unread=[4],
    )


def test_all_requests_are_explained_in_order(several):
    found = explanation.explain_all_users(several, QUERY, NINE)

    assert [each.reason for each in found] == ["offered", "noCalendars", "busy", "calendarUnread"]
    assert [each.offered for each in found] == [True, False, False, False]
    assert found[0].facts.slot == (NINE, TEN)
    assert found[1].facts is found[3].facts is None


def test_one_request_is_explained_as_among_all(several):
    together = explanation.explain_all_users(several, QUERY, NINE)
    assert together == [explanation.explain_user(several, QUERY, NINE, n) for n in range(4)]


def test_blocking_periods_have_a_calendar_if_another_is_unread(several):
    _, _, busy, ill = explanation.explain_all_users(several, QUERY, NINE)
    for found, name in ((busy, "busy"), (ill, "ill")):
        ((target, period),) = found.blocking
        assert target == side(name)
        assert (period.calendar, period.start, period.end) == (1, *BUSY)
    assert busy.sentence.endswith("calendar side of busy@example.com is busy until 10:00.")
    assert "Google's calendar ill@example.com could not be read (providerError)" in ill.sentence


def test_an_account_without_a_calendar_list_is_unread():
    found = explanation.explain_user(busy_result([[]], accounts=[0]), QUERY, NINE)
    assert found.reason == "calendarUnread"
    assert "Google's calendar user0@example.com could not be read" in found.sentence


@pytest.mark.parametrize(
    ("partial", "reason"), [(False, "calendarUnread"), (True, "busy")], ids=["closed", "partial"]
)
def test_partial_counts_what_was_read(several, partial, reason):
    assert explanation.explain_user(several, QUERY, NINE, 3, partial=partial).reason == reason


def test_held_time_is_free_when_the_last_of_its_holds_has_expired():
    expiries = [NINE - 20 * MINUTE, NINE - 10 * MINUTE, NINE - 15 * MINUTE]
    holds = [ActiveTime(f"hold_{number}", *BUSY, each) for number, each in enumerate(expiries)]
    result = replace(busy_result([[(main_calendar(account("held")), [])]]), held={0: holds})

    found = explanation.explain_user(result, QUERY, NINE)

    assert [each.expires_at for each in found.held] == expiries
    assert found.sentence.endswith("The hold expires at 08:50.")


def test_a_calendar_without_an_address_is_named_by_its_id():
    nameless = account("x")
    nameless = ConnectionRef(nameless.id, "x", "microsoft", None, frozenset(), True)
    calendar = Target(nameless, CalendarKey(nameless.id, "AAMk"), "AAMk")
    found = explanation.explain_user(busy_result([[(calendar, [BUSY])]]), QUERY, NINE)
    assert found.sentence.endswith("not offered: AAMk is busy until 10:00.")
    main = Target(nameless, CalendarKey(nameless.id, PRIMARY), PRIMARY)
    found = explanation.explain_user(busy_result([[(main, [BUSY])]]), QUERY, NINE)
    assert found.sentence.endswith("not offered: the main calendar at Microsoft is busy until 10:00.")
