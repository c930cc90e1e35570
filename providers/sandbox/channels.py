"""Channels of both providers: who is told of changes in a calendar, and the sending, which nobody waits for.

A fault on the operation ``google.push`` or ``microsoft.push`` strikes notifications as they are sent: its
latency delays them, its ``body`` ``lost`` or ``doubled`` says what becomes of them.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import gevent
from gevent import socket

from providers.sandbox.accounts import Account
from providers.sandbox.calendars import Calendar
from providers.sandbox.faults import Place

if TYPE_CHECKING:
    from providers.sandbox.world import World

# Seconds for one try to send, and before each of the tries after a failure that may pass.
PATIENCE = 10.0
RETRIES = (0.2, 0.5, 1.0)
# Those of an address that may be better in a moment.
PASSING = frozenset({429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Message:
    """A request to be sent."""

    headers: dict[str, str]
    body: bytes = b""
    address: str = ""


class _Connection(HTTPConnection):
    """Gives way to the sandbox's other greenlets while it waits."""

    def connect(self) -> None:
        """Connect by gevent's socket."""
        self.sock = socket.create_connection((self.host, self.port), self.timeout)


def post(address: str, message: Message) -> tuple[int, str, bytes]:
    """Status, content type and body of the answer of an address.

    :raise OSError: when there is none
    """
    parts = urlsplit(address)
    connection = _Connection(parts.hostname or "", parts.port or 80, timeout=PATIENCE)
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
    """A way to an address. ``tell`` makes the message of a change in an event of this id, of this kind.

    ``expires_at`` is in seconds since 1970. A channel that was dropped is silent, and its owner is not told.
    """

    id: str
    account: Account
    calendar: Calendar
    address: str
    secret: str
    expires_at: float
    tell: Callable[[Channel, str, str], Message]
    resource: str = ""
    lifecycle_address: str = ""
    number: int = 0
    sent: int = 0
    dropped: bool = False
    resource_id: str = field(default_factory=lambda: secrets.token_urlsafe(20))

    @property
    def live(self) -> bool:
        """Whether anything is sent."""
        return not self.dropped and time.time() < self.expires_at


class Channels:
    """The channels of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.by_id: dict[str, Channel] = {}
        # The longest life of a new channel in seconds, if it is to be shorter than the provider's.
        self.longest: float | None = None
        self._outbox: dict[Channel, deque[Message]] = {}

    @property
    def _forgotten(self) -> bool:
        # What is still to be sent then is of no world any more, and is neither sent nor counted.
        return self._world.channels is not self

    def ends(self, asked: float) -> float:
        """When a channel ends that is to end at a moment."""
        return asked if self.longest is None else min(asked, time.time() + self.longest)

    def open(self, channel: Channel) -> None:
        """From now on what changes in the calendar is told."""
        self.by_id[channel.id] = channel
        channel.calendar.watchers[channel.id] = lambda event_id, kind: self._changed(channel, event_id, kind)

    def close(self, channel: Channel) -> None:
        """Tell nothing more, and forget the channel."""
        self.by_id.pop(channel.id, None)
        channel.calendar.watchers.pop(channel.id, None)

    def _changed(self, channel: Channel, event_id: str, kind: str) -> None:
        if channel.live:
            self.send(channel, channel.tell(channel, event_id, kind))

    def send(self, channel: Channel, message: Message) -> None:
        """Send a message after those before it, while the caller goes on."""
        waiting = self._outbox.get(channel)
        if waiting is not None:
            waiting.append(message)
            return
        self._outbox[channel] = deque([message])
        gevent.spawn(self._empty, channel)

    def _empty(self, channel: Channel) -> None:
        waiting = self._outbox[channel]
        while waiting and not self._forgotten:
            self._deliver(channel, waiting.popleft())
        del self._outbox[channel]

    def _deliver(self, channel: Channel, message: Message) -> None:
        account = channel.account
        operation = f"{account.provider}.push"
        # As a part of a batch: struck by what names it, not by the outage of the API.
        names = account.names(channel.calendar.id)
        where = Place(account.provider, operation, account.email, names, part=True)
        hit = self._world.faults.strike(where)
        gevent.sleep(hit.delay)
        fate = hit.fault.body if hit.fault else None
        for _ in range({"lost": 0, "doubled": 2}.get(fate or "", 1)):
            self._try(channel, message)

    def _try(self, channel: Channel, message: Message) -> None:
        for pause in (*RETRIES, None):
            if self._forgotten:
                return
            self._world.count(f"{channel.account.provider}.push")
            try:
                status, _, _ = post(message.address or channel.address, message)
            except OSError:
                status = 503
            if status not in PASSING:
                channel.sent += 200 <= status < 300
                return
            if pause is not None:
                gevent.sleep(pause)
