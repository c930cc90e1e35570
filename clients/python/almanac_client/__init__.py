"""A typed client of Almanac: calendar availability over Google, Microsoft 365, CalDAV and feeds."""

from __future__ import annotations

from almanac_client.answers import Answer
from almanac_client.client import Almanac, AsyncAlmanac
from almanac_client.errors import (
    AlmanacError,
    Conflict,
    ConnectionEnded,
    CursorExpired,
    Forbidden,
    Incomplete,
    Invalid,
    KeyRefused,
    NotFound,
    NotVerified,
    OutcomeUnknown,
    RateLimited,
    Refused,
    RequestFailed,
    ScopesMissing,
    Unavailable,
    UnderWay,
    Unreachable,
    Unreadable,
)
from almanac_client.transport import VERSION as __version__
from almanac_client.verification import verify_webhook

__all__ = [
    "Almanac",
    "AlmanacError",
    "Answer",
    "AsyncAlmanac",
    "Conflict",
    "ConnectionEnded",
    "CursorExpired",
    "Forbidden",
    "Incomplete",
    "Invalid",
    "KeyRefused",
    "NotFound",
    "NotVerified",
    "OutcomeUnknown",
    "RateLimited",
    "Refused",
    "RequestFailed",
    "ScopesMissing",
    "Unavailable",
    "UnderWay",
    "Unreachable",
    "Unreadable",
    "__version__",
    "verify_webhook",
]
