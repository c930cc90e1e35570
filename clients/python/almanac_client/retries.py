"""When a request is sent again, and after how long."""

from __future__ import annotations

import random
from dataclasses import dataclass

from almanac_client.errors import Unavailable, Unreachable
from almanac_client.messages import Request

# Seconds before the first retry, unless the answer has a ``Retry-After``.
FIRST_PAUSE = 0.25


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is sent again, and the longest ``Retry-After`` in seconds that is waited for."""

    most: int = 2
    longest_pause: float = 10.0

    def pause(self, request: Request, error: Unavailable, attempt: int) -> float | None:
        """Seconds until the next attempt; None when there is none. ``attempt`` counts from 0.

        A request that is not repeatable is sent again only when it has not reached Almanac.
        """
        if attempt >= self.most or not (request.repeatable or isinstance(error, Unreachable)):
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest_pause else None
        # Random, so that clients that failed together do not retry together.
        return FIRST_PAUSE * 2.0**attempt * random.uniform(1.0, 2.0)
