"""Whether a failed call is made again, and when."""

from __future__ import annotations

import random
import re
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from providers.base import Traffic
from providers.errors import ProviderError, Unavailable

# Tries after the first. More would not fit an interactive deadline.
RETRIES = 2

# Seconds before the first retry when the provider names no time; doubled for the second, half of it random.
BACKOFF = 0.25

# A retry with less time than this, in seconds, before the deadline cannot be answered any more.
LEAST_LEFT = 0.05

# A fraction is not in the standard, and some send it.
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]+)?")


def wait_before_retry(
    error: ProviderError,
    tries: int,
    *,
    deadline: float,
    traffic: Traffic | None = None,
    repeatable: bool = True,
) -> float | None:
    """Seconds to wait before the call is made again after ``tries`` failures; None when it should not be.

    ``traffic`` hears of every failure that another call might meet as well.
    """
    if not error.retryable:
        return None
    asked = error.retry_after if isinstance(error, Unavailable) else None
    pause = BACKOFF * 2 ** (tries - 1) * random.uniform(0.5, 1.5) if asked is None else asked
    again = repeatable and tries <= RETRIES
    if traffic is not None:
        # Who names a time that is too long has answered: nobody waits for nothing.
        given_up = not again or (asked is None and not _in_time(pause, deadline))
        told = traffic.failed(error, pause, given_up=given_up)
        again, pause = again and told is not None, told or 0.0
    return pause if again and _in_time(pause, deadline) else None


def _in_time(pause: float, deadline: float) -> bool:
    return time.monotonic() + pause + LEAST_LEFT < deadline


def retry_after(value: str | None) -> float | None:
    """Seconds of a ``Retry-After``, which is a number or an HTTP date; None when it is neither."""
    if value is None:
        return None
    if _SECONDS.fullmatch(value.strip()):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
