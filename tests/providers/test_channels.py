"""Channels of both providers against the sandbox: open, notify, extend, close, and failures."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from providers.base import ChannelRequest, Token
from providers.errors import AccessDenied, InsufficientScopes, NotFound, ProviderError, Unavailable
from providers.google import notifications as google_notifications
from providers.google.channels import GoogleChannels
from providers.microsoft import notifications, subscriptions
from providers.microsoft.subscriptions import MicrosoftSubscriptions
from providers.notifications import Notification, NotificationKind
from tests.app.at_provider import AtProvider
from tests.providers.addresses import google_at, microsoft_at

PROVIDERS = ("google", "microsoft")
ID, SECRET = "0123456789abcdef0123456789abcdef", "channel-secret"


@pytest.fixture
def channels(google_endpoints, microsoft_endpoints):
    return {
        "google": GoogleChannels(google_endpoints),
        "microsoft": MicrosoftSubscriptions(microsoft_endpoints),
    }


@pytest.fixture
def wanted(receiver) -> ChannelRequest:
    return ChannelRequest(ID, Token(SECRET), receiver.url)


def pushes(sandbox, provider: str) -> int:
    """The number of notifications sent; a due one is counted before the next call is answered."""
    return sandbox.requests().by_operation.get(f"{provider}.push", 0)


def received(provider: str, posted) -> list[Notification]:
    """The notifications of a request, as parsed by the adapter."""
    if provider == "google":
        assert posted.body == b""
        return [google_notifications.notification(posted.headers.get)]
    return list(notifications.notifications(posted.json))


@pytest.fixture
def opened(sandbox, channels, connect, wanted, receiver, soon):
    """Open a channel; returns it, the account and the account's events."""

    def make(provider: str, calendar: str = "primary", **more):
        account = sandbox.account(provider, "ada@example.com", **more)
        ours = connect(account)
        channel = channels[provider].open(ours, calendar, wanted, deadline=soon())
        receiver.wait(1 if provider == "google" else 0)
        return channel, ours, AtProvider(sandbox, account)

    return make


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_change_is_notified_with_our_id_and_secret(opened, receiver, provider):
    _, _, there = opened(provider)
    before = len(receiver.received)

    made = there.post()
    there.patch(made["id"], location="elsewhere") if provider == "google" else there.patch(
        made["id"], subject="other"
    )
    there.delete(made["id"])

    posted = receiver.wait(before + 3)[before:]
    assert [received(provider, each) for each in posted] == [
        [Notification(ID, SECRET, NotificationKind.CHANGED)]
    ] * 3


def test_google_sends_sync_first_with_growing_numbers(opened, receiver):
    channel, _, there = opened("google")
    there.post()
    first, second = receiver.wait(2)

    assert received("google", first) == [Notification(ID, SECRET, NotificationKind.CONFIRMED)]
    numbers = [int(each.headers["X-Goog-Message-Number"]) for each in (first, second)]
    assert numbers[0] == 1 < numbers[1]
    assert first.headers["X-Goog-Resource-ID"] == channel.resource
    assert not channel.confirmed
    assert timedelta(days=6) < channel.expires_at - datetime.now(UTC) <= timedelta(days=7)


def test_microsoft_shakes_hands_before_it_answers(opened, receiver):
    channel, _, _ = opened("microsoft")

    assert len(receiver.handshakes) == 1
    assert channel.confirmed
    assert timedelta(days=2) < channel.expires_at - datetime.now(UTC) <= subscriptions.LIFETIME


@pytest.mark.parametrize("provider", PROVIDERS)
def test_changes_in_another_calendar_are_not_notified(opened, receiver, sandbox, provider):
    other = "team@group.calendar.google.com" if provider == "google" else "AAMkTEAM"
    calendars = [{"subject": "", "primary": True}, {"id": other, "subject": "Team"}]
    _, _, there = opened(provider, other, calendars=calendars)
    before = len(receiver.received)

    there.post()
    there.post(calendar=other)

    assert len(receiver.wait(before + 1)) == before + 1
    (channel,) = sandbox.channels()
    assert channel["calendarId"] == other


@pytest.mark.parametrize("provider", PROVIDERS)
def test_closed_channel_is_silent_and_closing_twice_succeeds(opened, channels, sandbox, soon, provider):
    channel, account, there = opened(provider)
    before = pushes(sandbox, provider)
    for _ in range(2):
        channels[provider].close(account, channel.id, channel.resource, deadline=soon())

    there.post()

    assert sandbox.channels() == []
    assert pushes(sandbox, provider) == before


