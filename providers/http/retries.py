"""Whether and when a failed call is retried."""

from __future__ import annotations

import random
import re
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from providers.base import CallReporter
from providers.errors import ProviderError, Unavailable

# Attempts after the first. More would not fit an interactive deadline.
RETRIES = 2

# Seconds before the first retry without a ``Retry-After``; doubled for the second, with random jitter.
BACKOFF = 0.25

# A retry with fewer seconds than this before the deadline cannot be answered in time.
MIN_LEFT = 0.05

# The standard has no fractions, but some servers send them.
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]+)?")


def wait_before_retry(
    error: ProviderError,
    tries: int,
    *,
    deadline: float,
    reporter: CallReporter | None = None,
    repeatable: bool = True,
) -> float | None:
    """Seconds to wait before the retry after ``tries`` failures; None when the call is not retried.

    Retryable failures are reported to ``reporter``, because they may affect other calls too.
    """
    if not error.retryable:
        return None
    requested = error.retry_after if isinstance(error, Unavailable) else None
    pause = BACKOFF * 2 ** (tries - 1) * random.uniform(0.5, 1.5) if requested is None else requested
    again = repeatable and tries <= RETRIES
    if reporter is not None:
        # A ``Retry-After`` beyond the deadline is an answer, so it does not count as given up.
        given_up = not again or (requested is None and not _in_time(pause, deadline))
        allowed = reporter.failed(error, pause, given_up=given_up)
        again, pause = again and allowed is not None, allowed or 0.0
    return pause if again and _in_time(pause, deadline) else None


def _in_time(pause: float, deadline: float) -> bool:
    return time.monotonic() + pause + MIN_LEFT < deadline


def retry_after(value: str | None) -> float | None:
    """Seconds of a ``Retry-After`` (a number or an HTTP date); None for any other value."""
    if value is None:
        return None
    if _SECONDS.fullmatch(value.strip()):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
