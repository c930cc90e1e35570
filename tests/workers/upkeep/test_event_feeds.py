"""Endpoints learn which events of a watched calendar have changed: each change once, and in order."""

from __future__ import annotations

import os
import threading
from collections import Counter
from datetime import timedelta
from random import Random

import pytest
from kombu.exceptions import OperationalError
from sqlalchemy import delete, select, update

from providers.base import Failed
from providers.errors import Reason
from providers.events import Event
from store.cache.busy_cache import CalendarKey
from store.coordination.provider_limits import Access
from store.sql.models import EventFeed, WebhookDelivery, WebhookEndpoint, now
from store.sql.queries import event_feeds as stored
from store.sql.queries import webhook_events
from store.sql.queries.webhook_events import OF_EVENTS
from tests.app.at_provider import SUBJECT, AtProvider
from tests.providers.other_clients import GoogleClient, GraphClient, Others
from tests.workers.upkeep.watching import HOUR, MEETING, PROVIDERS, confirm, run
from workers.execution.accounts import open_account
from workers.upkeep import channel_opening, event_feeds, watches
from workers.upkeep.channel_opening import credentials_of
from workers.upkeep.event_states import unpacked

CHANGES = int(os.environ.get("ALMANAC_EVENT_CHANGES", "8"))
URL = "https://example.com/hooks"
DAY = 86_400_000
LIST = {"google": "google.events.list", "microsoft": "microsoft.calendarView.delta"}
CLIENTS = {"google": GoogleClient, "microsoft": GraphClient}


class Followed:
    """A watched calendar, another client of it, and the deliveries about its events."""

    def __init__(self, runtime, sandbox, account, key):
        self.runtime, self.sandbox, self.account, self.key = runtime, sandbox, account, key
        self.there = AtProvider(sandbox, account)

    def follow(self):
        return event_feeds.follow(self.runtime, self.key)

    def news(self):
        """The events of webhooks since the last look, the oldest first."""
        with self.runtime.stores.database.writing() as session:
            rows = session.scalars(select(WebhookDelivery).order_by(WebhookDelivery.id)).all()
            found = [(row.event, row.payload["data"], row.endpoint_id) for row in rows]
            session.execute(delete(WebhookDelivery))
        return found

    def short(self):
        return [(event, data["eventId"]) for event, data, _ in self.news()]

    def meet(self, subject="New", hours=24):
        start = (now() + timedelta(hours=hours)).replace(microsecond=0, tzinfo=None)
        times = {
            name: {"dateTime": f"{at.isoformat()}", "timeZone": "UTC"}
            for name, at in (("start", start), ("end", start + timedelta(hours=1)))
        }
        return self.there.post(**{SUBJECT[self.account.provider]: subject}, **times)["id"]

    def rename(self, event, subject):
        self.there.patch(event, **{SUBJECT[self.account.provider]: subject})


@pytest.fixture
def calendar(reached, sandbox, connected, unique):
    """A watched calendar with a meeting."""

    def make(provider):
        account = sandbox.account(provider, f"{unique('ada')}@example.com", events=[MEETING])
        key = CalendarKey(connected(account), "primary")
        reached.stores.channel_usage.use([key])
        assert channel_opening.open_one(reached, key)
        confirm(reached, key)
        with reached.stores.database.writing() as session:
            session.execute(delete(EventFeed))
            session.execute(delete(WebhookDelivery))
        sandbox.forget_requests()
        return Followed(reached, sandbox, account, key)

    return make


@pytest.fixture
def endpoint(register):
    return register(URL, OF_EVENTS)[0]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_change_of_another_client_is_one_event(calendar, endpoint, provider):
    ada = calendar(provider)
    assert ada.follow()
    assert ada.news() == []

    event = ada.meet()
    assert ada.follow()
    ((kind, data, to),) = ada.news()
    assert (kind, data["eventId"], to) == ("event.created", event, endpoint)
    assert set(data) == {"userId", "provider", "connectionId", "calendarId", "eventId"}

    ada.rename(event, "Moved")
    assert ada.follow()
    assert ada.short() == [("event.updated", event)]
    ada.there.delete(event)
    assert ada.follow()
    assert ada.short() == [("event.deleted", event)]
    assert ada.follow()
    assert ada.news() == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_endpoint_that_asks_for_content_gets_the_event(calendar, endpoint, reached, provider):
    ada = calendar(provider)
    ada.follow()
    with reached.stores.database.writing() as session:
        session.execute(update(WebhookEndpoint).values(content=True))

    event = ada.meet("Lunch")
    ada.follow()
    ((_, data, _),) = ada.news()
    assert (data["event"]["id"], data["event"]["subject"]) == (event, "Lunch")
    assert data["event"]["calendarId"] == data["calendarId"]

    ada.there.delete(event)
    ada.follow()
    ((kind, data, _),) = ada.news()
    assert (kind, "event" in data) == ("event.deleted", False)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_without_an_endpoint_for_events_nothing_is_read_or_kept(
    calendar, register, reached, sandbox, provider
):
    register(URL, ["calendar.changed"])
    ada = calendar(provider)
    sent = []
    watches.request_comparison(reached.stores, lambda *_, **kwargs: sent.append(kwargs), ada.key)
    run(reached)
    watches.request_comparison(reached.stores, lambda *_, **kwargs: sent.append(kwargs), ada.key)

    assert sent == []
    assert sandbox.requests().by_operation == {}
    with reached.stores.database.reading() as session:
        assert session.scalars(select(EventFeed)).all() == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_round_begins_to_follow_and_then_costs_no_call(calendar, endpoint, reached, sandbox, provider):
    ada = calendar(provider)
    run(reached)
    assert sandbox.requests().by_operation
    sandbox.forget_requests()
    run(reached)
    run(reached)
    assert sandbox.requests().by_operation == {}

    event = ada.meet()
    assert ada.follow()
    assert ada.short() == [("event.created", event)]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("lost", ["a day", "a gap of the web tier"])
