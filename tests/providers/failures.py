"""Failures of a provider that every call reports alike: the fault of the sandbox, and the exception."""

from __future__ import annotations

from typing import Any

from providers.errors import NoAnswer, ProviderError, RateLimited, Unavailable, Unreadable

FAILURES: list[tuple[dict[str, Any], type[ProviderError]]] = [
    ({"status": 500}, Unavailable),
    ({"status": 503, "retry_after": 60}, Unavailable),
    ({"body": "html"}, Unreadable),
    ({"body": "truncated"}, NoAnswer),
    ({"body": "reset"}, NoAnswer),
    ({"status": 429, "retry_after": 60}, RateLimited),
]
