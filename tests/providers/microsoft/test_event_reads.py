"""Events of Microsoft 365 over a socket: listed, read one by one, and found by metaId."""

from __future__ import annotations

import json

import pytest

from providers.errors import Reason, Unavailable
from providers.microsoft import properties
from providers.timestamps import DAY
from tests.providers.event_calls import ALL_DAY, END, MEETING, START, bare
from tests.providers.microsoft.graph_calls import GOOD, SETTINGS, TEAM, VIEW, scripted

# Lists


def test_all_pages_of_a_calendar_are_read(sandbox, new):
    minutes = [f"2026-12-03T{n // 60:02}:{n % 60:02}:00Z" for n in range(600)]
    calls = new(*({"subject": f"{n}", "start": at, "end": at} for n, at in enumerate(minutes)))
    assert [event.subject for event in calls.listed()] == [str(n) for n in range(600)]
    assert sandbox.requests().by_operation[VIEW] == 3


@pytest.mark.parametrize("may_read", [False, True])
def test_where_the_zone_may_not_be_read_days_are_those_of_utc(sandbox, new, may_read):
    calls = new(ALL_DAY, time_zone="Asia/Tokyo", scope=None if may_read else "Calendars.Read")
    if may_read:
        sandbox.fault(operation=SETTINGS, status=403)
    (event,) = calls.listed(START - DAY, END + DAY)
    assert (event.start, event.end) == (START, END)
    assert bare(calls.event(event.id)) == bare(event)
    assert (SETTINGS in sandbox.requests().by_operation) is may_read


def test_while_the_zone_cannot_be_read_only_calendars_with_days_fail(sandbox, new):
    calls = new(MEETING, ALL_DAY | {"calendarId": TEAM}, left=10)
    (day,) = calls.events(TEAM)[TEAM]
    sandbox.fault(operation=SETTINGS, status=500)
    outcomes = calls.events("primary", TEAM)
    assert [event.subject for event in outcomes["primary"]] == ["Review"]
    assert outcomes[TEAM].reason is Reason.PROVIDER_ERROR
    with pytest.raises(Unavailable):
        calls.event(day.id, TEAM)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"status": 404, "reason": "ErrorItemNotFound"}, Reason.NOT_FOUND),
        ({"status": 400, "reason": "ErrorInvalidIdMalformed"}, Reason.INVALID_CALENDAR_ID),
        ({"status": 403}, Reason.ACCESS_DENIED),
        ({"status": 404, "reason": "MailboxNotEnabledForRESTAPI"}, Reason.MAILBOX_UNAVAILABLE),
        ({"status": 429, "retry_after": 60}, Reason.RATE_LIMITED),
        ({"status": 503}, Reason.PROVIDER_ERROR),
    ],
    ids=str,
)
def test_a_calendar_that_fails_is_named_and_the_others_are_read(sandbox, new, fault, reason):
    calls = new(MEETING, MEETING | {"calendarId": TEAM}, left=10)
    sandbox.fault(calendar_id=TEAM, operation=VIEW, **fault)
    outcomes = calls.events("primary", TEAM, "primary")
    assert list(outcomes) == ["primary", TEAM]
    assert len(outcomes["primary"]) == 1
    assert outcomes[TEAM].reason is reason
    assert outcomes[TEAM].operation == "calendar.events.list"


@pytest.mark.parametrize(
    "bad",
    [
        None,
        {},
        GOOD | {"id": None},
        GOOD | {"attendees": "bob"},
        GOOD | {"singleValueExtendedProperties": [{}]},
        GOOD | {"start": {"dateTime": "soon", "timeZone": "UTC"}},
        GOOD | {"start": {"dateTime": "2026-12-03T09:00:00", "timeZone": "Customized Time Zone"}},
    ],
    ids=str,
)
def test_malformed_event_is_left_out_of_the_list(script, scripted_account, bad):
    parts = [{"id": "settings", "status": 200, "body": {"timeZone": "UTC"}}]
    parts += [{"id": "0", "status": 200, "body": {"value": [GOOD]}}]
    parts += [{"id": "1", "status": 200, "body": {"value": [GOOD, bad]}}]
    script.say(body={"responses": parts})
    outcomes = scripted(script, scripted_account).events("good", "bad")
    assert [event.id for event in outcomes["good"]] == ["AAMk1"]
    assert [event.id for event in outcomes["bad"]] == ["AAMk1"]


def test_every_call_prefers_immutable_ids_text_and_utc(script, scripted_account):
    script.say(body={"responses": [{"id": "0", "status": 200, "body": {"value": []}}]})
    calls = scripted(script, scripted_account)
    calls.events("a/b=?c")
    parts = json.loads(script.requests[0]["body"])["requests"]
    (view,) = (part for part in parts if part["id"] == "0")
    wanted = ['IdType="ImmutableId"', 'outlook.timezone="UTC"', 'outlook.body-content-type="text"']
    assert view["headers"]["Prefer"].split(", ") == wanted
    assert view["url"].startswith("/me/calendars/a%2Fb%3D%3Fc/calendarView?startDateTime=2026-12-02T")
    script.answers.clear()
    script.say(body=GOOD)
    for call in (calls.event, lambda event_id: calls.update(event_id, subject="x")):
        call("e/1+%")
    assert {each["path"].partition("?")[0] for each in script.requests[1:]} == {
        "/me/calendar/events/e%2F1%2B%25"
    }
    assert [each["headers"]["Prefer"].split(", ") for each in script.requests[1:]] == [wanted] * 4


def test_later_pages_have_the_same_preferences(script, scripted_account):
    settings = {"id": "settings", "status": 200, "body": {"timeZone": "UTC"}}
    more = {"value": [GOOD], "@odata.nextLink": f"{script.url}/me/calendar/calendarView?$skip=1"}
    script.say(body={"responses": [settings, {"id": "0", "status": 200, "body": more}]})
    script.say(body={"responses": [{"id": "0", "status": 200, "body": {"value": [GOOD | {"id": "AAMk2"}]}}]})
    found = scripted(script, scripted_account).events()["primary"]
    assert [event.id for event in found] == ["AAMk1", "AAMk2"]
    first, second = (json.loads(each["body"])["requests"][-1] for each in script.requests)
    assert second["headers"] == first["headers"]


# One event


@pytest.mark.parametrize("answer", [[], {}, GOOD | {"id": 7}, {"id": "AAMk1"}])
def test_an_answer_that_is_no_event_is_unreadable(script, scripted_account, answer):
    script.say(body=answer)
    with pytest.raises(Unavailable, match="unreadable"):
        scripted(script, scripted_account).event("AAMk1")


# By metaId


def test_of_several_the_first_created_is_found_over_all_pages(sandbox, calls, monkeypatch):
    monkeypatch.setattr("providers.microsoft.events.EVENTS_PER_PAGE", 2)
    carried = [{"id": properties.META_ID, "value": "m"}]
    first, *_ = (calls.post(singleValueExtendedProperties=carried)["id"] for _ in range(5))
    sandbox.forget_requests()
    assert calls.find("m").id == first
    assert sandbox.requests().by_operation["microsoft.events.list"] == 3
    calls.delete(first)
    assert calls.find("m").id != first
