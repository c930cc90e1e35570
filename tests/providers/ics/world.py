"""Feeds for the generic suite of providers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

from providers.base import Account
from providers.ical.bounds import Limits
from providers.ics.client import SubscribedCalendars
from providers.ics.feeds import Feeds, FeedSettings
from tests.providers.ical.texts import calendar, event
from tests.providers.ics.server import FeedServer, account

if TYPE_CHECKING:
    from tests.providers.worlds import Entry, Fault

ANSWERS = {
    "DOWN": (503, b"", {}),
    "UNREADABLE": (200, b"<html><body>Sign in</body></html>", {"Content-Type": "text/html"}),
    "THROTTLED": (429, b"", {"Retry-After": "60"}),
    "REJECTED": (401, b"", {"WWW-Authenticate": "Basic"}),
}


class FeedWorld:
    """Subscribed calendars at a server of feeds."""

    name = "ics"
    many_calendars = 1
    many_events = 1440

    def __init__(self, server: FeedServer) -> None:
        self.server = server
        self._numbers = count()
        self.adapter = SubscribedCalendars(Feeds(FeedSettings(0, Limits(), allow_private=True)))

    def account(self, events: Sequence[Entry] = (), *, calendars: int = 1, time_zone: str = "UTC") -> Account:
        parts = [event(_lines(each), str(number)) for number, each in enumerate(events)]
        content = calendar(*parts, head=f"X-WR-TIMEZONE:{time_zone}")
        return account(self.server.put(content, f"/{next(self._numbers)}.ics"))

    def fault(self, fault: Fault, *, times: int | None = None) -> None:
        if fault.name == "NO_ANSWER":
            self.server.silent_requests = -1 if times is None else times
        elif times is None:
            self.server.always = ANSWERS[fault.name]
        else:
            self.server.replies += [ANSWERS[fault.name]] * times

    def mend(self) -> None:
        self.server.always = None
        self.server.replies.clear()
        self.server.silent_requests = 0

    def calls(self) -> int:
        return len(self.server.asked)


def _lines(entry: Entry) -> str:
    free = "\nTRANSP:TRANSPARENT" if entry.free else ""
    if isinstance(entry.start, datetime) and isinstance(entry.end, datetime):
        start, end = (each.astimezone(UTC) for each in (entry.start, entry.end))
        return f"DTSTART:{start:%Y%m%dT%H%M%SZ}\nDTEND:{end:%Y%m%dT%H%M%SZ}{free}"
    return f"DTSTART;VALUE=DATE:{entry.start:%Y%m%d}\nDTEND;VALUE=DATE:{entry.end:%Y%m%d}{free}"
