"""The changes in a user's calendars: cursors, failures, and the requests that may use a cursor."""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from random import Random

import hypothesis
import pytest
from hypothesis import strategies as st

from app.events import change_cursor, changes
from providers.base import PRIMARY
from providers.google import change_feed
from store.cache.busy_cache import CalendarKey
from store.sql.queries import connection_rows
from tests.app.answers import error
from tests.app.at_provider import AtProvider
from tests.app.days import meeting
from tests.app.listing import ADA, SIDE, TEAM
from tests.app.two_accounts import SHOWN, Both
from tests.conftest import stores_of
from tests.installation.processes import Process, running_worker
from tests.providers.other_clients import GoogleClient, GraphClient, Others
from workers.failures import TIMED_OUT

pytestmark = pytest.mark.usefixtures("worker")

DAY = {"start": "2026-12-03", "end": "2026-12-04"}
CHANGES = hypothesis.settings.default.max_examples if hypothesis.settings.default else 25


class Feed:
    """The changes of a user, from the beginning on."""

    def __init__(self, api, user):
        self.api = api
        self.path = f"/users/{user}/calendar/changes"
        self.cursor = None

    def ask(self, **query):
        return self.api.get(self.path, **({} if self.cursor is None else {"cursor": self.cursor}), **query)

    def page(self, **query):
        """The next page."""
        answer = self.ask(**query)
        assert answer.status_code == 200, answer.text
        self.cursor = answer.json["cursor"]
        return answer.json

    def read(self, **query):
        """The entries, in short, of all pages that are there."""
        found, more = [], True
        while more:
            page = self.page(**query)
            found += page["data"]
            more, query = page["more"], {}
        return [(each["calendarId"], each["type"], named(each)) for each in found]


def refused(answer, status):
    """The body of an error."""
    error(answer, status)
    return answer.json


def named(entry):
    return entry["id"] if entry["type"] == "deleted" else entry["event"]["subject"]


@pytest.fixture
def feed(api):
    return lambda user: Feed(api, user)


@pytest.fixture
def account(sandbox):
    return sandbox.account("google", ADA["google"], events=[meeting("09:00", "10:00", subject="first")])


@pytest.fixture
def user(new_user, account):
    return new_user(account)


@pytest.fixture
def there(sandbox, account):
    return AtProvider(sandbox, account)


def test_all_events_come_first_and_then_what_has_changed(feed, there, user):
    followed = feed(user)
    assert followed.read(**DAY) == [(ADA["google"], "updated", "first")]
    assert followed.read() == []
    made = there.post(summary="New")
    assert followed.read() == [(ADA["google"], "updated", "New")]
    there.delete(made["id"])
    assert followed.read() == [(ADA["google"], "deleted", made["id"])]
    assert followed.read() == []


def test_all_calendars_of_all_accounts_are_followed(feed, user_with_two_accounts):
    expected = [
        ("AAMk-main", "updated", "m main"),
        (SIDE, "updated", "m side"),
        (ADA["google"], "updated", "g main"),
        (TEAM, "updated", "g team"),
    ]
    assert sorted(feed(user_with_two_accounts).read(**DAY)) == expected
    chosen = feed(user_with_two_accounts).read(calendarIds=f"{SIDE},{TEAM}", **DAY)
    assert sorted(chosen) == [expected[1], expected[3]]


def test_an_entry_has_the_event_of_the_list_and_its_connection(api, feed, user):
    (event,) = api.get(f"/users/{user}/calendar/events", **DAY).json["data"]
    (connection,) = api.get(f"/users/{user}/connections").json["data"]
    (entry,) = feed(user).page(**DAY)["data"]
    assert entry == {
        "type": "updated",
        "event": event,
        "calendarId": ADA["google"],
        "connectionId": connection["id"],
    }


def test_without_an_end_the_range_is_as_long_as_the_installation_allows(feed, there, user):
    followed = feed(user)
    followed.read(start="2026-12-03")
    for day in ("2027-12-03", "2027-12-05"):
        edge = {"dateTime": f"{day}T09:00:00Z"}
        there.post(summary=day, start=edge, end=edge)
    assert [each for each in followed.read() if each[1] == "updated"] == [
        (ADA["google"], "updated", "2027-12-03")
    ]


