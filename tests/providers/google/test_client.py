"""Google Calendar over a socket: parsed answers, and the exception for each failure."""

from __future__ import annotations

import time
from typing import Any

import pytest

from providers.base import Failed, Read
from providers.errors import (
    InsufficientScopes,
    NoAnswer,
    ProviderError,
    RateLimited,
    Reason,
    Unavailable,
    Unreadable,
)
from providers.google.client import Google
from providers.timestamps import DAY, instant
from tests.providers.addresses import google_at

START = instant("2026-12-03T00:00:00Z")
END = instant("2026-12-04T00:00:00Z")
MEETING = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
NINE, TEN = instant(MEETING["start"]), instant(MEETING["end"])
FREE_BUSY = "google.freebusy.query"


@pytest.fixture
def alice(sandbox: Any, connect: Any) -> Any:
    return connect(sandbox.account("google", "alice@example.com", events=[MEETING]))


def busy(google: Any, account: Any, ids: Any = ("primary",), start: int = START, end: int = END, left=5.0):
    return google.busy(account, ids, start, end, deadline=time.monotonic() + left)


def test_a_busy_day_is_read_with_one_call(sandbox, google, alice):
    assert busy(google, alice)["primary"].busy.pairs() == [(NINE, TEN)]
    assert sandbox.requests().by_operation == {FREE_BUSY: 1}


def test_year_is_read_in_sixty_day_windows_and_joined(sandbox, google, connect):
    seam = START + 60 * DAY
    crossing = {"start": "2027-01-31T23:00:00Z", "end": "2027-02-01T01:00:00Z"}
    assert instant("2027-02-01T00:00:00Z") == seam
    account = connect(sandbox.account("google", "year@example.com", events=[MEETING, crossing]))
    outcome = busy(google, account, end=START + 366 * DAY)["primary"]
    assert outcome.busy.pairs() == [(NINE, TEN), (seam - DAY // 24, seam + DAY // 24)]
    assert sandbox.requests().by_operation == {FREE_BUSY: 7}


def test_hundred_and_one_calendars_take_three_calls(sandbox, google, connect):
    ids = [f"cal{n}@group.calendar.google.com" for n in range(101)]
    calendars = [{"id": "many@example.com", "subject": "Main", "primary": True}]
    calendars += [{"id": each, "subject": each} for each in ids]
    account = connect(sandbox.account("google", "many@example.com", calendars=calendars))
    outcomes = busy(google, account, ids)
    assert list(outcomes) == ids
    assert all(isinstance(each, Read) for each in outcomes.values())
    assert sandbox.requests().by_operation == {FREE_BUSY: 3}


def test_calendar_error_inside_200_fails_only_that_calendar(sandbox, google, connect):
    calendars = [
        {"id": "two@example.com", "subject": "Main", "primary": True},
        {"id": "side@group.calendar.google.com", "subject": "Side"},
    ]
    account = connect(sandbox.account("google", "two@example.com", calendars=calendars))
    sandbox.fault(calendar_id="side@group.calendar.google.com", reason="internalError")
    outcomes = busy(google, account, ["primary", "side@group.calendar.google.com"])
    assert isinstance(outcomes["primary"], Read)
    assert outcomes["side@group.calendar.google.com"].reason is Reason.PROVIDER_ERROR


def test_failed_call_fails_only_its_calendars(script, scripted_account):
    ids = [f"c{n}" for n in range(51)]
    script.say(body={"calendars": {each: {"busy": []} for each in ids}})
    script.say(404, {"error": {"errors": [{"reason": "notFound"}], "code": 404}})
    outcomes = busy(scripted_google(script), scripted_account, ids)
    assert isinstance(outcomes["c49"], Read)
    assert outcomes["c50"].reason is Reason.NOT_FOUND


def test_a_401_of_one_query_fails_only_its_calendars(script, scripted_account):
    """The other query shows that the token is valid."""
    ids = [f"c{n}" for n in range(51)]
    script.say(body={"calendars": {each: {"busy": []} for each in ids}})
    script.say(401, {"error": {"code": 401, "errors": [{"reason": "authError"}]}})
    outcomes = busy(scripted_google(script), scripted_account, ids)
    assert isinstance(outcomes["c49"], Read)
    assert outcomes["c50"].reason is Reason.ACCESS_DENIED
    assert len(script.requests) == 3


def test_when_one_stretch_of_the_range_fails_the_calendar_fails(script, scripted_account):
    script.say(body={"calendars": {"c": {"busy": []}}})
    script.say(body={"calendars": {"c": {"errors": [{"reason": "internalError"}], "busy": []}}})
    outcome = busy(scripted_google(script), scripted_account, ["c"], end=START + 61 * DAY)["c"]
    assert isinstance(outcome, Failed)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"calendars": None},
        {"calendars": {}},
        {"calendars": {"c": {}}},
        {"calendars": {"c": None}},
        {"calendars": {"c": {"busy": None}}},
        {"calendars": {"c": {"busy": [{"start": "2026-12-03T09:00:00Z"}]}}},
        {"calendars": {"c": {"busy": [{"start": "2026-12-03T09:00:00", "end": "2026-12-03T10:00:00"}]}}},
        {"calendars": {"c": {"errors": [{"reason": "newReason"}], "busy": []}}},
        {"calendars": {"c": {"errors": ["odd"], "busy": []}}},
    ],
)
def test_calendar_missing_from_the_answer_fails(script, scripted_account, answer):
    script.say(body=answer)
    outcome = busy(scripted_google(script), scripted_account, ["c"])["c"]
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.PROVIDER_ERROR


