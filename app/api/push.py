"""Notifications from providers: routes that act within the request, authenticated by the channel's secret."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Sequence
from functools import cache, partial
from itertools import islice

import orjson
from flask import Blueprint, Response, request

from app.http.errors import ApiError, Invalid, NotFound
from app.http.routes import route_facts
from app.schemas.error_codes import Code
from app.services import services
from providers.google import notifications as google
from providers.microsoft import notifications as microsoft
from providers.notifications import Notification, NotificationKind
from store.cache.busy_cache import CalendarKey
from store.security.crypto import digest
from store.sql.queries import channels, webhook_events
from store.sql.queries.channels import ChannelWithAccount
from store.sql.queries.webhook_events import WebhookEvent
from workers.upkeep.watches import remove_and_allow_reopening, request_comparison, watch

blp = Blueprint("push", __name__)

# In bytes. Google sends no body; Graph sends less than a kilobyte for each change in a request.
MAX_BODY = 256 * 1024
# Many more than Graph sends, and few enough to look up for an unauthenticated client.
MAX_NOTIFICATIONS = 100
# Ten times the length of Graph's own.
MAX_TOKEN = 2048
# One upkeep round checks all channels, so a round is requested at most once in this many seconds.
ROUND_SECONDS = 60.0

CHANNEL = re.compile(r"[0-9a-f]{32}", re.ASCII)

# Compared with if there is no channel, so that every rejection takes the same code path.
_UNKNOWN = ChannelWithAccount("", "", CalendarKey("", ""), digest(secrets.token_urlsafe(32)))


@blp.before_request
def _limit_body() -> None:
    request.max_content_length = MAX_BODY


@blp.post("/push/google")
@route_facts(needs_key=False)
def google_push() -> Response:
    """A notification of a watch channel."""
    if not _handle("google", [google.notification(request.headers.get)]):
        raise NotFound("There is no such channel", Code.CHANNEL_NOT_FOUND)
    return Response(status=204)


@blp.post("/push/microsoft")
@route_facts(needs_key=False)
def microsoft_push() -> Response:
    """Notifications of subscriptions, or the handshake of a new one."""
    token = request.args.get("validationToken")
    if token is not None:
        return _handshake(token)
    try:
        body = orjson.loads(request.get_data())
    except orjson.JSONDecodeError as error:
        raise ApiError("The request body is not valid JSON", Code.MALFORMED_BODY) from error
    notifications = list(islice(microsoft.notifications(body), MAX_NOTIFICATIONS + 1))
    if len(notifications) > MAX_NOTIFICATIONS:
        raise Invalid(f"value must have at most {MAX_NOTIFICATIONS} elements", param="value")
    if not _handle("microsoft", notifications):
        raise NotFound("There is no such channel", Code.CHANNEL_NOT_FOUND)
    return Response(status=202)


def _handshake(token: str) -> Response:
    """Graph's validation request for a new subscription: the response repeats its token as plain text."""
    if not 0 < len(token) <= MAX_TOKEN:
        raise Invalid("validationToken is empty or too long", param="validationToken")
    return Response(token, mimetype="text/plain", headers={"X-Content-Type-Options": "nosniff"})


def _handle(provider: str, notifications: Sequence[Notification]) -> bool:
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

    If recording or enqueueing it fails, the provider must send the notification again.
    """
    stores = services().stores
    stores.busy.invalidate_changed(channel, channel.key, stores.calendar_lists.owner(channel, channel.key))
    connection, calendar = channel.key
    with stores.database.writing() as session:
        webhook_events.record(session, WebhookEvent.CALENDAR_CHANGED, connection, calendar_id=calendar)
        followed = webhook_events.follow_events(session, [connection])
    if followed:
        request_comparison(stores, services().celery.send_task, channel.key)


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
