"""Responses name the main calendar by its real id; requests may use the alias ``primary``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from providers.sandbox.client import Sandbox, SandboxAccount
from tests.app.days import DAY, PROVIDERS, meeting
from tests.conftest import Api, connect

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
NEW = {"start": "2026-12-03T14:00:00Z", "end": "2026-12-03T15:00:00Z"}
READ = {"google": "google.freebusy.query", "microsoft": "microsoft.calendarView.list"}


@pytest.fixture(params=[False, True], ids=["first request", "later request"])
def person(request, sandbox, new_user, unique):
    """A user with an account whose main calendar is, or is not yet, known."""

    def make(provider: str) -> tuple[str, SandboxAccount]:
        account = sandbox.account(
            provider, f"{unique('ada')}@example.com", events=[meeting("09:00", "10:00")]
        )
        return new_user(account, identified=request.param), account

    return make


def beside(api: Api, sandbox: Sandbox, user: str, provider: str) -> None:
    """Connect an account of the other provider, which can be read."""
    other = {"google": "microsoft", "microsoft": "google"}[provider]
    connect(api, user, sandbox.account(other, "beside@example.com"))


def created(api: Api, user: str, provider: str, calendar: str) -> Any:
    answer = api.post(f"/users/{user}/calendar/events/{provider}/{calendar}", NEW)
    assert answer.status_code == 201, answer.json
    return answer.json["data"]


@BOTH
def test_the_list_and_events_name_the_same_calendar(provider, person, api):
    user, account = person(provider)
    event = created(api, user, provider, "primary")
    assert event["calendarId"] == account.main_calendar_id
    path = f"/users/{user}/calendar/events/{provider}/primary/{event['id']}"
    assert api.get(path).json["data"]["calendarId"] == account.main_calendar_id
    assert api.put(path, {"subject": "x"}).json["data"]["calendarId"] == account.main_calendar_id
    (listed,) = api.get(f"/users/{user}/calendar").json["data"]
    assert (listed["id"], listed["primary"]) == (account.main_calendar_id, True)


@BOTH
@pytest.mark.parametrize("named", [{"calendarIds": "primary"}, {}])
def test_lists_of_events_name_it(named, provider, person, api):
    user, account = person(provider)
    (event,) = api.get(f"/users/{user}/calendar/events", **DAY, **named).json["data"]
    assert event["calendarId"] == account.main_calendar_id


@BOTH
def test_a_unified_event_names_it(provider, person, api):
    user, account = person(provider)
    made = api.post(f"/users/{user}/calendar/events/meta", NEW)
    assert [copy["calendarId"] for copy in made.json["data"]["events"]] == [account.main_calendar_id]


@BOTH
def test_multi_user_scheduling_names_it(provider, person, api):
    user, account = person(provider)
    body = {"users": [{"id": user}]}
    answer = api.post("/users/scheduling", body, query_string=DAY | {"slotDuration": 30})
    (entry,) = answer.json["data"]
    assert entry["calendarIds"] == [account.main_calendar_id]


@BOTH
def test_a_failure_names_it(provider, person, api, sandbox):
    user, account = person(provider)
    beside(api, sandbox, user, provider)
    sandbox.fault(operation=READ[provider], status=403)
    answer = api.get(f"/users/{user}/calendar/busy", primaryOnly="true", **DAY)
    assert [each["calendarId"] for each in answer.json["failedCalendars"]] == [account.main_calendar_id]


@BOTH
def test_the_header_of_failed_calendars_names_it(provider, person, api, sandbox):
    user, account = person(provider)
    other = {"google": "gone@group.calendar.google.com", "microsoft": "AAMk-gone"}[provider]
    query = {"minDate": DAY["start"], "maxDate": DAY["end"], "calendarIds": f"primary,{other}"}
    answer = api.get(f"/users/{user}/calendar/events", **query)
    assert answer.status_code == 200, answer.json
    assert {each["calendarId"] for each in answer.json} == {account.main_calendar_id}
    assert [each["calendarId"] for each in json.loads(answer.headers["X-Failed-Calendars"])] == [other]


@BOTH
def test_the_real_id_and_the_alias_are_one_calendar(provider, person, api, sandbox):
    user, account = person(provider)
    query = {"calendarIds": f"primary,{account.main_calendar_id}", "maxOverlaps": 1, "slotDuration": 60}
    once = api.get(f"/users/{user}/scheduling", **DAY, **query)
    assert len(once.json["data"]["availableSlots"]) == 24
    sandbox.forget_requests()
    again = api.get(f"/users/{user}/calendar/busy", calendarIds=account.main_calendar_id, **DAY)
    assert again.json["data"]
    # Cached under the alias.
    assert READ[provider] not in sandbox.requests().by_operation


def test_an_account_that_was_never_reached_goes_by_the_alias(api, sandbox, new_user, unique):
    account = sandbox.account("microsoft", f"{unique('ada')}@example.com")
    user = new_user(account, identified=False)
    beside(api, sandbox, user, "microsoft")
    sandbox.fault(provider="microsoft", status=503)
    answer = api.get(f"/users/{user}/calendar/busy", primaryOnly="true", **DAY)
    assert [each["calendarId"] for each in answer.json["failedCalendars"]] == ["primary"]
