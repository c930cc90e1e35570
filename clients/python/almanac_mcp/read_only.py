"""An HTTP client for read-only requests."""

from __future__ import annotations

import httpx2

# POST requests that only read.
READS_BY_POST = ("/v1/users/scheduling",)


def read_only_client() -> httpx2.Client:
    """A client that sends only reading requests, whatever the tools or the API key would allow.

    It raises ``PermissionError`` for any other request, and does not send it.
    """
    return httpx2.Client(event_hooks={"request": [_check]})


def _check(request: httpx2.Request) -> None:
    path = request.url.path
    if request.method != "GET" and not (request.method == "POST" and path.endswith(READS_BY_POST)):
        raise PermissionError(f"{request.method} {path} is more than reading")
