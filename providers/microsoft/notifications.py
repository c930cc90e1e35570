"""The notifications of Microsoft Graph's subscriptions.

https://learn.microsoft.com/en-us/graph/change-notifications-overview
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from providers.notifications import Notification, NotificationKind

# Separates our id from the secret in ``clientState``, the one text that Graph returns to us.
BETWEEN = "."

_LIFECYCLE = {
    "reauthorizationRequired": NotificationKind.ENDING,
    "subscriptionRemoved": NotificationKind.ENDED,
    "missed": NotificationKind.CHANGED,
}


def notifications(body: Any) -> Iterator[Notification]:
    """The notifications of a body in order; invalid entries are skipped."""
    entries = body.get("value") if isinstance(body, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or not isinstance(state := entry.get("clientState"), str):
            continue
        channel, _, secret = state.partition(BETWEEN)
        # An unknown lifecycle event may mean that notifications were missed.
        yield Notification(
            channel, secret, _LIFECYCLE.get(str(entry.get("lifecycleEvent")), NotificationKind.CHANGED)
        )
