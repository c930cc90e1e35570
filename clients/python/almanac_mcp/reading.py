"""Requests that change nothing, and no others."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import requests

# They take a body, and read.
READS_BY_POST = ("/v1/users/scheduling",)


class OnlyReads(requests.Session):
    """A session in which nothing can be changed, whatever the tools above it, or the key, would do."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """The answer to a request that reads.

        :raise PermissionError: for any other, which is not sent
        """
        path = urlsplit(request.url or "").path
        if request.method != "GET" and not (request.method == "POST" and path.endswith(READS_BY_POST)):
            raise PermissionError(f"{request.method} {path} is more than reading")
        return super().send(request, **options)
