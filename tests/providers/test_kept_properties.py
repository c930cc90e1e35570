"""What other applications have written with an event stays when Almanac changes it, or splits its series."""

from __future__ import annotations

import pytest

from providers.errors import EventRefused
from providers.events import Changes, Scope
from tests.providers.event_calls import EVERYTHING
from tests.providers.google.google_calls import GoogleCalls
from tests.providers.microsoft.graph_calls import GOOD, GraphCalls, scripted
from tests.providers.sandbox import callers

OTHER_ID = "String {11111111-2222-3333-4444-555555555555} Name crmId"
EXPAND_OTHER = {"$expand": f"singleValueExtendedProperties($filter=id eq '{OTHER_ID}')"}
GOOGLE_FIELDS = {
    "colorId": "5",
    "guestsCanModify": True,
    "source": {"title": "Deal", "url": "https://crm.example/1"},
    "attachments": [{"fileUrl": "https://drive.example/1", "title": "Plan"}],
    "extendedProperties": {"private": {"crmId": "42"}, "shared": {"room": "4"}},
}
MEETS = {
    "createRequest": {"requestId": "theirs", "conferenceSolutionKey": {"type": "hangoutsMeet"}},
}
GRAPH_FIELDS = {
    "categories": ["Red category"],
    "importance": "high",
    "hideAttendees": True,
    "responseRequested": False,
    "allowNewTimeProposals": False,
}
HTML = {"contentType": "html", "content": "<html><body><p>A <b>plan</b></p></body></html>"}
GUEST = {"email": "grace@example.com", "responseStatus": "accepted", "comment": "Yes"}


@pytest.fixture
def google_calls(sandbox, google, connect):
    account = sandbox.account("google", "alice@example.com")
    return GoogleCalls(google, connect(account), callers.google(sandbox, account), 20)


@pytest.fixture
def graph_calls(sandbox, microsoft, connect):
    account = sandbox.account("microsoft", "alice@example.com")
    return GraphCalls(microsoft, connect(account), callers.graph(sandbox, account), 20)


def test_google_keeps_what_others_have_written(google_calls):
    theirs = google_calls.post(**GOOGLE_FIELDS, attendees=[GUEST], conferenceData=MEETS)
    google_calls.update(theirs["id"], **EVERYTHING)
    found = google_calls.stored(theirs["id"])
    for name in ("colorId", "guestsCanModify", "source", "attachments", "conferenceData", "hangoutLink"):
        assert found[name] == theirs[name], name
    assert found["extendedProperties"]["private"]["crmId"] == "42"
    assert found["extendedProperties"]["shared"] == {"room": "4"}


@pytest.mark.parametrize("scope", [Scope.SERIES, Scope.FOLLOWING])
def test_google_keeps_it_in_both_parts_of_a_series(google_calls, scope):
    when = {
        name: {"dateTime": f"2026-12-03T{hour}:00:00Z", "timeZone": "Europe/Berlin"}
        for name, hour in (("start", "09"), ("end", "10"))
    }
    rule = ["RRULE:FREQ=DAILY;COUNT=5"]
    theirs = google_calls.post(
        **GOOGLE_FIELDS, **when, attendees=[GUEST], conferenceData=MEETS, recurrence=rule
    )
    third = f"{theirs['id']}_20261205T090000Z"
    changed = google_calls.provider.update_event(
        google_calls.account,
        "primary",
        third,
        Changes(subject="New"),
        scope=scope,
        deadline=google_calls.deadline,
    )
    assert (changed.id == theirs["id"]) is (scope is Scope.SERIES)
    for event_id in (theirs["id"], changed.id):
        found = google_calls.stored(event_id)
        for name in ("colorId", "guestsCanModify", "source", "attachments", "hangoutLink"):
            assert found[name] == theirs[name], name
        assert found["conferenceData"]["entryPoints"] == theirs["conferenceData"]["entryPoints"]
        assert found["extendedProperties"]["private"]["crmId"] == "42"
        assert found["extendedProperties"]["shared"] == {"room": "4"}
        assert found["attendees"] == theirs["attendees"]


def test_a_later_part_has_not_the_meta_id_of_the_first(google_calls, graph_calls):
    for calls in (google_calls, graph_calls):
        pattern = {
            "pattern": {"type": "daily", "interval": 1},
            "range": {"type": "numbered", "numberOfOccurrences": 5, "startDate": "2026-12-03"},
        }
        rule = ["RRULE:FREQ=DAILY;COUNT=5"] if calls is google_calls else pattern
        more = {}
        if calls is google_calls:
            more["start"] = {"dateTime": "2026-12-03T09:00:00Z", "timeZone": "UTC"}
        theirs = calls.post(recurrence=rule, **more)
        calls.update(theirs["id"], meta_id="m-1")
        later = calls.provider.update_event(
            calls.account,
            "primary",
            f"{theirs['id']}_20261205T090000Z",
            Changes(subject="New"),
            scope=Scope.FOLLOWING,
            deadline=calls.deadline,
        )
        assert later.meta_id is None
        assert calls.find("m-1").id == theirs["id"]


