"""What becomes of a provider's notification: proven, then acted upon within its request."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Collection, Sequence
from functools import cache, partial

from app.services import services
from providers.names import ProviderName
from providers.notifications import News, Notification
from store.cache.busy_cache import CalendarKey
from store.cache.invalidation import after_notification
from store.sql.queries import channels, webhooks
from store.sql.queries.channels import Speaker
from store.sql.queries.webhooks import Event
from workers.upkeep.channel_opening import lose, watch

log = logging.getLogger(__name__)

# A round that keeps channels looks at all of them: one is called for in so many seconds.
ROUND_SECONDS = 60.0

CHANNEL = re.compile(r"[0-9a-f]{32}", re.ASCII)

# Compared with where there is no channel, so that a refusal takes the same way for whatever reason.
_NOBODY = Speaker("", "", CalendarKey("", ""), channels.digest(secrets.token_urlsafe(32)))


def handle(provider: ProviderName, told: Sequence[Notification]) -> bool:
    """Act on the notifications that channels of ours prove; False when none does."""
    speakers = _speakers({each.channel for each in told if CHANNEL.fullmatch(each.channel)})
    heeded = False
    # The same one again tells nothing.
    for notification in dict.fromkeys(told):
        speaker = speakers.get(notification.channel, _NOBODY)
        if speaker.proves(notification.secret) and speaker.provider == provider:
            _act(speaker, notification.news)
            heeded = True
    return heeded


def _act(speaker: Speaker, news: News) -> None:
    match news:
        case News.CONFIRMED:
            _confirm(speaker)
        case News.CHANGED:
            stores = services().stores
            after_notification(stores, speaker, speaker.key)
            stores.channel_usage.hear(speaker.channel, services().settings.push_audit_seconds)
            _tell(speaker)
        case News.ENDING:
            _renew_soon(speaker)
        case News.ENDED:
            services().stores.busy.empty(speaker.key, unwatch=speaker.channel)
            after_notification(services().stores, speaker, speaker.key)
            # What has changed since it ended was told to nobody. Before the channel goes: should it fail, the
            # provider can tell us again.
            _tell(speaker)
            lose(services().stores, speaker.key, speaker.channel)


def _tell(speaker: Speaker) -> None:
    """Tell those in turn who want to hear of changes; when that fails, the provider is to come again."""
    connection, calendar = speaker.key
    with services().stores.database.writing() as session:
        webhooks.record(session, Event.CALENDAR_CHANGED, connection, calendar_id=calendar)


def _speakers(names: Collection[str]) -> dict[str, Speaker]:
    """Who the channels are; at most one query for all that are not remembered."""
    if not names:
        return {}
    stores = services().stores
    memory = stores.versioned_cache.current()

    @cache
    def stored() -> dict[str, Speaker]:
        with stores.database.reading() as session:
            return channels.speakers(session, names)

    def load(name: str) -> Speaker | None:
        return stored().get(name)

    found = {name: memory.get_or_load(("channel", name), partial(load, name)) for name in names}
    return {name: speaker for name, speaker in found.items() if speaker is not None}


def _confirm(speaker: Speaker) -> None:
    """Rely on the channel from now on; who says so again, or later, changes nothing."""
    stores = services().stores
    with stores.database.writing() as session:
        row = channels.confirmed(session, speaker.channel)
    if row is not None:
        watch(stores, row)


def _renew_soon(speaker: Speaker) -> None:
    """With the round that is called for, or the next one of beat."""
    stores = services().stores
    with stores.database.writing() as session:
        channels.hurry(session, speaker.channel)
    if stores.channel_usage.call_round(ROUND_SECONDS):
        services().celery.send_task("upkeep.keep_channels", expires=ROUND_SECONDS)
