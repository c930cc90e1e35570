"""Notifications that arrive on a provider's channel, in provider-neutral form."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


class NotificationKind(Enum):
    """The state of a channel or its calendar that a notification reports."""

    # The provider has reached our address for the first time.
    CONFIRMED = auto()
    # Something in the calendar has changed, or may have changed.
    CHANGED = auto()
    # The channel expires soon unless it is renewed.
    ENDING = auto()
    # The channel has ended.
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification; untrusted until ``secret`` is verified to be the secret of ``channel``."""

    channel: str
    secret: str = field(repr=False)
    news: NotificationKind