def test_a_lost_notification_is_caught_up_with(calendar, endpoint, reached, provider, lost):
    ada = calendar(provider)
    ada.follow()
    event = ada.meet()
    run(reached)
    assert ada.news() == []

    if lost == "a day":
        with reached.stores.database.writing() as session:
            session.execute(update(EventFeed).values(synced_at=now() - timedelta(days=1, minutes=1)))
    else:
        reached.stores.redis.set("busy-gap", int((now() + timedelta(seconds=1)).timestamp() * 1000))
    run(reached)
    reached.stores.redis.delete("busy-gap")

    assert ada.short() == [("event.created", event)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_expired_sync_token_loses_and_repeats_nothing(calendar, endpoint, sandbox, provider):
    ada = calendar(provider)
    kept, gone = ada.meet("Kept"), ada.meet("Gone")
    ada.follow()
    ada.there.delete(gone)
    ada.rename(kept, "Renamed")
    made = ada.meet("Made")
    sandbox.expire_sync_tokens(provider)

    assert ada.follow()

    assert sorted(ada.short()) == sorted(
        [("event.deleted", gone), ("event.updated", kept), ("event.created", made)]
    )
    assert ada.follow()
    assert ada.news() == []


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [403, 503])
def test_a_failed_read_changes_nothing_and_the_next_one_catches_up(
    calendar, endpoint, sandbox, provider, status
):
    ada = calendar(provider)
    ada.follow()
    event = ada.meet()
    sandbox.fault(operation=LIST[provider], status=status)
    assert not ada.follow()
    assert ada.news() == []
    sandbox.clear_faults()

    assert ada.follow()
    assert ada.short() == [("event.created", event)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_round_repeats_a_comparison_that_failed(calendar, endpoint, reached, sandbox, provider):
    ada = calendar(provider)
    ada.follow()
    event = ada.meet()
    watches.request_comparison(reached.stores, lambda *_, **__: None, ada.key)
    sandbox.fault(operation=LIST[provider], status=503)
    assert not ada.follow()
    sandbox.clear_faults()

    run(reached)

    assert ada.short() == [("event.created", event)]
    sandbox.forget_requests()
    run(reached)
    assert sandbox.requests().by_operation == {}


def test_a_report_that_is_not_enqueued_is_not_lost(calendar, endpoint, reached):
    ada = calendar("google")
    ada.follow()
    event = ada.meet()

    def broker_is_down(*_, **__):
        raise OperationalError

    with pytest.raises(OperationalError):
        watches.request_comparison(reached.stores, broker_is_down, ada.key)
    run(reached)

    assert ada.short() == [("event.created", event)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_range_that_cannot_move_is_followed_on(calendar, endpoint, monkeypatch, provider):
    """If all events cannot be read in time, the changes in the range of before still are."""
    ada = calendar(provider)
    ada.follow()
    monkeypatch.setattr(event_feeds, "MOVED_AFTER", -1)
    event = ada.meet()
    taken = event_feeds._take_all

    def without_beginning(runtime, credentials, key, following, sync_token, deadline):
        if sync_token is None:
            return Failed(Reason.PROVIDER_ERROR, "not in time")
        return taken(runtime, credentials, key, following, sync_token, deadline)

    monkeypatch.setattr(event_feeds, "_take_all", without_beginning)
    assert ada.follow()
    assert ada.short() == [("event.created", event)]


def test_two_comparisons_at_once_record_a_change_once(calendar, endpoint):
    ada = calendar("google")
    ada.follow()
    event = ada.meet()
    threads = [threading.Thread(target=ada.follow) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert ada.short() == [("event.created", event)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_time_that_passes_is_no_change(calendar, endpoint, reached, monkeypatch, provider):
    """The range moves: events that leave it are not deleted, and events that enter it are not created."""
    monkeypatch.setattr(event_feeds, "AHEAD", 30 * DAY)
    monkeypatch.setattr(event_feeds, "MOVED_AFTER", -1)
    ada = calendar(provider)
    ada.meet("Past", hours=-1)
    ada.meet("Far", hours=24 * 40)
    ada.follow()

    monkeypatch.setattr(event_feeds, "PAST", -2 * HOUR)
    monkeypatch.setattr(event_feeds, "AHEAD", 60 * DAY)
    new = ada.meet("New")
    assert ada.follow()

    assert ada.short() == [("event.created", new)]


@pytest.mark.parametrize("broken", ["key", "text"])
def test_a_state_that_cannot_be_read_begins_again(calendar, endpoint, reached, broken):
    ada = calendar("google")
    ada.follow()
    stores = reached.stores
    with stores.database.writing() as session:
        row = session.scalars(select(EventFeed)).one()
        name = f"events:{row.connection_id}:{row.calendar}"
        row.sealed_state = b"nothing" if broken == "key" else stores.keyring.encrypt("nothing", name)
    assert ada.follow()
    event = ada.meet()
    assert ada.follow()
    assert ada.short() == [("event.created", event)]


def test_the_state_of_a_calendar_is_encrypted(calendar, endpoint, reached):
    ada = calendar("google")
    ada.meet("Confidential")
    ada.follow()
    with reached.stores.database.reading() as session:
        row = session.scalars(select(EventFeed)).one()
    assert "primary" not in f"{row.calendar}"
    assert b"sync" not in row.sealed_state


def test_a_burst_of_notifications_is_enqueued_once(calendar, endpoint, reached):
    ada = calendar("google")
    ada.follow()
    sent = []

    def send(name, **options):
        sent.append((name, options["kwargs"], options["kwargsrepr"]))

    for _ in range(5):
        watches.request_comparison(reached.stores, send, ada.key)
    ((name, arguments, shown),) = sent
    assert (name, arguments) == (
        "upkeep.follow_events",
        {"connection": ada.key.connection, "calendar": "primary"},
    )
    assert "primary" not in shown
    ada.follow()
    watches.request_comparison(reached.stores, send, ada.key)
    assert len(sent) == 2


def listed(followed: Followed) -> dict[str, Event]:
    """All events at the provider in the range that is followed, by id."""
    stores = followed.runtime.stores
    with stores.database.reading() as session:
        row = session.scalars(select(EventFeed)).one()
    state = unpacked(stored.opened(row, stores.keyring))
    credentials = credentials_of(followed.runtime, followed.key.connection)
    provider, account = open_account(followed.runtime, credentials, Access.READS)
    found = provider.events(account, ["primary"], state.start, state.end, deadline=10**9)
    return {each.id: each for each in found["primary"]}


def groups(events: dict[str, Event]) -> dict[str, dict[str, tuple]]:
    found: dict[str, dict[str, tuple]] = {}
    for each in events.values():
        known = (each.start, each.end, each.subject)
        found.setdefault(each.recurring_event_id or each.id, {})[each.id] = known
    return found


def ends_after(function):
    """The function, after which the process ends."""

    def ends(*arguments, **named):
        function(*arguments, **named)
        raise SystemExit

    return ends


@pytest.mark.parametrize("provider", PROVIDERS)
def test_events_of_webhooks_tell_what_has_changed_between_two_lists(
    calendar, endpoint, provider, monkeypatch
):
    """Random changes by another client: each event or series that differs is named once, and no other."""
    ada = calendar(provider)
    path = {
        "google": "google/calendar/v3/calendars/primary/events",
        "microsoft": "microsoft/v1.0/me/calendar/events",
    }
    client = CLIENTS[provider](f"{ada.sandbox.url}/{path[provider]}", ada.account.access_token)
    others = Others(client, Random(20261128))
    ada.follow()
    before = groups(listed(ada))
    for _ in range(CHANGES):
        for _ in range(others.random.randrange(1, 4)):
            others.change()
        if others.random.random() < 0.2:
            ada.sandbox.fault(operation=LIST[provider], status=503, times=3)
            ada.follow()
            ada.sandbox.clear_faults()
            ada.runtime.stores.redis.delete(*ada.runtime.stores.redis.keys("pause:*") or ["none"])
        if others.random.random() < 0.1:
            ada.sandbox.expire_sync_tokens(provider)
        if others.random.random() < 0.3:
            # The process ends during the comparison, before its transaction or within it.
            module, name = others.random.choice(
                [(event_feeds.reads, "perform"), (stored, "store"), (webhook_events, "record_changes")]
            )
            with monkeypatch.context() as patch:
                patch.setattr(module, name, ends_after(getattr(module, name)))
                with pytest.raises(SystemExit):
                    ada.follow()
        assert ada.follow()
        after = groups(listed(ada))
        news = [(kind, data.get("seriesId", data["eventId"])) for kind, data, _ in ada.news()]
        differing = {name for name in before | after if before.get(name) != after.get(name)}
        named = Counter(name for _, name in news)
        assert set(named) >= differing
        assert max(named.values(), default=1) == 1
        for kind, name in news:
            if kind == "event.created" and name in differing:
                assert name not in before or name not in {*before[name]}
            if kind == "event.deleted" and name not in after:
                assert name in before
        before = after
