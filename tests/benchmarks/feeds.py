"""Goal 21: processor time of a calendar feed, as it was read and when it has not changed."""

from __future__ import annotations

import hashlib
import multiprocessing
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing.connection import Connection
from random import Random
from statistics import median

from providers.base import PRIMARY, Account, Token
from providers.ical.busy import busy_periods
from providers.ical.calendar import read
from providers.ics.client import SubscribedCalendars
from providers.ics.feeds import Feeds, FeedSettings
from tests.benchmarks.installation import Installation
from tests.benchmarks.report import Report, progress, seconds
from tests.benchmarks.scale import Scale

EVENTS, SERIES = 5_000, 200
# A year of the feed, which covers more than two.
START, END = 1_767_225_600_000, 1_798_761_600_000
FIRST = datetime(2025, 1, 1, tzinfo=UTC)
RULES = (
    "FREQ=WEEKLY;BYDAY=MO,WE,FR",
    "FREQ=DAILY",
    "FREQ=WEEKLY",
    "FREQ=MONTHLY;BYDAY=2TU",
    "FREQ=MONTHLY;BYMONTHDAY=15",
    "FREQ=YEARLY",
    "FREQ=WEEKLY;INTERVAL=2",
    "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
)
# Goals, in seconds of processor time.
READ_LIMIT, UNCHANGED_LIMIT = 0.25, 0.003
UNCHANGED = 200

ZONE = """BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:DAYLIGHT
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
DTSTART:19700329T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
BEGIN:STANDARD
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
DTSTART:19701025T030000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
END:STANDARD
END:VTIMEZONE
"""
EVENT = """BEGIN:VEVENT
DTSTART;TZID=Europe/Berlin:{start:%Y%m%dT%H%M%S}
DTEND;TZID=Europe/Berlin:{end:%Y%m%dT%H%M%S}
{rule}DTSTAMP:20260101T000000Z
UID:{number}@example.com
ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED;CN=Ada Exa
 mple;X-NUM-GUESTS=0:mailto:ada@example.com
CREATED:20250101T000000Z
DESCRIPTION:A longer text about this event\\, which is folded over several
  lines\\; with more of it that follows here\\nand ends in the third line of
  the folded text.
LAST-MODIFIED:20250101T000000Z
LOCATION:Room {number}
SEQUENCE:0
STATUS:CONFIRMED
SUMMARY:Event {number}
TRANSP:OPAQUE
END:VEVENT
"""


def run(_: Installation, report: Report, scale: Scale) -> None:
    """In this process, beside a server of its own."""
    content = feed()
    report.note(
        f"A feed of {EVENTS:,} events, {SERIES} of them series, {len(content) / 1e6:.1f} MB; busy periods of "
        "a year. Medians of seconds of processor time of the process that reads."
    )
    report.table("A feed", "what", "processor time", "limit")
    progress("feeds: parse and expand")
    whole = _median(3 * scale.rounds, lambda: periods(content))
    report.row("from bytes to busy periods", seconds(whole), seconds(READ_LIMIT))
    report.verdict(21, "a feed to busy periods, seconds", "processor time", whole, READ_LIMIT)
    progress("feeds: unchanged")
    unchanged = _unchanged(content, scale)
    report.row("an unchanged feed (304)", seconds(unchanged), seconds(UNCHANGED_LIMIT))
    report.verdict(21, "an unchanged feed, seconds", "processor time", unchanged, UNCHANGED_LIMIT)


def feed() -> bytes:
    """A feed in the shape in which Google exports one."""
    random = Random(21)
    parts = ["BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//benchmark//EN\nX-WR-TIMEZONE:Europe/Berlin\n", ZONE]
    for number in range(EVENTS):
        start = FIRST + timedelta(minutes=15 * random.randrange(4 * 24 * 800))
        rule = f"RRULE:{RULES[number % len(RULES)]}\n" if number < SERIES else ""
        end = start + timedelta(minutes=random.choice((30, 60, 90)))
        parts.append(EVENT.format(start=start, end=end, rule=rule, number=number))
    return "".join([*parts, "END:VCALENDAR\n"]).replace("\n", "\r\n").encode()


def periods(content: bytes) -> int:
    """Parse and expand; the number of busy periods."""
    deadline = time.monotonic() + 60
    return len(busy_periods(read(content, deadline=deadline), START, END, deadline=deadline))


class _Stored:
    """The stored address of a feed."""

    def __init__(self, url: str) -> None:
        self._url = Token(url)

    def access_token(self, *, deadline: float) -> Token:
        return self._url

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        raise AssertionError("nothing is renewed")


def _unchanged(content: bytes, scale: Scale) -> float:
    """Seconds of a read that finds the feed unchanged; the server runs in another process."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs, content), daemon=True)
    server.start()
    try:
        account = Account(None, frozenset({"read"}), _Stored(ours.recv()))
        adapter = SubscribedCalendars(Feeds(FeedSettings(seconds=0, allow_private=True)))

        def ask() -> None:
            adapter.busy(account, [PRIMARY], START, END, deadline=time.monotonic() + 30)

        ask()
        return _median(scale.rounds, lambda: [ask() for _ in range(UNCHANGED)]) / UNCHANGED
    finally:
        server.terminate()
        server.join()


def _serve(connection: Connection, content: bytes) -> None:
    etag = f'"{hashlib.sha256(content).hexdigest()}"'

    class Feed(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            known = self.headers.get("If-None-Match") == etag
            self.send_response(304 if known else 200)
            self.send_header("ETag", etag)
            if not known:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if not known:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Feed)
    connection.send(f"http://127.0.0.1:{server.server_port}/feed.ics")
    server.serve_forever()


def _median(rounds: int, call: Callable[[], object]) -> float:
    times = []
    for _ in range(rounds):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return median(times)
