"""How old the data in an answer may be."""

from __future__ import annotations

import time
from dataclasses import dataclass

from werkzeug.datastructures import RequestCacheControl
from werkzeug.http import parse_cache_control_header

# In seconds. Nothing cached is as old as that; larger numbers would only be too large to compute with.
A_YEAR = 365 * 86_400


@dataclass(frozen=True, slots=True)
class Freshness:
    """An answer uses no read from before ``newer_than``, in milliseconds; None allows any cached read."""

    newer_than: int | None = None


def required_freshness(cache_control: str | None) -> Freshness:
    """The freshness that a client requires by the header ``Cache-Control``.

    ``cache_control`` is the value of the header; None, for a client that sent none, allows any cached read.
    """
    if cache_control is None:
        return Freshness()
    # Directives are case-insensitive, but the parser only knows lower case.
    control = parse_cache_control_header(cache_control.lower(), cls=RequestCacheControl)
    if control.no_cache:
        return Freshness(newer_than=now_ms())
    if control.max_age is not None:
        return Freshness(newer_than=now_ms() - min(max(0, control.max_age), A_YEAR) * 1000)
    return Freshness()


def now_ms() -> int:
    """The current time in milliseconds."""
    return time.time_ns() // 1_000_000
