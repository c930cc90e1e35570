"""Responses to invitations of Microsoft 365 over a socket."""

from __future__ import annotations

import pytest

from providers.errors import EventNotFound, RateLimited
from providers.events import Response, ResponseStatus
from providers.http.calls import Json
from providers.microsoft import mailbox
from tests.providers.event_calls import ALL_DAY, MEETING
from tests.providers.microsoft.graph_calls import SETTINGS

INVITED = {"responseStatus": "needsAction"}
OPERATIONS = {
    ResponseStatus.ACCEPTED: "microsoft.events.accept",
    ResponseStatus.TENTATIVE: "microsoft.events.tentativelyAccept",
    ResponseStatus.DECLINED: "microsoft.events.decline",
}
EACH = pytest.mark.parametrize("status", OPERATIONS)


def respond(calls, event_id, status):
    return calls.provider.respond_to_event(
        calls.account, "primary", event_id, Response(status), deadline=calls.deadline
    )


def invitation(calls):
    (event,) = calls.raw.get("me/events")["value"]
    return event["id"]


def own(event):
    return [each.response_status for each in event.attendees if each.is_self]


@EACH
def test_a_response_whose_answer_is_lost_is_written(sandbox, new, status):
    calls = new(MEETING | INVITED)
    sandbox.fault(operation=OPERATIONS[status], body="reset", times=1)

    answered = respond(calls, invitation(calls), status)

    assert (own(answered), answered.subject) == ([status], "Review")
    assert sandbox.requests().by_operation[OPERATIONS[status]] == 2


@EACH
def test_an_event_that_was_deleted_before_the_response_is_missing(new, monkeypatch, status):
    calls = new(MEETING | INVITED)
    event_id = invitation(calls)
    write = mailbox.Mailbox.write

    def after_delete(*args: object, **more: object) -> Json:
        calls.raw("DELETE", f"me/events/{event_id}")
        return write(*args, **more)

    monkeypatch.setattr(mailbox.Mailbox, "write", after_delete)
    with pytest.raises(EventNotFound):
        respond(calls, event_id, status)


def test_nothing_is_written_when_the_zone_of_its_days_cannot_be_read(sandbox, new):
    """A declined event is answered from what was read before it left the calendar."""
    calls = new(ALL_DAY | INVITED)
    event_id = invitation(calls)
    sandbox.fault(operation=SETTINGS, status=429, retry_after=60)

    with pytest.raises(RateLimited):
        respond(calls, event_id, ResponseStatus.DECLINED)
    assert invitation(calls) == event_id

    sandbox.clear_faults()
    assert own(respond(calls, event_id, ResponseStatus.DECLINED)) == [ResponseStatus.DECLINED]
