"""Pages of changes as Google may send them."""

from __future__ import annotations

import pytest

from providers.base import PRIMARY
from providers.errors import SyncTokenExpired, Unavailable
from providers.google.client import Google
from providers.timestamps import instant
from tests.providers.addresses import google_at

RANGE = instant("2026-12-03T00:00:00Z"), instant("2026-12-04T00:00:00Z")
NINE = {"start": {"dateTime": "2026-12-03T09:00:00Z"}, "end": {"dateTime": "2026-12-03T10:00:00Z"}}


@pytest.fixture
def page(script, scripted_account, soon):
    """A page of the scripted server after the first one, or the first one."""
    adapter = Google(google_at(script.url))

    def read(*, first=False):
        token = None if first else '{"sync":"s-1"}'
        return adapter.changes(scripted_account, PRIMARY, *RANGE, token, deadline=soon())

    return read


def says(script, *items, **more):
    script.say(200, {"items": list(items), "timeZone": "UTC", "nextSyncToken": "s-2"} | more)


def ids(found):
    return [each.id for each in found.updated], list(found.deleted)


def test_the_first_page_is_limited_by_time_and_later_ones_are_not(script, page):
    says(script)
    page(first=True)
    assert page().sync_token == '{"sync":"s-2"}'
    first, later = (each["path"].partition("?")[2] for each in script.requests)
    assert first == "maxResults=250&timeMin=2026-12-02T00%3A00%3A00.000Z"
    assert later == "maxResults=250&syncToken=s-1"


def test_a_cancelled_event_with_nothing_but_its_id_is_deleted(script, page):
    says(script, {"id": "a", "status": "cancelled"})
    assert ids(page()) == ([], ["a"])


def test_an_occurrence_of_a_series_in_another_calendar_stands_for_itself(script, page):
    one = {"id": "m_1", "recurringEventId": "m", "etag": '"1"'} | NINE
    says(script, one)
    assert ids(page()) == (["m_1"], ["m"])


def test_an_event_without_an_id_is_left_out(script, page):
    says(script, {"summary": "no id"}, "no event", {"id": 7} | NINE, {"id": "b"} | NINE)
    assert ids(page()) == (["b"], [])


@pytest.mark.parametrize(
    "odd",
    [
        {"updated": "2026-11-02 "},
        {"reminders": {"useDefault": False, "overrides": [{"method": "popup"}]}},
        {"originalStartTime": {"timeZone": "UTC"}},
        {"htmlLink": {}},
        {"attendees": [{"email": "a@x.org", "optional": "true"}]},
        {"organizer": "a@x.org"},
    ],
    ids=str,
)
def test_an_event_with_an_odd_field_that_is_only_shown_has_changed(script, page, odd):
    says(script, {"id": "a"} | NINE | odd)
    assert ids(page()) == (["a"], [])


@pytest.mark.parametrize("odd", [{"start": {}}, {"end": None}, {"etag": 5}, {"recurringEventId": 5}], ids=str)
def test_an_event_that_cannot_be_read_is_not_deleted(script, page, odd):
    """A client would drop it; the calendar fails until the event can be read."""
    says(script, {"id": "b"} | NINE, {"id": "a"} | NINE | odd)
    with pytest.raises(Unavailable):
        page()


def test_an_occurrence_that_cannot_be_read_is_not_dropped_with_its_changed_series(script, page):
    says(script, {"id": "m", "recurrence": ["RRULE:FREQ=DAILY;COUNT=2"]} | NINE)
    says(script, {"id": "m_1", "recurringEventId": "m"} | NINE, {"id": "m_2", "recurringEventId": "m"})
    with pytest.raises(Unavailable):
        page()


@pytest.mark.parametrize("status", [400, 410])
def test_a_token_that_google_does_not_know_has_expired(script, page, status):
    reason = "fullSyncRequired" if status == 410 else "invalid"
    script.say(status, {"error": {"code": status, "errors": [{"domain": "calendar", "reason": reason}]}})
    with pytest.raises(SyncTokenExpired):
        page()


@pytest.mark.parametrize("answer", [{}, {"items": []}, {"items": {}}, {"items": [], "nextSyncToken": 1}])
def test_a_page_that_cannot_be_continued_is_unreadable(script, page, answer):
    script.say(200, answer)
    with pytest.raises(Unavailable):
        page()