FAULTS = [
    ({"status": 503}, Unavailable),
    ({"body": "html"}, Unreadable),
    ({"body": "reset"}, NoAnswer),
    ({"status": 403, "reason": "quotaExceeded"}, RateLimited),
]


@pytest.mark.parametrize(("fault", "error"), FAULTS, ids=str)
@pytest.mark.parametrize("operation", [FREE_BUSY, "google.calendarList.list"])
def test_a_failed_call_is_named_and_never_an_empty_answer(
    sandbox, google, alice, is_fit_for_people, fault, error, operation
):
    sandbox.fault(operation=operation, **fault)
    deadline = time.monotonic() + 10
    calls = {
        FREE_BUSY: lambda: google.busy(alice, ["primary"], START, END, deadline=deadline),
        "google.calendarList.list": lambda: google.calendars(alice, deadline=deadline),
    }
    with pytest.raises(ProviderError) as raised:
        calls[operation]()
    assert type(raised.value) is error
    assert raised.value.operation == operation.replace("google", "calendar")
    is_fit_for_people(raised.value)


def test_insufficient_scopes_are_reported_without_a_call(sandbox, google, connect):
    scope = "https://www.googleapis.com/auth/calendar.events"
    account = connect(sandbox.account("google", "narrow@example.com", scope=scope))
    with pytest.raises(
        InsufficientScopes, match=r"calendar\.freebusy\.query.*free-busy.*auth/calendar\.freebusy"
    ):
        busy(google, account)
    assert sandbox.requests().total == 0


def test_calendars_are_read_past_short_and_empty_pages(sandbox, google, connect):
    calendars = [{"id": "main@example.com", "subject": "Main", "primary": True, "timeZone": "Europe/Berlin"}]
    calendars += [{"id": f"c{n}@group.calendar.google.com", "subject": f"C{n}"} for n in range(600)]
    account = connect(sandbox.account("google", "main@example.com", calendars=calendars))
    found = google.calendars(account, deadline=time.monotonic() + 10)
    assert {each.id for each in found} == {each["id"] for each in calendars}
    assert [(each.id, each.time_zone) for each in found if each.primary] == [
        ("main@example.com", "Europe/Berlin")
    ]
    assert sandbox.requests().by_operation["google.calendarList.list"] > 3


def test_the_main_calendar_comes_with_its_zone(sandbox, google, connect):
    account = connect(sandbox.account("google", "ada@example.com", time_zone="Asia/Kathmandu"))

    main = google.main_calendar(account, deadline=time.monotonic() + 5)

    assert (main.id, main.time_zone) == ("ada@example.com", "Asia/Kathmandu")
    assert sandbox.requests().total == 1


def test_pages_that_never_end_are_an_error_not_a_part_of_the_list(script, scripted_account):
    script.say(body={"kind": "calendar#calendarList", "items": [{"id": "a"}], "nextPageToken": "again"})
    with pytest.raises(ProviderError, match="do not end"):
        scripted_google(script).calendars(scripted_account, deadline=time.monotonic() + 5)


def scripted_google(script: Any) -> Any:
    return Google(google_at(script.url))
