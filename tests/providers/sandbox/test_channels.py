"""The sandbox's notifications: when and how often they are sent, and the effect of its controls."""

from __future__ import annotations

import pytest

from tests.app.at_provider import AtProvider
from tests.providers.sandbox import callers
from tests.waiting import until

PROVIDERS = ("google", "microsoft")


def pushes(sandbox, provider: str) -> int:
    """The number of notifications sent; a due one is counted before the next call is answered."""
    return sandbox.requests().by_operation.get(f"{provider}.push", 0)


def watch(sandbox, account, url: str, **changed):
    """Open a channel as an application would."""
    if account.provider == "google":
        body = {"id": "channel-1", "type": "web_hook", "address": url, "token": "t"} | changed
        return callers.google(sandbox, account)("POST", "calendars/primary/events/watch", json=body)
    body = {
        "changeType": "created,updated,deleted",
        "notificationUrl": url,
        "resource": "me/events",
        "expirationDateTime": "2026-01-01T00:00:00Z",
        "clientState": "t",
    } | changed
    return callers.graph(sandbox, account)("POST", "subscriptions", json=body)


@pytest.fixture
def there(sandbox, receiver):
    """An account with an open channel; returns its events once the first notifications have arrived."""

    def make(provider: str) -> AtProvider:
        account = sandbox.account(provider, "ada@example.com")
        assert watch(sandbox, account, receiver.url).ok
        if provider == "google":
            receiver.wait(1)
            receiver.received.clear()
        return AtProvider(sandbox, account)

    return make


@pytest.mark.parametrize("provider", PROVIDERS)
def test_notifications_are_lost_doubled_and_delayed_on_demand(sandbox, there, receiver, provider):
    events = there(provider)
    push = f"{provider}.push"
    sandbox.fault(operation=push, body="lost", times=1)
    events.post()
    events.post()
    receiver.wait(1)
    sandbox.clear_faults()
    sandbox.fault(operation=push, body="doubled", latency_ms=50, times=1)
    events.post()

    # One of the first two, then the third twice.
    assert len(receiver.wait(3)) == 3
    assert receiver.received[1].body == receiver.received[2].body


@pytest.mark.parametrize("provider", PROVIDERS)
def test_notification_is_retried_after_5xx_but_not_after_4xx(sandbox, there, receiver, provider):
    events = there(provider)
    receiver.statuses = [503, 500, 204, 404]
    events.post()
    events.post()
    events.post()

    # The first three attempts, the others once.
    assert len(receiver.wait(5)) == 5
    # A notification counts as sent once it has been answered.
    count = 3 if provider == "google" else 2
    until(lambda: [each["sent"] for each in sandbox.channels()] == [count])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_channel_that_was_dropped_is_silent(sandbox, there, receiver, provider):
    events = there(provider)
    assert sandbox.drop_channels(email="nobody@example.com") == 0
    assert sandbox.drop_channels(provider=provider) == 1
    sent = pushes(sandbox, provider)
    events.post()

    assert [each["dropped"] for each in sandbox.channels()] == [True]
    assert pushes(sandbox, provider) == sent


def test_a_google_channel_id_serves_once(sandbox, there, receiver):
    there("google")
    again = watch(sandbox, sandbox.account("google", "eve@example.com"), receiver.url)
    assert callers.reason(again) == (400, "channelIdNotUnique")


@pytest.mark.parametrize(
    "changed", [{"id": None}, {"address": None}, {"type": "carrier pigeon"}, {"id": "x" * 65}, {"token": 5}]
)
def test_google_refuses_a_channel_that_makes_no_sense(sandbox, receiver, changed):
    answer = watch(sandbox, sandbox.account("google", "ada@example.com"), receiver.url, **changed)
    assert answer.status_code == 400
    assert sandbox.channels() == []


@pytest.mark.parametrize(
    "changed",
    [
        {"resource": None},
        {"resource": "me/messages"},
        {"expirationDateTime": "tomorrow"},
        {"expirationDateTime": "2099-01-01T00:00:00Z"},
        {"clientState": "x" * 129},
        {"notificationUrl": "http://127.0.0.1:1/nobody"},
    ],
)
def test_microsoft_refuses_a_subscription_that_makes_no_sense(sandbox, receiver, changed):
    answer = watch(sandbox, sandbox.account("microsoft", "ada@example.com"), receiver.url, **changed)
    assert answer.status_code == 400
    assert sandbox.channels() == []
