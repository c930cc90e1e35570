"""The client, with an attribute for each kind of resource."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import requests

from almanac_client.busy import Busy
from almanac_client.calendars import Calendars
from almanac_client.connections import Connections
from almanac_client.events import Events
from almanac_client.explanations import Explaining
from almanac_client.members import Members
from almanac_client.organizations import Organizations
from almanac_client.scheduling import Scheduling
from almanac_client.transport import TIMEOUT, Transport
from almanac_client.unified_events import UnifiedEvents
from almanac_client.users import Users
from almanac_client.webhooks import Webhooks


class Almanac:
    """A client of one Almanac, with one API key. As a context manager, it closes the session it created.

    ``timeout`` is in seconds, one number or connect and read. Reads, and creations by their idempotency key,
    are retried up to ``retries`` times when there is no answer or a temporary failure.

    >>> with Almanac("https://almanac.example.com", key) as almanac:
    ...     almanac.scheduling.user("ada", start="2026-11-23", end="2026-11-24").data["availableSlots"]
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        timeout: float | tuple[float, float] = TIMEOUT,
        retries: int = 2,
        session: requests.Session | None = None,
    ) -> None:
        self._own_session = requests.Session() if session is None else None
        used = session or self._own_session or requests.Session()
        transport = Transport(base_url, key, timeout=timeout, retries=retries, session=used)
        self.base_url = transport.base_url
        self.users = Users(transport)
        self.organizations = Organizations(transport)
        self.members = Members(transport)
        self.connections = Connections(transport)
        self.calendars = Calendars(transport)
        self.events = Events(transport)
        self.unified_events = UnifiedEvents(transport)
        self.busy = Busy(transport)
        self.scheduling = Scheduling(transport)
        self.explain = Explaining(transport)
        self.webhooks = Webhooks(transport)

    def close(self) -> None:
        """Close the session that this client created; a session passed in stays open."""
        if self._own_session is not None:
            self._own_session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Almanac at {self.base_url}>"