def test_an_event_that_leaves_the_range_is_deleted(feed, there, user):
    followed = feed(user)
    followed.read(**DAY)
    (event,) = there.events()
    edge = {"dateTime": "2026-12-01T09:00:00Z"}
    there.patch(event["id"], start=edge, end=edge)
    assert followed.read() == [(ADA["google"], "deleted", event["id"])]


# --- failures


def test_a_calendar_that_fails_is_named_and_keeps_its_place(api, sandbox, feed, new_user):
    both = Both.connected(api, sandbox, new_user)
    followed = feed(both.user)
    followed.read(**DAY)
    both.there["google"].post(summary="missed")
    both.there["microsoft"].post(subject="read")
    sandbox.fault(provider="google", status=503, retry_after=60)
    page = followed.page()
    assert [named(each) for each in page["data"]] == ["read"]
    (failed,) = page["failedCalendars"]
    assert (failed["calendarId"], failed["reason"]) == (ADA["google"], "providerError")
    sandbox.clear_faults()
    assert followed.read() == [(ADA["google"], "updated", "missed")]


def test_an_account_that_cannot_list_its_calendars_keeps_their_places(api, sandbox, feed, new_user):
    both = Both.connected(api, sandbox, new_user)
    followed = feed(both.user)
    followed.read(**DAY)
    both.there["google"].post(summary="missed")
    sandbox.fault(provider="google", status=503, retry_after=60)
    answer = api.get(followed.path, cursor=followed.cursor, headers={"Cache-Control": "no-cache"})
    assert answer.status_code == 200, answer.text
    assert [each["calendarId"] for each in answer.json["failedCalendars"]] == [ADA["google"]]
    followed.cursor = answer.json["cursor"]
    sandbox.clear_faults()
    assert followed.read() == [(ADA["google"], "updated", "missed")]


def test_a_calendar_keeps_its_account_while_the_list_of_that_cannot_be_read(api, sandbox, feed, new_user):
    """Without the list, the id could be one of the other account."""
    first = sandbox.account(
        "microsoft", "first@contoso.example", calendars=[{"id": "AAMk-first", "primary": True}]
    )
    second = sandbox.account(
        "microsoft",
        "second@contoso.example",
        calendars=[{"id": "AAMk-second", "primary": True}, {"id": "AAMk-of-second"}],
        events=[meeting("09:00", "10:00", subject="gone", calendarId="AAMk-of-second")],
    )
    followed = feed(new_user(first, second))
    beginning = followed.read(calendarIds="AAMk-first,AAMk-of-second", **DAY)
    assert beginning == [("AAMk-of-second", "updated", "gone")]
    there = AtProvider(sandbox, second)
    (event,) = there.events("AAMk-of-second")
    there.delete(event["id"])
    sandbox.fault(operation="microsoft.calendars.list", status=503, retry_after=60)
    answer = api.get(followed.path, cursor=followed.cursor, headers={"Cache-Control": "no-cache"})
    followed.cursor = answer.json.get("cursor", followed.cursor)
    sandbox.clear_faults()
    seen = [(each["calendarId"], each["type"]) for each in answer.json["data"] or ()]
    seen += [(calendar, kind) for calendar, kind, _ in followed.read()]
    assert seen == [("AAMk-of-second", "deleted")]


def test_the_place_of_a_main_calendar_stays_its_own_when_another_one_becomes_the_main_one(api, feed, user):
    feed(user).read(**DAY)
    with stores_of(api.client.application).database.reading() as session:
        (ref,) = connection_rows.of_user(session, user, organization_id=None) or []
    key = CalendarKey(ref.id, PRIMARY)
    named = changes._by_name([ref], {key: "token"}, {key})
    assert named == {(ref.public_id, ADA["google"]): "token"}
    cursor = change_cursor.Cursor(0, 1, tokens=named)
    assert [each.key for each in changes._targets([ref], cursor).values()] == [key]
    moved = replace(ref, main_calendar_id="another@example.com", email="another@example.com")
    (target,) = changes._targets([moved], cursor).values()
    assert target.key == CalendarKey(ref.id, ADA["google"])


