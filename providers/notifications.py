"""What a provider tells us by a channel, in our own words."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto


class News(Enum):
    """What there is to know of a channel or its calendar."""

    # The provider has reached us for the first time.
    CONFIRMED = auto()
    # Something in the calendar has changed, or may have.
    CHANGED = auto()
    # The channel ends soon unless it is renewed.
    ENDING = auto()
    # The channel is no more.
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class Notification:
    """One notification; nothing in it is true until ``secret`` has been found to be that of ``channel``."""

    channel: str
    secret: str = field(repr=False)
    news: News
