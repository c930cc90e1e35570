"""Pages of delta queries as Graph may send them."""

from __future__ import annotations

import pytest

from providers.base import PRIMARY
from providers.errors import ProviderError, SyncTokenExpired, Unavailable
from providers.microsoft.client import Microsoft
from providers.microsoft.mailbox import SETTINGS
from providers.timestamps import instant
from tests.providers.addresses import microsoft_at

RANGE = instant("2026-12-03T00:00:00Z"), instant("2026-12-04T00:00:00Z")


@pytest.fixture
def page(script, scripted_account, soon):
    """A page of the scripted server after the first one, or the first one."""
    adapter = Microsoft(microsoft_at(script.url))

    def read(*, first=False):
        token = None if first else '{"path":"/me/calendarView/delta?$deltatoken=d-1"}'
        return adapter.changes(scripted_account, PRIMARY, *RANGE, token, deadline=soon())

    return read


@pytest.fixture
def says(script):
    """Let the server send a page; the link leads to the server itself unless it is given."""

    def say(*values, link=None, name="@odata.deltaLink"):
        whole = f"{script.url}/v1.0/me/calendarView/delta?$deltatoken=d-2" if link is None else link
        script.say(200, {"value": list(values), name: whole})

    return say


def test_the_first_page_asks_for_the_range_by_days_and_ids_that_stay(script, says, page):
    says(name="@odata.nextLink")
    found = page(first=True)
    assert (found.updated, found.more) == ((), True)
    (asked,) = script.requests
    assert asked["path"].partition("/me/")[2] == (
        "calendarView/delta?startDateTime=2026-12-02T00%3A00%3A00.000Z&endDateTime=2026-12-05T00%3A00%3A00.000Z"
    )
    assert 'IdType="ImmutableId"' in asked["headers"]["Prefer"]
    assert "odata.maxpagesize=250" in asked["headers"]["Prefer"]


def test_removed_records_need_no_list(script, says, page):
    says({"id": "a", "@removed": {"reason": "deleted"}}, {"id": "b", "@removed": {"reason": "changed"}})
    found = page()
    assert (found.updated, found.deleted) == ((), ("a", "b"))
    assert len(script.requests) == 1


def test_a_link_to_another_host_is_not_followed(says, page):
    says(link="https://evil.example/v1.0/me/calendarView/delta?$deltatoken=d-2")
    with pytest.raises(ProviderError, match="leads elsewhere"):
        page()


@pytest.mark.parametrize(
    ("status", "code"),
    [(410, "syncStateNotFound"), (410, "SyncStateNotFound"), (410, "resyncRequired"), (400, "BadRequest")],
)
def test_a_token_that_graph_does_not_know_has_expired(script, page, status, code):
    script.say(status, {"error": {"code": code, "message": "no"}})
    with pytest.raises(SyncTokenExpired):
        page()


@pytest.mark.parametrize("answer", [{}, {"value": []}, {"@odata.deltaLink": 1, "value": []}])
def test_a_page_that_cannot_be_continued_is_unreadable(script, page, answer):
    script.say(200, answer)
    with pytest.raises(Unavailable):
        page()


def test_a_record_without_an_id_makes_the_page_unreadable(says, page):
    says({"subject": "no id"})
    with pytest.raises(Unavailable):
        page()


NINE = {
    "start": {"dateTime": "2026-12-03T09:00:00.0000000", "timeZone": "UTC"},
    "end": {"dateTime": "2026-12-03T10:00:00.0000000", "timeZone": "UTC"},
}


def lists(script, *events):
    """Let the server send the list of events, as a batch with the settings of the mailbox."""
    view = {"id": "0", "status": 200, "headers": {}, "body": {"value": list(events)}}
    settings = {"id": SETTINGS, "status": 200, "headers": {}, "body": {"timeZone": "UTC"}}
    script.say(200, {"responses": [settings, view]})


def test_an_event_with_an_odd_field_that_is_only_shown_has_changed(script, says, page):
    says({"id": "a", "type": "singleInstance"} | NINE)
    odd = {"attendees": [{"emailAddress": "a@x.org", "type": "required"}], "webLink": 5}
    lists(script, {"id": "a", "type": "singleInstance"} | NINE | odd)
    found = page()
    assert ([each.id for each in found.updated], found.deleted) == (["a"], ())


@pytest.mark.parametrize("odd", [{"end": None}, {"@odata.etag": 5}], ids=str)
def test_an_event_that_cannot_be_read_is_not_deleted(script, says, page, odd):
    """A client would drop it; the calendar fails until the event can be read."""
    says({"id": "a", "type": "singleInstance"} | NINE)
    lists(script, {"id": "a", "type": "singleInstance"} | NINE | odd)
    with pytest.raises(Unavailable):
        page()
