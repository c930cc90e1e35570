"""Google's error answers for events get the same exceptions from every call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from providers.errors import (
    EventNotFound,
    EventRefused,
    EventUnreadable,
    InsufficientScopes,
    InvalidCalendarId,
    NoAnswer,
    NotFound,
    OutcomeUnknown,
    ProviderError,
    RateLimited,
    Unavailable,
)
from providers.google.client import Google
from tests.providers.event_calls import MEETING, OPERATIONS, TIMED, every_call
from tests.providers.failures import FAILURES
from tests.providers.google.google_calls import (
    CALENDARS,
    DELETE,
    DESK,
    GET,
    INSERT,
    LIST,
    NO_EVENT,
    PATCH,
    TEAM,
    GoogleCalls,
    scripted,
)
from tests.providers.sandbox.callers import google

AUTH = "https://www.googleapis.com/auth/"


@pytest.mark.parametrize(
    ("scope", "refused"),
    [
        ("calendar.freebusy", set(range(6))),
        ("calendar.calendarlist", set(range(6))),
        ("calendar.readonly", {3, 4, 5}),
        ("calendar.events.readonly", {3, 4, 5}),
        ("calendar.events.owned", set()),
        ("calendar.events", set()),
    ],
)
def test_insufficient_scopes_are_reported_without_a_call(sandbox, new, scope, refused):
    calls = new(scope=AUTH + scope)
    for number in refused:
        with pytest.raises(InsufficientScopes) as raised:
            every_call(calls, NO_EVENT)[number]()
        assert raised.value.operation == f"calendar.events.{OPERATIONS[number]}"
    assert sandbox.requests().total == 0
    for number in set(range(6)) - refused:
        try:
            every_call(calls, NO_EVENT)[number]()
        except EventNotFound:
            continue


def test_a_stale_token_is_renewed_once_for_all_calendars(sandbox, new, google_endpoints, connect):
    account = sandbox.account("google", "alice@example.com", calendars=CALENDARS, events=[MEETING])
    stale = connect(account, access="ya29.stale")
    calls = GoogleCalls(Google(google_endpoints), stale, google(sandbox, account))
    outcomes = calls.events("primary", TEAM, DESK)
    assert [len(each) for each in outcomes.values()] == [1, 0, 0]
    assert stale.tokens.renewals == 1


@pytest.mark.parametrize("call", range(1, 6))
@pytest.mark.parametrize("changes", [{"subject": "x"}, {"attendees": ()}], ids=str)
def test_a_missing_calendar_differs_from_a_missing_event(calls, is_fit_for_people, call, changes):
    made = calls.create(TIMED).event
    calendar = "nosuch@example.com"
    by_number = {
        1: lambda: calls.find("m", calendar),
        2: lambda: calls.event(made.id, calendar),
        3: lambda: calls.create(TIMED, calendar),
        4: lambda: calls.update(made.id, calendar, **changes),
        5: lambda: calls.delete(made.id, calendar),
    }
    with pytest.raises(NotFound) as raised:
        by_number[call]()
    assert type(raised.value) is NotFound
    assert raised.value.operation == f"calendar.events.{OPERATIONS[call]}"
    is_fit_for_people(raised.value)


BAD_ID = {"error": {"errors": [{"reason": "invalid", "message": "Invalid resource id value."}], "code": 400}}


@pytest.mark.parametrize("call", range(1, 6))
def test_a_calendar_id_that_google_cannot_read_is_invalid(script, scripted_account, is_fit_for_people, call):
    script.say(400, BAD_ID)
    with pytest.raises(ProviderError) as raised:
        every_call(scripted(script, scripted_account), NO_EVENT)[call]()
    assert type(raised.value) is InvalidCalendarId
    is_fit_for_people(raised.value)


@pytest.mark.parametrize("call", [2, 4, 5])
def test_an_event_id_that_google_cannot_read_is_of_no_event(script, scripted_account, call):
    script.say(400, BAD_ID)
    script.say(200, {"timeZone": "UTC"})
    with pytest.raises(EventNotFound):
        every_call(scripted(script, scripted_account), NO_EVENT)[call]()


@pytest.mark.parametrize("calendar", ["primary", TEAM])
def test_a_missing_event_is_reported(calls, is_fit_for_people, calendar):
    for operation, call in (
        ("get", lambda: calls.event(NO_EVENT, calendar)),
        ("update", lambda: calls.update(NO_EVENT, calendar, subject="x")),
        ("update", lambda: calls.update(NO_EVENT, calendar, attendees=())),
        ("update", lambda: calls.update(NO_EVENT, calendar)),
        ("delete", lambda: calls.delete(NO_EVENT, calendar)),
    ):
        with pytest.raises(EventNotFound) as raised:
            call()
        assert raised.value.operation == f"calendar.events.{operation}"
        is_fit_for_people(raised.value)


CHANGES = [{"subject": "x"}, {"attendees": ("bob@x.org",)}, {"meeting": True}, {}]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_what_deleting_has_left_of_an_event_is_not_there(calls, changes):
    made = calls.create(replace(TIMED, meta_id="m")).event
    calls.delete(made.id)
    assert calls.stored(made.id)["status"] == "cancelled"
    for call in (
        lambda: calls.event(made.id),
        lambda: calls.find("m"),
        lambda: calls.update(made.id, **changes),
        lambda: calls.delete(made.id),
    ):
        with pytest.raises(EventNotFound):
            call()
    assert calls.stored(made.id)["status"] == "cancelled"
    assert calls.listed() == []


def test_a_410_is_an_event_that_is_not_there(sandbox, calls):
    made = calls.create(TIMED).event
    for operation in (GET, PATCH, DELETE):
        sandbox.fault(operation=operation, status=410, reason="deleted")
    for call in (
        lambda: calls.event(made.id),
        lambda: calls.update(made.id, subject="x"),
        lambda: calls.delete(made.id),
    ):
        with pytest.raises(EventNotFound):
            call()


FAULTS = [
    *FAILURES,
    ({"status": 403, "reason": "quotaExceeded", "retry_after": 60}, RateLimited),
    ({"status": 400}, ProviderError),
]


@pytest.mark.parametrize(("fault", "error"), FAULTS, ids=str)
@pytest.mark.parametrize("operation", [GET, LIST])
def test_a_read_that_fails_is_named(sandbox, new, is_fit_for_people, operation, fault, error):
    calls = new(left=10)
    made = calls.create(replace(TIMED, meta_id="m")).event
    sandbox.fault(operation=operation, **fault)
    with pytest.raises(ProviderError) as raised:
        calls.event(made.id) if operation == GET else calls.find("m")
    assert type(raised.value) is error
    assert raised.value.operation == operation.replace("google", "calendar")
    is_fit_for_people(raised.value)


# A delete answers with an empty body, which cannot be damaged; a lost answer has its own test.
WRITES = [
    (each, *f) for each in (INSERT, PATCH, DELETE) for f in FAULTS if each != DELETE or "body" not in f[0]
]


@pytest.mark.parametrize(("operation", "fault", "error"), WRITES, ids=str)
def test_a_write_that_fails_is_named(sandbox, new, is_fit_for_people, operation, fault, error):
    calls = new(left=10)
    made = calls.create(TIMED).event
    writes = {
        INSERT: lambda: calls.create(TIMED),
        PATCH: lambda: calls.update(made.id, subject="x"),
        DELETE: lambda: calls.delete(made.id),
    }
    sandbox.fault(operation=operation, **fault)
    sandbox.fault(operation=GET, **fault)
    wanted = {ProviderError: EventRefused}.get(error, error)
    if wanted in (NoAnswer, Unavailable):
        # After an insert, the lookup of the event failed as well.
        wanted = OutcomeUnknown
    with pytest.raises(ProviderError) as raised:
        writes[operation]()
    assert type(raised.value) is (EventUnreadable if fault == {"body": "html"} else wanted)
    assert raised.value.operation == f"calendar.events.{operation.rpartition('.')[2]}".replace(
        "patch", "update"
    )
    is_fit_for_people(raised.value)
    if "body" not in fault:
        sandbox.clear_faults()
        assert calls.listed() == [made]


def test_an_event_that_never_was_has_not_been_deleted_by_trying_twice(sandbox, calls):
    sandbox.fault(operation=DELETE, status=503, times=1)
    with pytest.raises(EventNotFound):
        calls.delete(NO_EVENT)
    assert sandbox.requests().by_operation[DELETE] == 2
