"""A session for read-only requests."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import requests

# POST requests that only read.
READS_BY_POST = ("/v1/users/scheduling",)


class OnlyReads(requests.Session):
    """A session that sends only reading requests, whatever the tools or the API key would allow."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """The answer to a reading request.

        :raise PermissionError: for any other request, which is not sent
        """
        path = urlsplit(request.url or "").path
        if request.method != "GET" and not (request.method == "POST" and path.endswith(READS_BY_POST)):
            raise PermissionError(f"{request.method} {path} is more than reading")
        return super().send(request, **options)
