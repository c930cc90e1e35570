"""The changes in a calendar at servers with sync-collection, and at one without."""

from __future__ import annotations

import msgspec
import pytest

from providers.base import PRIMARY
from providers.caldav.client import CalDav
from providers.errors import ProviderError, SyncTokenExpired, Unavailable
from tests.providers.caldav.conftest import account_of, opened, soon
from tests.providers.caldav.scripted import CALENDAR, HEAD, KIND, TAIL, event, multistatus, response, stored
from tests.providers.caldav.test_servers import DAY_30

ADAPTER = CalDav(allow_private=True)
TASK = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VTODO\r\nUID:task\r\nEND:VTODO\r\nEND:VCALENDAR\r\n"


@pytest.fixture
def account(script):
    return account_of(opened(script.url, "ada", "secret"))


def page(account, sync_token=None, calendar=PRIMARY, adapter=ADAPTER):
    return adapter.changes(account, calendar, *DAY_30, sync_token, deadline=soon())


def ids(found):
    return [each.id for each in found.updated], list(found.deleted)


def gone(name):
    return f"<d:response><d:href>{CALENDAR}{name}</d:href><d:status>HTTP/1.1 404 Gone</d:status></d:response>"


def synchronizes(script, *members, objects=(), token="t-2", status=""):
    """The server has sync-collection, and reports these members from now on."""
    script.say(
        "PROPFIND", CALENDAR, multistatus(response(CALENDAR, f"{KIND}<d:sync-token>t-1</d:sync-token>"))
    )
    report = f"{HEAD}{''.join(members)}{status}<d:sync-token>{token}</d:sync-token>{TAIL}".encode()

    def answer(_handler, body):
        if b"sync-collection" in body:
            return 207, report, {"Content-Type": "application/xml"}
        return multistatus(*objects)

    script.say("REPORT", CALENDAR, answer)


def changed(name):
    return response(f"{CALENDAR}{name}", '<d:getetag>"2"</d:getetag>')


def test_a_server_without_sync_tokens_is_compared_by_etags(script, account):
    first = page(account)
    assert ids(first) == (["one"], [])
    assert ids(page(account, first.sync_token)) == ([], [])

    objects = [stored(event("one"), etag='"2"'), stored(event("two"), "two")]
    script.say("REPORT", CALENDAR, multistatus(*objects))
    second = page(account, first.sync_token)
    assert ids(second) == (["one", "two"], [])

    script.say("REPORT", CALENDAR, multistatus(objects[0]))
    assert ids(page(account, second.sync_token)) == ([], ["two"])


def test_a_deleted_object_is_known_by_its_name_whatever_that_is(script, account):
    synchronizes(script, objects=[stored(event("one"), "one"), stored(event("two"), "another name")])
    first = page(account)
    assert ids(first) == (["one", "two"], [])
    synchronizes(script, gone("one.ics"), gone("another%20name.ics"))
    assert ids(page(account, first.sync_token)) == ([], ["one", "two"])


def test_a_task_is_no_change(script, account):
    synchronizes(script)
    first = page(account)
    synchronizes(script, changed("task.ics"), objects=[stored(TASK, "task")])
    assert ids(page(account, first.sync_token)) == ([], [])


def test_an_object_that_is_gone_before_it_is_read_is_reported_the_next_time(script, account):
    synchronizes(script)
    first = page(account)
    synchronizes(script, changed("one.ics"), objects=[gone("one.ics")])
    assert ids(page(account, first.sync_token)) == ([], [])


def test_a_report_that_is_cut_off_is_continued(script, account):
    synchronizes(script)
    first = page(account)
    cut_off = f"<d:response><d:href>{CALENDAR}</d:href><d:status>HTTP/1.1 507 Full</d:status></d:response>"
    synchronizes(script, changed("one.ics"), objects=[stored(event("one"))], status=cut_off)
    second = page(account, first.sync_token)
    assert (ids(second), second.more) == ((["one"], []), True)
    synchronizes(script)
    assert page(account, second.sync_token).more is False


def test_a_member_that_the_server_cannot_report_fails_the_page(script, account):
    synchronizes(script)
    first = page(account)
    broken = f"<d:response><d:href>{CALENDAR}a.ics</d:href><d:status>HTTP/1.1 500 No</d:status></d:response>"
    synchronizes(script, broken)
    with pytest.raises(Unavailable):
        page(account, first.sync_token)


def test_a_report_without_a_token_is_unreadable(script, account):
    synchronizes(script)
    first = page(account)
    synchronizes(script, token="")
    with pytest.raises(ProviderError):
        page(account, first.sync_token)


def test_a_token_of_another_version_of_almanac_has_expired(script, account):
    with pytest.raises(SyncTokenExpired):
        page(account, '{"digests": 1}')


def test_a_token_that_a_server_does_not_know_has_expired(place):
    first = place.adapter.changes(place.account, place.id, *DAY_30, None, deadline=soon())
    state = msgspec.json.decode(first.sync_token)
    state["token"] = state["token"][:-4] + "0000"
    with pytest.raises(SyncTokenExpired):
        page(place.account, msgspec.json.encode(state).decode(), place.id, place.adapter)
