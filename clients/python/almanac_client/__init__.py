"""A typed client of Almanac: calendar availability over Google Calendar and Microsoft 365."""

from __future__ import annotations

from almanac_client.answers import Answer
from almanac_client.client import Almanac
from almanac_client.errors import (
    AlmanacError,
    Conflict,
    ConnectionEnded,
    Forbidden,
    Incomplete,
    Invalid,
    KeyRefused,
    NotFound,
    RateLimited,
    Refused,
    RequestFailed,
    ScopesMissing,
    Unavailable,
    UnderWay,
    Unreadable,
)

__all__ = [
    "Almanac",
    "AlmanacError",
    "Answer",
    "Conflict",
    "ConnectionEnded",
    "Forbidden",
    "Incomplete",
    "Invalid",
    "KeyRefused",
    "NotFound",
    "RateLimited",
    "Refused",
    "RequestFailed",
    "ScopesMissing",
    "Unavailable",
    "UnderWay",
    "Unreadable",
]
