"""Events of Microsoft 365 over a socket: each failure gets its exception, whatever the call."""

from __future__ import annotations

import pytest

from providers.errors import (
    AccessDenied,
    EventNotFound,
    EventRefused,
    EventUnreadable,
    InsufficientScopes,
    InvalidCalendarId,
    NoAnswer,
    NotFound,
    OutcomeUnknown,
    ProviderError,
    Unavailable,
)
from tests.providers.event_calls import MEETING, OPERATIONS, TIMED, bare, every_call
from tests.providers.failures import FAILURES
from tests.providers.microsoft.graph_calls import BATCH, DELETE, GET, INSERT, TEAM, UPDATE

NO_EVENT = "AAMkAGnosuchevent="


@pytest.mark.parametrize(
    ("scope", "refused"),
    [
        ("Calendars.ReadBasic", {0, 1, 2, 3, 4, 5}),
        ("Calendars.Read", {3, 4, 5}),
        ("User.Read", set(range(6))),
    ],
)
def test_insufficient_scopes_are_reported_without_a_call(sandbox, new, scope, refused):
    calls = new(scope=scope)
    for number in refused:
        with pytest.raises(InsufficientScopes) as raised:
            every_call(calls, NO_EVENT)[number]()
        assert raised.value.operation == f"calendar.events.{OPERATIONS[number]}"
    assert sandbox.requests().total == 0


@pytest.mark.parametrize("call", range(2, 6))
@pytest.mark.parametrize(
    ("calendar", "error"),
    [("AAMkAGnosuchcalendar=", NotFound), ("nonsense", InvalidCalendarId)],
)
def test_a_missing_calendar_differs_from_a_missing_event(calls, is_fit_for_people, call, calendar, error):
    made = calls.create(TIMED).event
    by_number = {
        2: lambda: calls.event(made.id, calendar),
        3: lambda: calls.create(TIMED, calendar),
        4: lambda: calls.update(made.id, calendar, subject="x"),
        5: lambda: calls.delete(made.id, calendar),
    }
    with pytest.raises(error) as raised:
        by_number[call]()
    assert type(raised.value) is error
    assert raised.value.operation == f"calendar.events.{OPERATIONS[call]}"
    is_fit_for_people(raised.value)


@pytest.mark.parametrize("calendar", ["primary", TEAM])
@pytest.mark.parametrize("event_id", [NO_EVENT, "nonsense"])
def test_a_missing_event_is_reported(calls, is_fit_for_people, calendar, event_id):
    for call in (
        lambda: calls.event(event_id, calendar),
        lambda: calls.update(event_id, calendar, subject="x"),
        lambda: calls.delete(event_id, calendar),
    ):
        with pytest.raises(EventNotFound) as raised:
            call()
        is_fit_for_people(raised.value)


def test_a_cancelled_meeting_is_not_there_but_its_copy_can_be_deleted(new):
    calls = new(MEETING | {"isCancelled": True})
    (copy,) = calls.raw.get("me/events")["value"]
    with pytest.raises(EventNotFound):
        calls.event(copy["id"])
    with pytest.raises(EventNotFound):
        calls.update(copy["id"], subject="x")
    calls.delete(copy["id"])
    assert calls.raw.get("me/events")["value"] == []


FAULTS = [
    *FAILURES,
    ({"status": 403}, AccessDenied),
    ({"status": 400}, ProviderError),
]


@pytest.mark.parametrize(("fault", "error"), FAULTS, ids=str)
def test_a_read_that_fails_is_named(sandbox, new, is_fit_for_people, fault, error):
    calls = new(left=10)
    made = calls.create(TIMED).event
    sandbox.fault(operation=GET, **fault)
    with pytest.raises(ProviderError) as raised:
        calls.event(made.id)
    assert type(raised.value) is error
    is_fit_for_people(raised.value)


@pytest.mark.parametrize(("fault", "error"), [f for f in FAULTS if f[1] is not ProviderError], ids=str)
def test_a_write_that_fails_is_named(sandbox, new, is_fit_for_people, fault, error):
    calls = new(left=10)
    made = calls.create(TIMED).event
    # The HTML answer to a write does not matter, because the event is read back.
    writes = {INSERT: lambda: calls.create(TIMED), UPDATE: lambda: calls.update(made.id, subject="x")}
    unclear = dict.fromkeys(writes, OutcomeUnknown) if error in (NoAnswer, Unavailable) else {}
    expected = {INSERT: EventUnreadable, UPDATE: None} if fault == {"body": "html"} else unclear
    # The lookup of an event whose create got no answer.
    sandbox.fault(operation=BATCH, status=503, retry_after=60)
    for operation, call in writes.items():
        sandbox.fault(operation=operation, **fault)
        wanted = expected.get(operation, error)
        if wanted is None:
            assert call().subject == "x"
            continue
        with pytest.raises(ProviderError) as raised:
            call()
        assert type(raised.value) is wanted
        is_fit_for_people(raised.value)


@pytest.mark.parametrize(("fault", "error"), [f for f in FAULTS if "body" not in f[0]], ids=str)
def test_a_delete_that_fails_is_named_and_the_event_stays(sandbox, new, is_fit_for_people, fault, error):
    calls = new(left=10)
    made = calls.create(TIMED).event
    sandbox.fault(operation=DELETE, **fault)
    with pytest.raises(ProviderError) as raised:
        calls.delete(made.id)
    wanted = {ProviderError: EventRefused, Unavailable: OutcomeUnknown}.get(error, error)
    assert type(raised.value) is wanted
    is_fit_for_people(raised.value)
    assert [bare(event) for event in calls.listed()] == [bare(made)]


REFUSALS = [
    (400, "ErrorPropertyValidationFailure"),
    (400, "ErrorInvalidRequest"),
    (400, "RequestBodyRead"),
    (400, "ErrorOccurrenceCrossingBoundary"),
    (400, "TimeZoneNotSupportedException"),
    (400, "SomethingNew"),
    (413, "ErrorMessageSizeExceeded"),
]


@pytest.mark.parametrize(("status", "code"), REFUSALS)
def test_what_graph_finds_fault_with_is_refused(sandbox, calls, is_fit_for_people, status, code):
    made = calls.create(TIMED).event
    for operation, call in (
        (INSERT, lambda: calls.create(TIMED)),
        (UPDATE, lambda: calls.update(made.id, subject="x")),
    ):
        sandbox.fault(operation=operation, status=status, reason=code)
        with pytest.raises(EventRefused) as raised:
            call()
        is_fit_for_people(raised.value)
