"""A real CalDAV server behind a proxy that breaks its answers, for the suite of every provider."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import requests
from icalendar import Calendar, Event, Timezone, vRecur

from providers.base import Account
from providers.caldav.client import CalDav
from tests.http_server import KeepAliveHandler, serving
from tests.providers.caldav.conftest import account_of, opened
from tests.providers.caldav.servers import PASSWORD, USER, CalDavServer
from tests.providers.worlds import Entry, Fault

_ANSWERS = {
    Fault.DOWN: (503, b"", {}),
    Fault.UNREADABLE: (200, b"<html><body>Sign in</body></html>", {"Content-Type": "text/html"}),
    Fault.THROTTLED: (429, b"", {"Retry-After": "60"}),
    Fault.REJECTED: (401, b"", {"WWW-Authenticate": 'Basic realm="x"'}),
}


@dataclass(slots=True)
class Proxy:
    """Passes calls on to a server; ``fault`` is what it does to the next ``left`` ones, None for all."""

    target: str
    url: str = ""
    fault: Fault | None = None
    left: int | None = None
    # Only calls of this method fail, after the first ``skip`` ones.
    method: str = ""
    skip: int = 0
    calls: int = 0
    session: requests.Session = field(default_factory=requests.Session)

    def next_fault(self, method: str) -> Fault | None:
        """The fault of the next call."""
        self.calls += 1
        if self.method and method != self.method:
            return None
        if self.skip > 0:
            self.skip -= 1
            return None
        if self.left is None:
            return self.fault
        self.left -= 1
        return self.fault if self.left >= 0 else None


@contextmanager
def proxied(server: CalDavServer) -> Iterator[Proxy]:
    """A proxy in front of a server."""
    proxy = Proxy(server.url.rstrip("/"))
    proxy.session.trust_env = False

    class Forwarding(KeepAliveHandler):
        def _forward(self) -> None:
            body = self.read_body()
            fault = proxy.next_fault(self.command)
            if fault in _ANSWERS:
                self.reply(*_ANSWERS[fault])
                return
            headers = {name: value for name, value in self.headers.items() if name != "Accept-Encoding"}
            answer = proxy.session.request(
                self.command, proxy.target + self.path, data=body, headers=headers, allow_redirects=False
            )
            if fault is Fault.NO_ANSWER:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            kept = {name: answer.headers[name] for name in ("Location", "ETag") if name in answer.headers}
            self.reply(answer.status_code, answer.content, kept)

        do_PROPFIND = do_REPORT = do_PUT = do_DELETE = do_GET = _forward

    with serving(Forwarding) as url:
        proxy.url = url
        yield proxy
    proxy.session.close()


class CalDavWorld:
    """An account at a real server, with new calendars for each account of a test."""

    many_calendars = 30
    many_events = 120

    def __init__(self, server: CalDavServer, proxy: Proxy) -> None:
        self.name = "caldav"
        self.adapter = CalDav(allow_private=True)
        self._server = server
        self._proxy = proxy
        self._numbers = itertools.count()
        # The address of the main calendar of the last account, at the server itself.
        self.main_calendar = ""

    def account(self, events: Sequence[Entry] = (), *, calendars: int = 1, time_zone: str = "UTC") -> Account:
        home = f"{self._server.url}{USER}/" + ("calendars/" if self._server.name == "xandikos" else "")
        for each in self._server.client().principal().calendars():
            self._call("DELETE", str(each.url))
        paths = [f"{home}c{number:03}/" for number in range(calendars)]
        self.main_calendar = paths[0]
        for path in paths:
            self._call("MKCALENDAR", path, _new_calendar(time_zone))
        for each in events:
            self._call("PUT", f"{paths[0]}{next(self._numbers)}.ics", _object(each, next(self._numbers)))
        return account_of(opened(self._proxy.url))

    def fault(self, fault: Fault, *, times: int | None = None, method: str = "", skip: int = 0) -> None:
        self._proxy.fault, self._proxy.left = fault, times
        self._proxy.method, self._proxy.skip = method, skip

    def mend(self) -> None:
        self._proxy.fault, self._proxy.left = None, None
        self._proxy.method, self._proxy.skip = "", 0

    def calls(self) -> int:
        return self._proxy.calls

    def _call(self, method: str, url: str, body: bytes | None = None) -> None:
        kind = "text/calendar; charset=utf-8" if method == "PUT" else "application/xml; charset=utf-8"
        answer = self._proxy.session.request(
            method, url, data=body, auth=(USER, PASSWORD), headers={"Content-Type": kind}
        )
        assert answer.ok, (method, url, answer.status_code, answer.text)


def _new_calendar(time_zone: str) -> bytes:
    first, last = date(2026, 1, 1), date(2030, 1, 1)
    zone = Timezone.from_tzid(time_zone, first_date=first, last_date=last).to_ical().decode()
    return (
        '<?xml version="1.0" encoding="utf-8"?><c:mkcalendar xmlns:d="DAV:" '
        'xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop><d:displayname>Calendar</d:displayname>'
        f"<c:calendar-timezone>BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\n{zone}END:VCALENDAR"
        "</c:calendar-timezone></d:prop></d:set></c:mkcalendar>"
    ).encode()


def _object(entry: Entry, number: int) -> bytes:
    event = Event()
    event.add("uid", f"event-{number}")
    event.add("dtstamp", datetime(2026, 11, 1, tzinfo=UTC))
    event.add("dtstart", entry.start)
    event.add("dtend", entry.end)
    if entry.free:
        event.add("transp", "TRANSPARENT")
    if entry.rule:
        event.add("rrule", vRecur.from_ical(entry.rule))
    if entry.invited:
        event.add("organizer", "mailto:boss@example.com")
        event.add(
            "attendee", "mailto:ada@example.com", {"PARTSTAT": "NEEDS-ACTION", "RSVP": "TRUE", "CN": "Ada"}
        )
    whole = Calendar()
    whole.add("version", "2.0")
    whole.add("prodid", "-//test//EN")
    whole.add_component(event)
    whole.add_missing_timezones(first_date=date(2026, 1, 1), last_date=date(2030, 1, 1))
    content: bytes = whole.to_ical()
    return content
