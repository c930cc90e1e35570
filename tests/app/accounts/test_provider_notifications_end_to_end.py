"""From a change at the provider to the next busy read, through a real web server and a real worker."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial

import pytest

from store.cache.busy_cache import CalendarKey
from store.sql.queries import channels, connection_rows, event_feeds
from tests import people
from tests.app.days import PROVIDERS
from tests.app.provider_installation import TTL, Installation, Person, installed, kept, when
from tests.receiver import receiving
from tests.waiting import until

pytestmark = pytest.mark.slow

RENEWAL = {"google": "google.events.watch", "microsoft": "microsoft.subscriptions.update"}
OPENING = {"google": "google.events.watch", "microsoft": "microsoft.subscriptions.create"}
CLOSING = {"google": "google.channels.stop", "microsoft": "microsoft.subscriptions.delete"}

SCOPES = {"google": None, "microsoft": ["Calendars.Read", "MailboxSettings.Read"]}


def grant_tokens(installation: Installation) -> set[bytes]:
    """The keys of cached tokens of organization grants."""
    return {*installation.stores.redis.scan_iter("grant-token*")}


@pytest.fixture(scope="module")
def installation(environment, tmp_path_factory) -> Iterator[Installation]:
    with installed(environment, tmp_path_factory.mktemp("pushed")) as installation:
        yield installation


@pytest.fixture
def person(installation, sandbox, unique):
    """A user with an account that has a meeting at nine tomorrow."""

    def make(provider: str, **more) -> Person:
        events = [{"start": f"{when(9)}Z", "end": f"{when(10)}Z"}]
        account = sandbox.account(provider, f"{unique('ada')}@example.com", events=events, **more)
        return installation.person(sandbox, unique("user"), account)

    return make


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_change_reaches_the_next_read_and_nothing_else_costs_one(person, provider):
    ada = person(provider)
    ada.settle()
    # Longer than without push.
    time.sleep(TTL + 0.3)
    assert ada.busy() == ["09:00"]
    assert ada.reads == 0

    ada.meet(12)
    until(lambda: ada.busy() == ["09:00", "12:00"])

    assert ada.reads == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_endpoint_learns_which_event_was_created(person, installation, provider):
    ada = person(provider)
    ada.settle()
    with receiving() as receiver:
        body = {"url": receiver.url, "events": ["event.created"], "content": True}
        endpoint = installation.api.post("/webhooks", body).json["data"]["id"]
        kept(installation, lambda: _is_followed(installation, ada.key))

        ada.meet(12)
        until(lambda: receiver.received)

        (sent,) = [json.loads(each.body) for each in receiver.received]
        log = installation.api.get(f"/webhooks/{endpoint}/deliveries")
        assert log.status_code == 200, log.text
        (delivery,) = log.json["data"]
        replayed = installation.api.post(f"/webhooks/{endpoint}/deliveries/{delivery['id']}/replay")
        installation.api.delete(f"/webhooks/{endpoint}")
    assert (sent["type"], sent["data"]["userId"]) == ("event.created", ada.user)
    assert sent["data"]["event"]["start"] == f"{when(12)}.000Z"
    # The log has the event as it was sent.
    assert delivery["payload"] == replayed.json["data"]["payload"] == sent


def _is_followed(installation: Installation, key: CalendarKey) -> bool:
    with installation.stores.database.reading() as session:
        return event_feeds.find(session, key) is not None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_without_push_a_change_is_seen_after_the_time_to_live(person, provider):
    ada = person(provider)
    ada.sandbox.fault(operation=OPENING[provider], status=403)
    assert ada.busy() == ["09:00"]
    ada.meet(12)
    until(lambda: ada.busy() == ["09:00", "12:00"])

    # All those between came from the cache: two reads of which the first had ended.
    assert ada.reads == 2
    assert ada.count(f"{provider}.push") == 0
    assert not ada.is_watched()


@pytest.mark.parametrize(
    ("provider", "scope"),
    [("google", "calendar.freebusy calendar.calendarlist.readonly"), ("microsoft", "Calendars.ReadBasic")],
)
def test_the_right_to_free_and_busy_alone_opens_no_channel(person, provider, scope):
    ada = person(provider, scope=scope)
    assert ada.busy() == ["09:00"]
    time.sleep(TTL + 0.3)
    assert ada.busy() == ["09:00"]

    assert ada.reads == 2
    assert ada.count(OPENING[provider]) == 0
    assert not ada.is_watched()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_channel_is_opened_once(person, provider):
    ada = person(provider)
    ada.settle()
    for _ in range(5):
        ada.installation.api.get(
            f"/users/{ada.user}/calendar/busy",
            headers={"Cache-Control": "no-cache"},
            start=when(0) + "Z",
            end=when(23) + "Z",
        )
    assert ada.reads == 5
    assert ada.count(OPENING[provider]) == 0
    assert len(ada.sandbox.channels()) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_channel_is_renewed_before_it_ends(person, provider):
    ada = person(provider)
    # Renewed when a quarter of this is left; the watch ends an eighth before the end.
    ada.sandbox.shorten_channels(8)
    ada.settle()
    (first,) = ada.sandbox.channels()
    watch = ada.channel

    kept(ada.installation, lambda: ada.sandbox.channels()[-1]["expiresAt"] > first["expiresAt"])

    assert ada.count(RENEWAL[provider]) == 1
    # No gap: the calendar is watched by the new channel, or still by the old one.
    until(lambda: (ada.channel != watch) == (provider == "google"))
    ada.meet(16)
    until(lambda: "16:00" in ada.busy())
    assert ada.is_watched()


def test_google_s_old_channel_is_closed_when_the_new_one_watches(person, installation):
    ada = person("google")
    ada.settle()
    old = ada.channel
    with installation.stores.database.writing() as session:
        channels.make_due(session, old)
    kept(installation, lambda: ada.channel != old)
    with installation.stores.database.writing() as session:
        channels.make_due(session, old)

    kept(installation, lambda: ada.count(CLOSING["google"]) == 1)
    assert [each["id"] for each in ada.sandbox.channels()] == [ada.channel]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_late_renewal_falls_back_to_the_time_to_live(person, provider):
    ada = person(provider)
    ada.sandbox.shorten_channels(3)
    ada.settle()
    until(lambda: not ada.is_watched())
    ada.sandbox.forget_requests()
    # The entries cached for the watched calendar were evicted too.
    assert ada.busy() == ["09:00"]
    assert ada.reads == 1


def test_a_subscription_that_has_to_be_renewed_is(person):
    ada = person("microsoft")
    ada.settle()
    assert ada.sandbox.lifecycle("reauthorizationRequired", email=ada.account.email) == 1
    # Without that word no renewal would be due for two days.
    channel = ada.channel
    # Channels of other tests are renewed too.
    kept(ada.installation, lambda: ada.count(RENEWAL["microsoft"]) >= 1)
    assert ada.channel == channel


def test_a_subscription_that_was_removed_is_replaced(person):
    ada = person("microsoft")
    ada.settle()
    channel = ada.channel
    assert ada.sandbox.lifecycle("subscriptionRemoved", email=ada.account.email) == 1
    until(lambda: ada.channel != channel)

    def read_afresh():
        ada.installation.stores.busy.invalidate_calendar(ada.key)
        ada.busy()

    # A read opens no channel while the notification is still being handled.
    until(ada.is_watched, meanwhile=read_afresh)
    assert ada.count(OPENING["microsoft"]) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("deleted", ["connection", "user"])
def test_channels_end_with_their_connection(person, provider, deleted):
    ada = person(provider)
    ada.settle()
    path = f"/users/{ada.user}" + (f"/oauth/{provider}" if deleted == "connection" else "")
    assert ada.installation.api.delete(path).status_code == 200

    assert ada.count(CLOSING[provider]) == 1
    assert ada.sandbox.channels() == []
    left = [name.decode() for name in ada.installation.stores.redis.scan_iter(count=1000)]
    # Single-flight and rate-limit keys expire within seconds.
    passing = ("pace:", "pause:", "throttle:", "busy-generation:", "read-")
    left = [name for name in left if not name.startswith(passing)]
    assert not [name for name in left if ada.connection in name]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_refused_channel_is_not_requested_again(person, provider):
    ada = person(provider)
    ada.sandbox.fault(operation=OPENING[provider], status=403)
    for _ in range(3):
        ada.installation.stores.busy.invalidate_calendar(ada.key)
        ada.busy()
    until(lambda: ada.count(OPENING[provider]) == 1)
    ada.installation.stores.busy.invalidate_calendar(ada.key)
    ada.busy()

    assert ada.reads == 4
    assert ada.count(OPENING[provider]) == 1
    assert not ada.is_watched()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_read_does_not_wait_for_its_channel(person, provider):
    ada = person(provider)
    ada.sandbox.fault(operation=OPENING[provider], latency_ms=4000)
    assert ada.busy() == ["09:00"]
    assert not ada.is_watched()
    until(ada.is_watched)


def test_the_watch_is_restored_when_redis_has_lost_it(person, installation):
    ada = person("google")
    ada.settle()
    channel = ada.channel
    installation.stores.redis.delete(f"busy-watch:{ada.connection}:primary")
    assert not ada.is_watched()
    kept(installation, lambda: ada.channel == channel)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("deleted", ["grant", "organization", "membership"])
def test_channels_and_cached_data_end_with_grant_organization_or_membership(
    installation, sandbox, unique, provider, deleted
):
    api, slug, user = installation.api, unique("org"), unique("user")
    address = f"{user}@{slug}.example"
    domain = sandbox.domain(provider, f"{slug}.example", [address], scope=SCOPES[provider])
    assert api.post("/organizations", {"slug": slug}).status_code == 200
    path = f"/organizations/{slug}/grants/{provider}"
    assert api.put(path, people.grant_of(domain)).status_code == 200
    assert api.post(f"{path}/members", {"members": [{"userId": user, "email": address}]}).status_code == 200
    busy = partial(api.get, f"/users/{user}/calendar/busy", start=f"{when(0)}Z", end=f"{when(23)}Z")
    with installation.stores.database.reading() as session:
        (ref,) = connection_rows.of_user(session, user, organization_id=None) or []
    assert busy().status_code == 200
    until(lambda: installation.stores.busy.watched([CalendarKey(ref.id, "primary")])[0] is not None)
    tokens = grant_tokens(installation)
    assert tokens
    sandbox.forget_requests()

    organization = f"/organizations/{slug}"
    paths = {"grant": path, "organization": organization, "membership": f"{organization}/members/{user}"}
    assert api.delete(paths[deleted]).status_code == 200

    assert sandbox.requests().by_operation.get(CLOSING[provider]) == 1
    assert sandbox.channels() == []
    # The grant of an organization that still exists reads its other members.
    assert tokens & grant_tokens(installation) == (tokens if deleted == "membership" else set())
    assert not list(installation.stores.redis.scan_iter(f"busy:{ref.id}*"))
    assert busy().status_code == 404
