"""Handles notifications from providers: authenticates them and acts on them within their request."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Collection, Sequence
from functools import cache, partial

from app.services import services
from providers.names import ProviderName
from providers.notifications import Notification, NotificationKind
from store.cache.busy_cache import CalendarKey
from store.security.crypto import digest
from store.sql.queries import channels, webhook_events
from store.sql.queries.channels import ChannelWithAccount
from store.sql.queries.webhook_events import WebhookEvent
from workers.upkeep.channel_opening import remove_and_allow_reopening, watch

log = logging.getLogger(__name__)

# One upkeep round checks all channels, so a round is requested at most once in this many seconds.
ROUND_SECONDS = 60.0

CHANNEL = re.compile(r"[0-9a-f]{32}", re.ASCII)

# Compared with if there is no channel, so that every rejection takes the same code path.
_UNKNOWN = ChannelWithAccount("", "", CalendarKey("", ""), digest(secrets.token_urlsafe(32)))


def handle(provider: ProviderName, notifications: Sequence[Notification]) -> bool:
    """Act on the notifications that have the secret of one of our channels; False if none has."""
    known = _channels({each.channel for each in notifications if CHANNEL.fullmatch(each.channel)})
    handled = False
    # Duplicates within a request are dropped.
    for notification in dict.fromkeys(notifications):
        channel = known.get(notification.channel, _UNKNOWN)
        if channel.has_secret(notification.secret) and channel.provider == provider:
            _act(channel, notification.news)
            handled = True
    return handled


def _act(channel: ChannelWithAccount, news: NotificationKind) -> None:
    match news:
        case NotificationKind.CONFIRMED:
            _confirm(channel)
        case NotificationKind.CHANGED:
            _handle_change(channel)
        case NotificationKind.ENDING:
            _renew_soon(channel)
        case NotificationKind.ENDED:
            services().stores.busy.invalidate_calendar(channel.key, unwatch=channel.channel)
            # Changes since the channel ended went unreported. Recorded before the channel is removed: if
            # recording fails, the provider can send the notification again.
            _handle_change(channel)
            remove_and_allow_reopening(services().stores, channel.key, channel.channel)


def _handle_change(channel: ChannelWithAccount) -> None:
    """Invalidate the cache, and record the change for webhook delivery.

    If recording it fails, the provider must send the notification again.
    """
    stores = services().stores
    stores.busy.invalidate_changed(channel, channel.key, stores.calendar_lists.owner(channel, channel.key))
    connection, calendar = channel.key
    with stores.database.writing() as session:
        webhook_events.record(session, WebhookEvent.CALENDAR_CHANGED, connection, calendar_id=calendar)


def _channels(names: Collection[str]) -> dict[str, ChannelWithAccount]:
    """The channels by name, with at most one query for the uncached ones."""
    if not names:
        return {}
    stores = services().stores
    cached = stores.versioned_cache.current()

    @cache
    def stored() -> dict[str, ChannelWithAccount]:
        with stores.database.reading() as session:
            return channels.with_accounts(session, names)

    def load(name: str) -> ChannelWithAccount | None:
        return stored().get(name)

    found = {name: cached.get_or_load(("channel", name), partial(load, name)) for name in names}
    return {name: channel for name, channel in found.items() if channel is not None}


def _confirm(channel: ChannelWithAccount) -> None:
    """Mark the channel as confirmed; a repeated confirmation has no effect."""
    stores = services().stores
    with stores.database.writing() as session:
        row = channels.confirmed(session, channel.channel)
    if row is not None:
        watch(stores, row)


def _renew_soon(channel: ChannelWithAccount) -> None:
    """Have the channel renewed, by an upkeep round that is requested now or by the next scheduled one."""
    stores = services().stores
    with stores.database.writing() as session:
        channels.make_due(session, channel.channel)
    if stores.channel_usage.claim_round(ROUND_SECONDS):
        services().celery.send_task("upkeep.keep_channels", expires=ROUND_SECONDS)