def test_the_request_fails_if_nothing_could_be_read(sandbox, feed, user):
    followed = feed(user)
    followed.read(**DAY)
    sandbox.fault(provider="google", status=503, retry_after=60)
    answer = followed.ask()
    assert refused(answer, 502)["code"] == "providerError"
    assert answer.json["failedCalendars"][0]["calendarId"] == ADA["google"]


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_an_expired_cursor_is_410(api, sandbox, feed, new_user, provider):
    both = Both.connected(api, sandbox, new_user)
    followed = feed(both.user)
    followed.read(**DAY)
    sandbox.expire_sync_tokens(provider)
    answer = followed.ask()
    assert refused(answer, 410)["code"] == "cursorExpired"
    failed = [(each["calendarId"], each["code"]) for each in answer.json["failedCalendars"]]
    assert failed == [(SHOWN[provider], "cursorExpired")]


def test_a_calendar_with_a_long_place_is_compared_as_a_whole(monkeypatch, feed, there, user):
    monkeypatch.setattr(change_cursor, "MAX_CURSOR", 100)
    followed = feed(user)
    assert followed.read(**DAY) == [(ADA["google"], "updated", "first")]
    assert followed.read() == []
    there.post(summary="New")
    assert refused(followed.ask(), 410)["code"] == "cursorExpired"


def test_more_calendars_than_ten_must_be_named(monkeypatch, feed, user_with_two_accounts):
    monkeypatch.setattr(changes, "MAX_CALENDARS_OF_CHANGES", 3)
    followed = feed(user_with_two_accounts)
    assert refused(followed.ask(**DAY), 400)["param"] == "calendarIds"
    assert len(followed.read(calendarIds=f"primary,{SIDE}", **DAY)) == 3


# --- cursors


@pytest.mark.parametrize("cursor", ["x", "", "!", "AAAA", "ä", "a" * 65_537])
def test_a_cursor_that_is_none_is_400(api, user, cursor):
    answer = api.get(f"/users/{user}/calendar/changes", cursor=cursor)
    assert refused(answer, 400)["param"] == ("cursor" if cursor else "start")


@hypothesis.given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=200) | st.binary(max_size=200))
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])
def test_no_other_text_is_a_cursor(api, user, text):
    cursor = text if isinstance(text, str) else base64.urlsafe_b64encode(b"\x01" + text).decode()
    assert refused(api.get(f"/users/{user}/calendar/changes", cursor=cursor), 400)["param"] == "cursor"


def test_a_cursor_of_another_version_has_expired(monkeypatch, feed, user):
    followed = feed(user)
    followed.read(**DAY)
    monkeypatch.setattr(change_cursor, "Cursor", tuple[str, str])
    assert refused(followed.ask(), 410)["code"] == "cursorExpired"


def test_a_changed_cursor_is_400(feed, user):
    followed = feed(user)
    followed.read(**DAY)
    middle = len(followed.cursor) // 2
    other = "A" if followed.cursor[middle] != "A" else "B"
    followed.cursor = followed.cursor[:middle] + other + followed.cursor[middle + 1 :]
    assert refused(followed.ask(), 400)["param"] == "cursor"


def test_the_cursor_of_another_user_is_400(feed, user, new_user, account):
    followed, other = feed(user), feed(new_user(account))
    followed.read(**DAY)
    other.cursor = followed.cursor
    assert refused(other.ask(), 400)["param"] == "cursor"


def test_the_cursor_of_another_tenant_is_400(api, feed, new_user, new_organization, new_api, account):
    slug = new_organization()
    member = new_user(account, slugs=(slug,))
    followed = feed(member)
    followed.read(**DAY)
    answer = new_api(organization=slug).get(followed.path, cursor=followed.cursor)
    assert refused(answer, 400)["param"] == "cursor"


@pytest.mark.parametrize(
    ("name", "value"),
    [("start", "2026-12-04"), ("end", "2026-12-05"), ("calendarIds", TEAM), ("provider", "google")],
)
def test_parameters_beside_a_cursor_are_those_of_its_beginning(feed, user, name, value):
    followed = feed(user)
    followed.read(**DAY)
    assert refused(followed.ask(**{name: value}), 400)["param"] == name
    assert followed.read(**DAY) == []