def test_microsoft_extends_and_google_does_not(opened, channels, sandbox, soon):
    sandbox.shorten_channels(60)
    channel, account, _ = opened("microsoft")
    sandbox.shorten_channels(120)
    ends = channels["microsoft"].extend(account, channel.id, deadline=soon())

    assert ends - channel.expires_at > timedelta(seconds=50)
    assert channels["google"].extend(account, channel.id, deadline=soon()) is None


def test_extending_unknown_microsoft_subscription_raises(opened, channels, sandbox, soon):
    channel, account, _ = opened("microsoft")
    assert sandbox.drop_channels() == 1
    with pytest.raises(NotFound):
        channels["microsoft"].extend(account, channel.id, deadline=soon())


@pytest.mark.parametrize(
    ("provider", "scope"), [("google", "calendar.freebusy"), ("microsoft", "Calendars.ReadBasic")]
)
def test_the_right_to_free_and_busy_is_not_enough(opened, sandbox, provider, scope):
    with pytest.raises(InsufficientScopes):
        opened(provider, scope=scope)
    assert sandbox.requests().total == 0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_calendar_of_another_user_cannot_be_watched(opened, provider):
    other = "boss@example.com" if provider == "google" else "AAMkBOSS"
    calendars = [{"subject": "", "primary": True}, {"id": other, "accessRole": "freeBusyReader"}]
    with pytest.raises(AccessDenied) as caught:
        opened(provider, other, calendars=calendars)
    assert not caught.value.retryable


def test_holidays_cannot_be_watched(opened):
    holidays = "en.german#holiday@group.v.calendar.google.com"
    with pytest.raises(ProviderError) as caught:
        opened("google", holidays, calendars=[{"id": holidays, "accessRole": "reader"}])
    assert not caught.value.retryable


def test_microsoft_channel_needs_a_valid_handshake(opened, receiver, sandbox):
    receiver.echo = lambda _: "hello"
    with pytest.raises(ProviderError) as caught:
        opened("microsoft")
    assert not caught.value.retryable
    assert sandbox.channels() == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_opening_is_not_tried_twice(script, scripted_account, soon, provider):
    script.say(503, {})
    channels = {
        "google": GoogleChannels(google_at(script.url)),
        "microsoft": MicrosoftSubscriptions(microsoft_at(script.url)),
    }
    with pytest.raises(Unavailable):
        channels[provider].open(
            scripted_account,
            "primary",
            ChannelRequest(ID, Token(SECRET), "https://x.example"),
            deadline=soon(),
        )
    assert len(script.requests) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("answer", [{}, {"id": "x", "expiration": "soon", "expirationDateTime": "soon"}])
def test_an_answer_without_an_end_is_unreadable(
    script, scripted_account, soon, is_fit_for_people, provider, answer
):
    script.say(200, answer)
    channels = {
        "google": GoogleChannels(google_at(script.url)),
        "microsoft": MicrosoftSubscriptions(microsoft_at(script.url)),
    }
    with pytest.raises(Unavailable) as caught:
        channels[provider].open(
            scripted_account,
            "primary",
            ChannelRequest(ID, Token(SECRET), "https://x.example"),
            deadline=soon(),
        )
    assert "unreadable" in caught.value.message


@pytest.mark.parametrize(
    ("event", "news"),
    [
        ("reauthorizationRequired", NotificationKind.ENDING),
        ("subscriptionRemoved", NotificationKind.ENDED),
        ("missed", NotificationKind.CHANGED),
    ],
)
def test_lifecycle_notifications_are_parsed(opened, receiver, sandbox, event, news):
    opened("microsoft")
    assert sandbox.lifecycle(event) == 1
    (posted,) = receiver.wait(1)

    assert received("microsoft", posted) == [Notification(ID, SECRET, news)]
    assert len(sandbox.channels()) == (event != "subscriptionRemoved")


@pytest.mark.parametrize(
    "body", [None, [], {}, {"value": None}, {"value": [None, 1, "x", {}, {"clientState": 5}]}, "text"]
)
def test_invalid_body_has_no_notifications(body):
    assert list(notifications.notifications(body)) == []


def test_a_notification_shows_no_secret():
    assert SECRET not in repr(Notification(ID, SECRET, NotificationKind.CHANGED))
    assert SECRET not in repr(ChannelRequest(ID, Token(SECRET), "https://x.example"))
