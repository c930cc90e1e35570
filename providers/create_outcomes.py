"""Creates whose answer is lost: they may have been done, so the adapter looks before it reports."""

from __future__ import annotations

import time
from collections.abc import Callable

from providers.errors import (
    AuthorizationInvalid,
    EventExists,
    LocalResourceExhausted,
    OutcomeUnknown,
    ProviderError,
    RateLimited,
    Unavailable,
)
from providers.events import Created

# Seconds that are kept for the look after an insert without an answer; at most a share of what is left.
# With the usual deadline two tries of the insert still fit before it.
LOOK_SECONDS = 1.5
LOOK_SHARE = 0.2


def insert_deadline(deadline: float) -> float:
    """When the insert has to be answered, so that time remains for the look."""
    left = max(0.0, deadline - time.monotonic())
    return deadline - min(LOOK_SECONDS, left * LOOK_SHARE)


def is_unclear(error: ProviderError) -> bool:
    """Whether a write that failed may have been done all the same.

    A write that was refused, throttled or never sent has done nothing, unless an earlier try of the same
    write had no answer.
    """
    if isinstance(error, RateLimited | LocalResourceExhausted) or error.unsent:
        return error.repeated
    return error.repeated or isinstance(error, Unavailable)


def settled(error: ProviderError, look: Callable[[], Created | None]) -> Created:
    """The event of an insert that failed with ``error``, if it is there; ``look`` finds it.

    :raise OutcomeUnknown: when the insert may have been done and the event is not seen
    :raise AuthorizationInvalid: when the grant ended before the look, ``repeated``
    :raise ProviderError: ``error`` itself when the insert has done nothing
    """
    if not is_unclear(error):
        raise error
    try:
        found = look()
    except EventExists:
        raise
    except AuthorizationInvalid as lost:
        lost.repeated = True
        raise
    except ProviderError:
        found = None
    if found is None:
        raise OutcomeUnknown(error.message, operation=error.operation) from None
    return found