def test_a_cursor_tells_nothing_and_is_in_no_log(caplog, feed, there, user):
    followed = feed(user)
    with caplog.at_level(logging.DEBUG):
        followed.read(**DAY)
        followed.read()
    assert "sync-" not in followed.cursor
    assert "sync-" not in caplog.text


# --- a copy made of the changes alone


@pytest.fixture
def second_worker(settings, environment) -> Iterator[Callable[[float], threading.Timer]]:
    """A worker beside that of all tests. It is killed after some seconds, and another one takes its place."""
    with ExitStack() as running:

        def start() -> Process:
            return running.enter_context(running_worker(settings, environment, "second"))

        processes = [start()]

        def renew() -> None:
            processes[-1].kill()
            processes.append(start())

        def kill_after(seconds: float) -> threading.Timer:
            timer = threading.Timer(seconds, renew)
            timer.start()
            return timer

        yield kill_after
        assert all(each.poll() is not None for each in processes[:-1])


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_copy_of_two_accounts_equals_their_events(
    monkeypatch, api, sandbox, stores, feed, new_user, second_worker
):
    """Other clients change them, reads fail, cursors expire, and a worker is killed during reads."""
    monkeypatch.setattr(change_feed, "CHANGES_PER_PAGE", 5)
    random = Random(41)
    both = Both.connected(api, sandbox, new_user)
    google = f"{sandbox.url}/google/calendar/v3/calendars/primary/events"
    graph = f"{sandbox.url}/microsoft/v1.0/me/calendar/events"
    others = [
        Others(GoogleClient(google, both.accounts["google"].access_token), random),
        Others(GraphClient(graph, both.accounts["microsoft"].access_token), random),
    ]
    window = {"start": "2026-12-01", "end": "2026-12-31"}
    followed, copy, made = feed(both.user), {}, 0
    while made < CHANGES * 2:
        for _ in range(random.randrange(1, 15)):
            random.choice(others).change()
            made += 1
        if random.random() < 0.3:
            fault = random.choice([{"status": 503}, {"status": 429, "retry_after": 60}, {"body": "reset"}])
            sandbox.fault(
                provider=random.choice(["google", "microsoft"]), times=random.randrange(1, 4), **fault
            )
        if random.random() < 0.1:
            sandbox.expire_sync_tokens()
        # The first round has a kill, so that also a short run has one.
        killed = second_worker(random.random() / 20) if not copy or random.random() < 0.03 else None
        _follow(sandbox, stores, followed, copy, window)
        if killed is not None:
            killed.join()
        there = api.get(f"/users/{both.user}/calendar/events", **window).json
        if killed is not None and there["failedCalendars"]:
            # A list is not sent again. A worker that starts may have taken it, and its first read is slow.
            assert {each["message"] for each in there["failedCalendars"]} == {TIMED_OUT.message}
            there = api.get(f"/users/{both.user}/calendar/events", **window).json
        assert there["failedCalendars"] == []
        assert copy == {(each["calendarId"], each["id"]): each for each in there["data"]}
    assert copy


def _follow(sandbox, stores, followed, copy, window):
    """Read until nothing is left. After a failure the fault ends, and the pause of a throttled account."""
    more = True
    while more:
        answer = followed.ask(**({} if followed.cursor else window))
        if answer.status_code == 410:
            copy.clear()
            followed.cursor = None
            continue
        if answer.status_code == 200:
            followed.cursor = answer.json["cursor"]
            for each in answer.json["data"]:
                _take(copy, each)
            more = answer.json["more"] or bool(answer.json["data"])
        if answer.status_code != 200 or answer.json["failedCalendars"]:
            assert answer.status_code in (200, 429, 502), answer.text
            sandbox.clear_faults()
            stores.redis.delete(*stores.redis.keys("pause:*") or ["none"])
            more = True


def _take(copy, entry):
    """Replace what the copy has by the id of an entry."""
    changed = entry["id"] if entry["type"] == "deleted" else entry["event"]["id"]
    for key, event in list(copy.items()):
        if key[0] == entry["calendarId"] and changed in (event["id"], event.get("recurringEventId")):
            del copy[key]
    if entry["type"] == "updated":
        copy[entry["calendarId"], changed] = entry["event"]
