"""Channels of both providers: subscriptions to changes in a calendar, and asynchronous notifications.

A fault on the operation ``google.push`` or ``microsoft.push`` affects notifications as they are sent: its
latency delays them, its ``body`` ``lost`` or ``doubled`` drops or repeats them.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from threading import Lock, Thread
from urllib.parse import urlsplit

from providers.sandbox.accounts import Account
from providers.sandbox.calendars import Calendar
from providers.sandbox.faults import Faults, Place

# Timeout of one attempt in seconds; below, the pauses before each retry after a temporary failure.
SEND_TIMEOUT = 10.0
RETRIES = (0.2, 0.5, 1.0)
# Statuses of a temporary failure.
PASSING = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Message:
    """A request to be sent."""

    headers: dict[str, str]
    body: bytes = b""
    address: str = ""


def post(address: str, message: Message) -> tuple[int, str, bytes]:
    """Status, content type and body of the answer from an address.

    :raise OSError: without an answer
    """
    parts = urlsplit(address)
    connection = HTTPConnection(parts.hostname or "", parts.port or 80, timeout=SEND_TIMEOUT)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", target, message.body, message.headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Content-Type", ""), answer.read()
    except HTTPException as error:
        raise OSError(f"no answer: {type(error).__name__}") from error
    finally:
        connection.close()


@dataclass(eq=False)
class Channel:
    """A channel to an address. ``tell`` makes the message for a change of an event, by its id and kind.

    ``expires_at`` is in seconds since 1970. A dropped channel sends nothing, and its owner gets no notice.
    """

    id: str
    account: Account
    calendar: Calendar
    address: str
    secret: str
    expires_at: float
    tell: Callable[[Channel, str, str], Message]
    resource: str = ""
    # The client id of the application that opened it with its own permissions.
    application: str = ""
    lifecycle_address: str = ""
    number: int = 0
    sent: int = 0
    dropped: bool = False
    resource_id: str = field(default_factory=lambda: secrets.token_urlsafe(20))

    @property
    def live(self) -> bool:
        """Whether notifications are sent."""
        return not self.dropped and time.time() < self.expires_at


class Channels:
    """The channels of a world, whose ``lock`` the callers hold; it is free while a message is sent."""

    def __init__(self, lock: Lock, faults: Faults, count: Callable[[str], None]) -> None:
        self._lock = lock
        self._faults = faults
        self._count = count
        self._discarded = False
        self.by_id: dict[str, Channel] = {}
        # Maximum lifetime of a new channel in seconds, if shorter than the provider's.
        self.longest: float | None = None
        self._outbox: dict[Channel, deque[Message]] = {}

    def discard(self) -> None:
        """Neither send nor count messages that are still queued: the world was cleared."""
        self._discarded = True

    def ends(self, requested: float) -> float:
        """The expiry of a channel that is requested to expire at ``requested``."""
        return requested if self.longest is None else min(requested, time.time() + self.longest)

    def open(self, channel: Channel) -> None:
        """Start to notify of changes in the channel's calendar."""
        self.by_id[channel.id] = channel
        channel.calendar.watchers[channel.id] = lambda event_id, kind: self._changed(channel, event_id, kind)

    def close(self, channel: Channel) -> None:
        """Stop notifications and forget the channel."""
        self.by_id.pop(channel.id, None)
        channel.calendar.watchers.pop(channel.id, None)

    def _changed(self, channel: Channel, event_id: str, kind: str) -> None:
        if channel.live:
            self.send(channel, channel.tell(channel, event_id, kind))

    def send(self, channel: Channel, message: Message) -> None:
        """Send a message after earlier ones, without blocking the caller."""
        waiting = self._outbox.get(channel)
        if waiting is not None:
            waiting.append(message)
            return
        self._outbox[channel] = deque([message])
        Thread(target=self._empty, args=(channel,), daemon=True).start()

    def _empty(self, channel: Channel) -> None:
        while (message := self._next(channel)) is not None:
            self._deliver(channel, message)

    def _next(self, channel: Channel) -> Message | None:
        with self._lock:
            waiting = self._outbox[channel]
            if waiting and not self._discarded:
                return waiting.popleft()
            del self._outbox[channel]
            return None

    def _deliver(self, channel: Channel, message: Message) -> None:
        account = channel.account
        operation = f"{account.provider}.push"
        # Counts as a part of a batch, so that only faults naming it apply, not an outage of the API.
        names = account.names(channel.calendar.id)
        where = Place(account.provider, operation, account.email, names, part=True)
        with self._lock:
            hit = self._faults.strike(where)
        time.sleep(hit.delay)
        fate = hit.fault.body if hit.fault else None
        for _ in range({"lost": 0, "doubled": 2}.get(fate or "", 1)):
            self._try(channel, message)

    def _try(self, channel: Channel, message: Message) -> None:
        for pause in (*RETRIES, None):
            with self._lock:
                if self._discarded:
                    return
                self._count(f"{channel.account.provider}.push")
            try:
                status, _, _ = post(message.address or channel.address, message)
            except OSError:
                status = 503
            if status not in PASSING:
                channel.sent += 200 <= status < 300
                return
            if pause is not None:
                time.sleep(pause)
