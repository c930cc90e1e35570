"""Performs operations over HTTP: one transport blocks, the other is for ``async`` code."""

from __future__ import annotations

import platform
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeVar

import anyio
import httpx2
import msgspec

from almanac_client.errors import Unavailable, Unreachable
from almanac_client.messages import Request
from almanac_client.operations import Listing, Operation

T = TypeVar("T")

VERSION = version("almanac-client")
USER_AGENT = f"almanac-python/{VERSION} (Python {platform.python_version()}; httpx2 {httpx2.__version__})"
# Seconds to connect, and seconds for each read: Almanac itself waits up to ten for providers.
TIMEOUT = (3.05, 30.0)

# Seconds before the first retry, unless the answer has a ``Retry-After``.
FIRST_PAUSE = 0.25


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is sent again, and the longest ``Retry-After`` in seconds that is waited for."""

    most: int = 2
    longest_pause: float = 10.0

    def pause(self, request: Request, error: Unavailable, attempt: int) -> float | None:
        """Seconds until the next attempt; None when there is none. ``attempt`` counts from 0.

        A request that is not repeatable is sent again only when it has not reached Almanac.
        """
        if attempt >= self.most or not (request.repeatable or isinstance(error, Unreachable)):
            return None
        if error.retry_after is not None:
            return error.retry_after if error.retry_after <= self.longest_pause else None
        # Random, so that clients that failed together do not retry together.
        return FIRST_PAUSE * 2.0**attempt * random.uniform(1.0, 2.0)


class Endpoint:
    """An Almanac, the key to it, and how long to wait for it."""

    def __init__(
        self, base_url: str, key: str, timeout: float | tuple[float, float], retries: Retries
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError("base_url begins with https:// or http://")
        self.base_url = base_url.rstrip("/")
        self._key = key
        connect, read = timeout if isinstance(timeout, tuple) else (timeout, timeout)
        self._timeout = httpx2.Timeout(read, connect=connect)
        self._retries = retries

    def build(self, client: httpx2.Client | httpx2.AsyncClient, request: Request) -> httpx2.Request:
        """The HTTP request, with the key."""
        headers = {**request.headers, "Authorization": f"Bearer {self._key}", "User-Agent": USER_AGENT}
        content = None
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(request.body)
        return client.build_request(
            request.method,
            f"{self.base_url}/v1{request.path}",
            params=request.query or None,
            content=content,
            headers=headers,
            timeout=self._timeout,
        )


class Transport(Endpoint):
    """Performs an operation before it returns."""

    def __init__(
        self,
        base_url: str,
        key: str,
        timeout: float | tuple[float, float],
        retries: Retries,
        http_client: httpx2.Client,
    ) -> None:
        super().__init__(base_url, key, timeout, retries)
        self._http = http_client

    def run(self, operation: Operation[T]) -> T:
        """The result; the request is sent again as long as that is safe and may help."""
        request, attempt = operation.request, 0
        while True:
            try:
                with _no_answer(request):
                    # A key must be sent to one host only, and Almanac never redirects.
                    response = self._http.send(
                        self.build(self._http, request), auth=None, follow_redirects=False
                    )
                return operation.result(response.status_code, response.headers, response.content)
            except Unavailable as error:
                pause = self._retries.pause(request, error, attempt)
                if pause is None:
                    raise
            time.sleep(pause)
            attempt += 1

    def iterate(self, listing: Listing[T]) -> Iterator[T]:
        """Every item of a list; each page is requested when it is reached."""
        cursor = None
        while True:
            page = self.run(listing.page(cursor))
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return


class AsyncTransport(Endpoint):
    """The same as coroutines, for asyncio and trio."""

    def __init__(
        self,
        base_url: str,
        key: str,
        timeout: float | tuple[float, float],
        retries: Retries,
        http_client: httpx2.AsyncClient,
    ) -> None:
        super().__init__(base_url, key, timeout, retries)
        self._http = http_client

    async def run(self, operation: Operation[T]) -> T:
        """The result; the request is sent again as long as that is safe and may help."""
        request, attempt = operation.request, 0
        while True:
            try:
                with _no_answer(request):
                    # A key must be sent to one host only, and Almanac never redirects.
                    response = await self._http.send(
                        self.build(self._http, request), auth=None, follow_redirects=False
                    )
                return operation.result(response.status_code, response.headers, response.content)
            except Unavailable as error:
                pause = self._retries.pause(request, error, attempt)
                if pause is None:
                    raise
            await anyio.sleep(pause)
            attempt += 1

    async def iterate(self, listing: Listing[T]) -> AsyncIterator[T]:
        """Every item of a list; each page is requested when it is reached."""
        cursor = None
        while True:
            page = await self.run(listing.page(cursor))
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if cursor is None:
                return


@contextmanager
def _no_answer(request: Request) -> Iterator[None]:
    """Raise the client's own errors for a request without an answer."""
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
        raise Unreachable(f"{request.name} was not sent: {type(error).__name__}") from error
    except (httpx2.TransportError, httpx2.DecodingError) as error:
        raise Unavailable(f"{request.name} got no answer: {type(error).__name__}") from error
