"""The list of a user's events when some or all calendars cannot be read."""

from __future__ import annotations

import json

import pytest

from tests.app.days import DAY, PROVIDERS
from tests.app.listing import ADA, BARE, FORMS, SIDE, TEAM, subjects
from tests.conftest import connect

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
LIST = {"google": "google.events.list", "microsoft": "microsoft.calendarView.list"}


@BOTH
def test_a_calendar_that_fails_is_named_and_the_others_are_listed(
    api, sandbox, user_with_two_accounts, provider
):
    calendar = {"google": TEAM, "microsoft": SIDE}[provider]
    sandbox.fault(calendar_id=calendar, operation=LIST[provider], status=403)
    lost = {"google": "g team", "microsoft": "m side"}[provider]
    rest = [each for each in ("g team", "m main", "g main", "m side") if each != lost]

    answer = api.get(f"/users/{user_with_two_accounts}/calendar/events", **DAY)
    assert subjects(answer.json["data"]) == rest
    (failed,) = answer.json["failedCalendars"]
    assert (failed["calendarId"], failed["provider"], failed["reason"]) == (
        calendar,
        provider,
        "accessDenied",
    )

    answer = api.get(f"/users/{user_with_two_accounts}/calendar/events", **BARE)
    assert subjects(answer.json) == rest
    assert json.loads(answer.headers["X-Failed-Calendars"]) == [failed]


def test_a_header_names_as_many_as_proxies_let_through(api, sandbox, new_user):
    odd = [f"{'x' * 60}{number}@group.calendar.google.com" for number in range(40)]
    calendars = [{"primary": True}, *({"id": each} for each in odd)]
    account = sandbox.account("google", ADA["google"], calendars=calendars)
    for each in odd:
        sandbox.fault(calendar_id=each, operation=LIST["google"], status=404)
    user = new_user(account)
    headers = api.get(f"/users/{user}/calendar/events", **BARE).headers
    assert len(headers["X-Failed-Calendars"]) < 4000
    assert 5 < len(json.loads(headers["X-Failed-Calendars"])) < 40
    assert headers["X-Failed-Calendars-Count"] == "40"
    assert len(api.get(f"/users/{user}/calendar/events", **DAY).json["failedCalendars"]) == 40


def test_a_name_that_no_header_can_hold_is_escaped(api, sandbox, new_user):
    odd = "日本@example.com"
    account = sandbox.account("google", ADA["google"], calendars=[{"primary": True}, {"id": odd}])
    sandbox.fault(calendar_id=odd, operation=LIST["google"], status=404)
    answer = api.get(f"/users/{new_user(account)}/calendar/events", **BARE)
    assert answer.headers["X-Failed-Calendars"].isascii()
    assert [each["calendarId"] for each in json.loads(answer.headers["X-Failed-Calendars"])] == [odd]


@BOTH
def test_an_account_whose_grant_is_gone_is_named(api, sandbox, user_with_two_accounts, provider):
    sandbox.revoke(ADA[provider])
    for headers in ({}, {"Cache-Control": "no-cache"}):
        answer = api.get(f"/users/{user_with_two_accounts}/calendar/events", headers=headers, **DAY)
        assert len(answer.json["data"]) == 2
        assert {each["reason"] for each in answer.json["failedCalendars"]} == {"authorizationInvalid"}


@BOTH
def test_an_account_that_may_not_be_listed_is_named_with_its_reason(
    api, sandbox, user_with_two_accounts, provider
):
    scopes = {"google": ["https://www.googleapis.com/auth/calendar.freebusy"], "microsoft": ["User.Read"]}
    connect(api, user_with_two_accounts, sandbox.account(provider, ADA[provider]), scope=scopes[provider])
    answer = api.get(f"/users/{user_with_two_accounts}/calendar/events", **DAY)
    assert [each["reason"] for each in answer.json["failedCalendars"]] == ["insufficientScopes"]
    assert len(answer.json["data"]) == 2