def test_microsoft_keeps_what_others_have_written(graph_calls):
    theirs = graph_calls.post(
        **GRAPH_FIELDS, body=HTML, singleValueExtendedProperties=[{"id": OTHER_ID, "value": "42"}]
    )
    graph_calls.update(theirs["id"], **{n: v for n, v in EVERYTHING.items() if n != "description"})
    found = graph_calls.stored(theirs["id"], **EXPAND_OTHER)
    for name, value in GRAPH_FIELDS.items():
        assert found[name] == value, name
    assert found["body"] == theirs["body"]
    assert found["singleValueExtendedProperties"] == [{"id": OTHER_ID, "value": "42"}]


@pytest.mark.parametrize("online", [True, False])
def test_microsoft_keeps_it_in_both_parts_of_a_series(graph_calls, online):
    limits = {"type": "numbered", "numberOfOccurrences": 5, "startDate": "2026-12-03"}
    rule = {"pattern": {"type": "daily", "interval": 1}, "range": limits}
    meeting = {"isOnlineMeeting": True, "onlineMeetingProvider": "teamsForBusiness"} if online else {}
    theirs = graph_calls.post(**GRAPH_FIELDS, body=HTML, recurrence=rule, **meeting)
    third = f"{theirs['id']}_20261205T090000Z"
    later = graph_calls.provider.update_event(
        graph_calls.account,
        "primary",
        third,
        Changes(location="Room 4"),
        scope=Scope.FOLLOWING,
        deadline=graph_calls.deadline,
    )
    found = graph_calls.stored(later.id)
    for name, value in GRAPH_FIELDS.items():
        assert found[name] == value, name
    assert "<p>A <b>plan</b></p>" in found["body"]["content"]
    assert found["isOnlineMeeting"] is online
    assert later.description == "A plan"
    assert found["location"]["displayName"] == "Room 4"
    if online:
        # A meeting of its own, with one invitation in the body.
        assert found["onlineMeeting"]["joinUrl"] != theirs["onlineMeeting"]["joinUrl"]
        assert theirs["onlineMeeting"]["joinUrl"] not in found["body"]["content"].replace("&amp;", "&")
        assert later.meeting_url == found["onlineMeeting"]["joinUrl"]


# Descriptions as HTML


def test_google_has_html_where_the_description_has_some(google_calls):
    theirs = google_calls.post(description="A <b>plan</b><script>x()</script><img src=x onerror=y>")
    plain = google_calls.post(description="1 < 2")
    assert google_calls.event(theirs["id"]).description_html == "A <b>plan</b>"
    assert google_calls.event(plain["id"]).description_html is None
    assert {each.description_html for each in google_calls.listed()} == {"A <b>plan</b>", None}


def test_microsoft_has_html_when_an_event_is_read_alone(sandbox, graph_calls):
    theirs = graph_calls.post(body=HTML | {"content": HTML["content"].replace("<p>", "<p onclick=x()>")})
    found = graph_calls.event(theirs["id"])
    assert (found.description, found.description_html) == ("A plan", "<p>A <b>plan</b></p>")
    assert graph_calls.listed()[0].description_html is None
    lines = graph_calls.post(body={"contentType": "text", "content": "A plan <b>\nof two lines"})
    found = graph_calls.event(lines["id"])
    assert (found.description, found.description_html) == ("A plan <b>\nof two lines", None)
    before = sandbox.requests().total
    assert graph_calls.event(graph_calls.post()["id"]).description_html is None
    # Without a description nothing else is asked for.
    assert sandbox.requests().total == before + 2


@pytest.mark.parametrize("status", [400, 404])
def test_microsoft_without_an_answer_to_that_has_the_text(script, scripted_account, status):
    script.say(body=GOOD | {"body": {"contentType": "text", "content": "A plan"}})
    script.say(status=status, body={"error": {"code": "ErrorInvalidRequest", "message": ""}})
    found = scripted(script, scripted_account).event("AAMk1")
    assert (found.description, found.description_html) == ("A plan", None)


def test_the_html_of_a_meeting_has_no_invitation(graph_calls):
    theirs = graph_calls.post(body=HTML, isOnlineMeeting=True, onlineMeetingProvider="teamsForBusiness")
    found = graph_calls.event(theirs["id"])
    assert found.description == "A plan"
    assert "teams.microsoft.com" not in found.description_html
    assert "<p>A <b>plan</b></p>" in found.description_html


def test_microsoft_splits_no_series_with_attachments(graph_calls):
    when = {
        name: {"dateTime": f"2026-12-03T{hour}:00:00", "timeZone": "UTC"}
        for name, hour in (("start", "09"), ("end", "10"))
    }
    rule = {
        "pattern": {"type": "daily", "interval": 1},
        "range": {"type": "numbered", "numberOfOccurrences": 5, "startDate": "2026-12-03"},
    }
    theirs = graph_calls.post(**when, recurrence=rule, attachments=[{"name": "plan.txt"}])
    with pytest.raises(EventRefused, match="attachments") as raised:
        graph_calls.provider.update_event(
            graph_calls.account,
            "primary",
            f"{theirs['id']}_20261205T090000Z",
            Changes(subject="New"),
            scope=Scope.FOLLOWING,
            deadline=graph_calls.deadline,
        )
    assert raised.value.param == "scope"
