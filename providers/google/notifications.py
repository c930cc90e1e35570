"""The notifications of Google's watch channels.

https://developers.google.com/workspace/calendar/api/guides/push
"""

from __future__ import annotations

from collections.abc import Callable

from providers.notifications import Notification, NotificationKind

_NEWS = {"sync": NotificationKind.CONFIRMED}


def notification(header: Callable[[str], str | None]) -> Notification:
    """A notification, which is entirely in its headers; ``header`` looks one up by name."""
    return Notification(
        header("X-Goog-Channel-ID") or "",
        header("X-Goog-Channel-Token") or "",
        # An unknown state may mean a change.
        _NEWS.get(header("X-Goog-Resource-State") or "", NotificationKind.CHANGED),
    )
