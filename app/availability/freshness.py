"""How old the data in an answer may be."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Freshness:
    """An answer uses no read from before ``newer_than``, in milliseconds; None allows any cached read."""

    newer_than: int | None = None


def now() -> int:
    """The current time in milliseconds."""
    return time.time_ns() // 1_000_000
