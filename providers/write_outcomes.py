"""Writes of events whose answer was lost.

After a create, the adapter looks for the event before it reports a failure. An update or a delete is safe to
repeat, so the adapter only reports that its outcome is unknown.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from providers.errors import (
    AccessDenied,
    AuthorizationInvalid,
    EventExists,
    LocalResourceExhausted,
    OutcomeUnknown,
    ProviderError,
    RateLimited,
    Unavailable,
)
from providers.events import CreateResult

# Seconds reserved for that lookup, and the largest share of the time left that it may take.
# With the usual deadline two attempts of the insert still fit before it.
LOOKUP_SECONDS = 1.5
LOOKUP_SHARE = 0.2


def insert_deadline(deadline: float) -> float:
    """The deadline of the insert, with time reserved for the lookup."""
    left = max(0.0, deadline - time.monotonic())
    return deadline - min(LOOKUP_SECONDS, left * LOOKUP_SHARE)


def is_unclear(error: ProviderError) -> bool:
    """Whether a failed write may have been executed.

    A write that was rejected, rate limited or never sent has no effect, unless an earlier attempt of the
    same write got no answer.
    """
    if isinstance(error, RateLimited | LocalResourceExhausted) or error.unsent:
        return error.repeated
    return error.repeated or isinstance(error, Unavailable)


def with_outcome(error: ProviderError) -> ProviderError:
    """The failure of a write, as ``OutcomeUnknown`` if the write may have been executed.

    Other errors say enough: that the event does not exist, that it has changed, that its content is refused,
    or that the grant has ended.
    """
    if not (is_unclear(error) and isinstance(error, Unavailable | AccessDenied)):
        return error
    unknown = OutcomeUnknown(error.message, operation=error.operation)
    unknown.repeated = error.repeated
    return unknown


def found_after_failure(error: ProviderError, lookup: Callable[[], CreateResult | None]) -> CreateResult:
    """The event of an insert that failed with ``error``, if it exists; ``lookup`` finds it.

    :raise OutcomeUnknown: when the insert may have been executed and the event is not found
    :raise AuthorizationInvalid: with ``repeated`` set, when the grant ended before the lookup
    :raise ProviderError: ``error`` itself when the insert had no effect
    """
    if not is_unclear(error):
        raise error
    try:
        found = lookup()
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
