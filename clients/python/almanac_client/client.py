"""The clients, with an attribute for each kind of resource."""

from __future__ import annotations

import os
import ssl
from functools import cache
from types import TracebackType
from typing import Generic, Self

import httpx2

from almanac_client.busy import Busy
from almanac_client.calendars import Calendars
from almanac_client.connections import Connections
from almanac_client.events import Events
from almanac_client.explanations import Explaining
from almanac_client.grants import Grants
from almanac_client.holds import Holds
from almanac_client.keys import Keys
from almanac_client.members import Members
from almanac_client.organizations import Organizations
from almanac_client.resources import TransportT
from almanac_client.scheduling import Scheduling
from almanac_client.transport import TIMEOUT, AsyncTransport, Retries, Transport
from almanac_client.unified_events import UnifiedEvents
from almanac_client.users import Users
from almanac_client.webhooks import Webhooks

URL_VARIABLE = "ALMANAC_URL"
KEY_VARIABLE = "ALMANAC_API_KEY"


class Resources(Generic[TransportT]):
    """The resources of a client, by name."""

    def __init__(self, transport: TransportT) -> None:
        self.base_url = transport.base_url
        self.users = Users(transport)
        self.organizations = Organizations(transport)
        self.members = Members(transport)
        self.grants = Grants(transport)
        self.connections = Connections(transport)
        self.calendars = Calendars(transport)
        self.events = Events(transport)
        self.unified_events = UnifiedEvents(transport)
        self.busy = Busy(transport)
        self.scheduling = Scheduling(transport)
        self.explain = Explaining(transport)
        self.holds = Holds(transport)
        self.webhooks = Webhooks(transport)
        self.keys = Keys(transport)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.base_url}>"


class Almanac(Resources[Transport]):
    """A client of one Almanac, with one API key; threads may share it.

    ``base_url`` and ``key`` default to the variables ``ALMANAC_URL`` and ``ALMANAC_API_KEY``. ``timeout`` is
    in seconds, one number or connect and read. A request that is safe to repeat is sent up to ``retries``
    times more, unless the answer asks to wait longer than ``longest_pause`` seconds. An ``http_client`` that
    is passed in, for example with a proxy, stays open.

    >>> with Almanac("https://almanac.example.com", key) as almanac:
    ...     almanac.scheduling.user("ada", start="2026-11-23", end="2026-11-24").data.available_slots
    """

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        *,
        timeout: float | tuple[float, float] = TIMEOUT,
        retries: int = 2,
        longest_pause: float = 10.0,
        http_client: httpx2.Client | None = None,
    ) -> None:
        url, key = _address(base_url, key)
        self._http = http_client or httpx2.Client(verify=_tls())
        self._closes = http_client is None
        super().__init__(Transport(url, key, timeout, Retries(retries, longest_pause), self._http))

    def close(self) -> None:
        """Close the connections, unless an ``http_client`` was passed in."""
        if self._closes:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncAlmanac(Resources[AsyncTransport]):
    """The same client for asyncio and trio: methods are coroutines, lists asynchronous iterators.

    >>> async with AsyncAlmanac("https://almanac.example.com", key) as almanac:
    ...     answer = await almanac.scheduling.user("ada", start="2026-11-23", end="2026-11-24")
    """

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        *,
        timeout: float | tuple[float, float] = TIMEOUT,
        retries: int = 2,
        longest_pause: float = 10.0,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        url, key = _address(base_url, key)
        self._http = http_client or httpx2.AsyncClient(verify=_tls())
        self._closes = http_client is None
        super().__init__(AsyncTransport(url, key, timeout, Retries(retries, longest_pause), self._http))

    async def aclose(self) -> None:
        """Close the connections, unless an ``http_client`` was passed in."""
        if self._closes:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _address(base_url: str | None, key: str | None) -> tuple[str, str]:
    """The URL and the key, from the environment where they are not given."""
    found = base_url or os.environ.get(URL_VARIABLE), key or os.environ.get(KEY_VARIABLE)
    if not found[0]:
        raise ValueError(f"base_url is missing: pass it, or set {URL_VARIABLE}")
    if not found[1]:
        raise ValueError(f"key is missing: pass it, or set {KEY_VARIABLE}")
    return found[0], found[1]


@cache
def _tls() -> ssl.SSLContext:
    """The trusted certificates, loaded once: that takes longer than most requests."""
    return httpx2.create_ssl_context()
