"""A small CalDAV server of tests, whose answers a test can replace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from tests.http_server import KeepAliveHandler, serving

HEAD = '<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">'
TAIL = "</d:multistatus>"
CALENDAR = "/home/work/"

Answer = tuple[int, bytes, dict[str, str]]
Act = Callable[[KeepAliveHandler, bytes], Answer]


def response(href: str, properties: str, status: str = "200 OK") -> str:
    """A response with properties of one status."""
    return (
        f"<d:response><d:href>{escape(href)}</d:href><d:propstat><d:prop>{properties}</d:prop>"
        f"<d:status>HTTP/1.1 {status}</d:status></d:propstat></d:response>"
    )


def multistatus(*responses: str) -> Answer:
    """An answer of these responses."""
    return 207, f"{HEAD}{''.join(responses)}{TAIL}".encode(), {"Content-Type": "application/xml"}


def event(uid: str, start: str = "20261130T090000Z", end: str = "20261130T100000Z", *more: str) -> str:
    """The text of a calendar object with one event."""
    content = [f"UID:{uid}", "DTSTAMP:20261101T000000Z", f"DTSTART:{start}", f"DTEND:{end}", *more]
    return "\r\n".join(
        ["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", *content, "END:VEVENT", "END:VCALENDAR", ""]
    )


def stored(text: str, name: str = "one", etag: str = '"1"') -> str:
    """The response of a report for an event."""
    return response(
        f"{CALENDAR}{name}.ics",
        f"<d:getetag>{escape(etag)}</d:getetag><c:calendar-data>{escape(text)}</c:calendar-data>",
    )


KIND = "<d:resourcetype><d:collection/><c:calendar/></d:resourcetype>"
ACCOUNT = (
    "<d:current-user-principal><d:href>/me/</d:href></d:current-user-principal>"
    "<d:resourcetype><d:collection/></d:resourcetype>"
)
HOMES = (
    "<c:calendar-home-set><d:href>/home/</d:href></c:calendar-home-set><c:calendar-user-address-set>"
    "<d:href>/me/</d:href><d:href>mailto:ada@example.org</d:href></c:calendar-user-address-set>"
)


def regular_answers() -> dict[tuple[str, str], Answer | Act]:
    return {
        ("PROPFIND", "/.well-known/caldav"): (301, b"", {"Location": "/dav/"}),
        ("PROPFIND", "/dav/"): multistatus(response("/dav/", ACCOUNT)),
        ("PROPFIND", "/me/"): multistatus(response("/me/", HOMES)),
        ("PROPFIND", "/home/"): multistatus(
            response("/home/", "<d:resourcetype><d:collection/></d:resourcetype>"),
            response(CALENDAR, f"{KIND}<d:displayname>Work</d:displayname>"),
        ),
        ("PROPFIND", CALENDAR): multistatus(response(CALENDAR, f"{KIND}{ACCOUNT.partition('<d:res')[0]}")),
        ("REPORT", CALENDAR): multistatus(stored(event("one"))),
    }


@dataclass(slots=True)
class Script:
    """The answers of the server, by method and path, and the requests that it has received."""

    url: str = ""
    answers: dict[tuple[str, str], Answer | Act] = field(default_factory=regular_answers)
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def say(self, method: str, path: str, answer: Answer | Act) -> None:
        """Replace an answer."""
        self.answers[method, path] = answer

    def count(self, method: str, path: str) -> int:
        """How many requests there were."""
        return sum(1 for each in self.requests if each[:2] == (method, path))


@contextmanager
def scripted() -> Iterator[Script]:
    """A server, and its script."""
    script = Script()

    class DavHandler(KeepAliveHandler):
        def _answer(self) -> None:
            body = self.read_body()
            path = self.path.partition("?")[0]
            script.requests.append((self.command, path, dict(self.headers), body))
            answer = script.answers.get((self.command, path), (404, b"not here", {}))
            self.reply(*(answer if isinstance(answer, tuple) else answer(self, body)))

        do_PROPFIND = do_REPORT = do_PUT = do_DELETE = do_GET = _answer

    with serving(DavHandler) as url:
        script.url = url
        yield script