@BOTH
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({"status": 403}, 403),
        ({"status": 503, "retry_after": 60}, 502),
        ({"status": 429, "retry_after": 60}, 429),
        ({"status": 404}, 404),
    ],
    ids=str,
)
def test_list_without_readable_calendar_fails(api, sandbox, new_user, provider, fault, status):
    user = new_user(sandbox.account(provider, ADA[provider]))
    sandbox.fault(operation=LIST[provider], **fault)
    expected = api.get(f"/users/{user}/calendar/events", **DAY)
    assert (expected.status_code, expected.json["data"]) == (status, None)
    bare_told = api.get(f"/users/{user}/calendar/events", **BARE)
    assert bare_told.status_code == status
    assert bare_told.json == expected.json["error"]
    for answer in (expected, bare_told):
        assert answer.headers.get("Retry-After") == ("60" if status == 429 else None)


@pytest.mark.parametrize(
    ("query", "status", "expected"),
    [
        ({}, 400, "minDate is required"),
        ({"start": "2026-12-03"}, 400, "end is required"),
        ({"start": "2026-12-04", "end": "2026-12-03"}, 400, "start must be before end"),
        ({"start": "2026-01-01", "end": "2027-02-01"}, 400, "The range from start to end must not be longer"),
        ({"start": "soon", "end": "2026-12-03"}, 400, "start must be an ISO 8601 date"),
        ({**DAY, "provider": "apple"}, 400, "provider"),
        ({**DAY, "calendarIds": "x" * 1025}, 400, "calendarIds"),
        ({"minDate": "2026-12-03"}, 400, "maxDate is required"),
        ({"maxDate": "2026-12-03"}, 400, "minDate is required"),
        ({**DAY, "minDate": "2026-12-03"}, 400, "maxDate is required"),
        ({"minDate": "2026-12-04", "maxDate": "2026-12-03"}, 400, "minDate must be before maxDate"),
        ({"minDate": "0", "maxDate": "99999999999999"}, 400, "maxDate must lie in the years"),
        ({"minDate": "-5", "maxDate": "2026-12-03"}, 400, "minDate must be an ISO 8601 date"),
        (
            {"minDate": "1796256000", "maxDate": "1796342400000"},
            400,
            "minDate must be milliseconds since 1970",
        ),
        ({"minDate": "9999999999", "maxDate": "2026-12-03"}, 400, "minDate must be milliseconds since 1970"),
        ({**BARE, "timeZone": "Mars/Olympus"}, 400, "timeZone"),
    ],
    ids=str,
)
def test_invalid_queries_are_refused_in_the_requested_form(
    api, user_with_two_accounts, query, status, expected
):
    answer = api.get(f"/users/{user_with_two_accounts}/calendar/events", **query)
    assert answer.status_code == status
    # Without any date, the request has the first form.
    bare_form = not query or not {"minDate", "maxDate"}.isdisjoint(query)
    sentence = answer.json if bare_form else answer.json["error"]
    assert isinstance(sentence, str)
    assert sentence.startswith(expected)


@FORMS
def test_a_user_that_is_not_there_and_a_key_that_is_none(api, form):
    path = "/users/nobody/calendar/events"
    unknown = api.get(path, **form)
    no_key = api.client.get(f"/v1{path}", query_string=form)
    bad_id = api.get("/users/a/calendar/events", **form)
    assert [each.status_code for each in (unknown, no_key, bad_id)] == [404, 401, 404]
    sentences = [each.json if form is BARE else each.json["error"] for each in (unknown, no_key, bad_id)]
    assert sentences[0] == "User not found"
    assert all(isinstance(each, str) for each in sentences)


@BOTH
def test_account_without_requested_calendar_is_not_called(api, sandbox, user_with_two_accounts, provider):
    """It is not called either, even if its grant is revoked."""
    other = {"google": "microsoft", "microsoft": "google"}[provider]
    sandbox.revoke(ADA[other])
    assert api.get(f"/users/{user_with_two_accounts}/calendar/events", **DAY).json["failedCalendars"]
    calendar = {"google": TEAM, "microsoft": SIDE}[provider]
    answer = api.get(f"/users/{user_with_two_accounts}/calendar/events", calendarIds=calendar, **DAY)
    assert answer.status_code == 200, answer.text
    assert answer.json["failedCalendars"] == []
    assert len(answer.json["data"]) == 1

    named = {"google": SIDE, "microsoft": TEAM}[provider]
    refused = api.get(
        f"/users/{user_with_two_accounts}/calendar/events", calendarIds=f"{calendar},{named}", **DAY
    )
    assert [each["calendarId"] for each in refused.json["failedCalendars"]] == [named]
