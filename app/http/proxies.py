"""Detects whether a request came directly from this machine or through a proxy."""

from __future__ import annotations

from flask import request

from app.server.flower import is_loopback

# Proxies add one of these to the requests that they forward.
_HEADERS = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")


def forwarded() -> bool:
    """Whether this request carries a header that proxies add."""
    return any(name in request.headers for name in _HEADERS)


def from_this_machine() -> bool:
    """Whether a process on this machine sent this request directly.

    A proxy on this machine also connects over loopback, but it may forward requests from anywhere.
    """
    return is_loopback(request.remote_addr or "") and not forwarded()
