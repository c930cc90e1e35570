"""HTTP clients that send only the requests of the tools, whatever the API key would allow."""

from __future__ import annotations

import re

import httpx2

# POST requests that only read.
READS_BY_POST = ("/v1/users/scheduling",)
_HOLDS = re.compile(r"(POST .*/v1/holds|DELETE .*/v1/holds/[^/]+)")
_EVENTS = re.compile(r"POST .*/v1/users/[^/]+/calendar/events/[^/]+/[^/]+")


def read_only_client() -> httpx2.Client:
    """A client for requests that read.

    It raises ``PermissionError`` for any other request, and does not send it.
    """
    return httpx2.Client(event_hooks={"request": [_check_reading]})


def booking_client() -> httpx2.Client:
    """The same, also for holds, and for events that are created by a hold."""
    return httpx2.Client(event_hooks={"request": [_check_booking]})


def _check_reading(request: httpx2.Request) -> None:
    if not _reads(request):
        raise PermissionError(f"{request.method} {request.url.path} is more than reading")


def _check_booking(request: httpx2.Request) -> None:
    if not (_reads(request) or _books(request)):
        raise PermissionError(f"{request.method} {request.url.path} is more than reading and booking")


def _reads(request: httpx2.Request) -> bool:
    return request.method == "GET" or (request.method == "POST" and request.url.path.endswith(READS_BY_POST))


def _books(request: httpx2.Request) -> bool:
    called = f"{request.method} {request.url.path}"
    if _EVENTS.fullmatch(called):
        return bool(request.url.params.get("hold"))
    return _HOLDS.fullmatch(called) is not None
