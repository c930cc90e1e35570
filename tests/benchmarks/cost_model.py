"""The cost of requests and the size of installations: the tables of docs/operate/scale.md.

The constants are fitted to docs/engineering/benchmarks.md. `python -m tests.benchmarks.cost_model` writes the
tables, and tests/docs/test_scale.py compares the model with the figures of the benchmarks.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.packaging.files import ROOT

DOCUMENT = ROOT / "docs/operate/scale.md"

# By how much a prediction may differ from the figure, as a share of it.
TOLERANCE = 0.25

# Seconds of processor time. One cached user, in the web process.
WARM_REQUEST = 0.40e-3
# Its part besides the event loop (15 %) and Redis (14 %), which a server that does nothing has too.
WARM_WORK = WARM_REQUEST * (1 - 0.15 - 0.14)
# A cached organization over a week: the request, and each member.
WARM_ORGANIZATION, WARM_MEMBER = 3.0e-3, 0.042e-3
# A request that reads providers, and each read, over web and workers.
COLD_REQUEST, COLD_READ = 8e-3, 2.25e-3
# The part of a cold request that the client waits for besides the provider, in seconds.
COLD_DELAY = 18e-3

# Redis: commands and bytes into it, for a request with a cached user and for each read.
WARM_COMMANDS, WARM_BYTES = 1.01, 147.0
COLD_COMMANDS, COLD_BYTES = 16.5, 4_700.0
# SQL statements of a read; a cached request has none.
COLD_STATEMENTS = 0.05

# MiB of a process, including the memory that it shares with its neighbour.
WEB_MEMORY, WORKER_MEMORY = 125.0, 112.0
READS_IN_FLIGHT = 64

# Google's quota of a project for a minute; Microsoft's of an application for ten seconds.
GOOGLE_MINUTE, MICROSOFT_10_SECONDS = 10_000, 130_000
# Calls in a day that Google does not charge for.
GOOGLE_FREE_DAY = 1_000_000

# Assumed for the sizes: seconds of a provider's answer, the share of users at Google, the share of
# processors that is used on average, and changes of a calendar in a day.
LATENCY, AT_GOOGLE, UTILIZATION, CHANGES = 0.3, 0.5, 0.5, 10
# Seconds for which busy times are cached: ALMANAC_BUSY_TTL, and ALMANAC_MAX_AGE with push. They are then
# compared with a new read after ``AUDIT`` seconds, if a request has used them after the first TTL.
TTL, MAX_AGE, AUDIT = 60, 600, 480

HOUR = 3600
DAY = 24 * HOUR


def warm_rate(with_redis: float, processors: int = 2) -> float:
    """Requests for one cached user in a second.

    ``with_redis`` is the rate of a server that makes one round trip to Redis and nothing else. The processors
    do all of it: web, Redis and the load.
    """
    return processors / (processors / with_redis + WARM_WORK)


def warm_seconds(members: int) -> float:
    """A request for a cached organization over a week."""
    return WARM_ORGANIZATION + members * WARM_MEMBER


def cold_processor_seconds(reads: int) -> float:
    """Processor time of a request with this number of reads, over web and workers."""
    return COLD_REQUEST + reads * COLD_READ


def cold_seconds(reads: int, latency: float, in_flight: int, processors: int = 2) -> float:
    """A request with this number of reads: it waits for each wave, then for the last wave's work."""
    waves = math.ceil(reads / in_flight)
    return waves * latency + COLD_DELAY + min(reads, in_flight) * COLD_READ / processors


def hit_share(rate: float, ttl: float) -> float:
    """The share of cached answers if requests for one user come at random, ``rate`` in a second."""
    return rate * ttl / (1 + rate * ttl)


def simulated_reads(
    *, rate: float, users: int, ttl: float, seconds: float, days: int, first_days: int, bucket: int = 7
) -> int:
    """Provider reads of ``rate`` requests a second, for users and ranges that are drawn at random.

    A request needs every bucket that its range of ``days`` touches; one read fills the expired ones.
    """
    chance = random.Random(f"reads {users} {rate}")
    read_at: dict[tuple[int, int], float] = {}
    reads = 0
    # As in the benchmark: a few seconds of requests fill the cache first.
    for number in range(round(-2 * rate), round(seconds * rate)):
        now = number / rate
        user, first = chance.randrange(users), chance.randrange(first_days)
        needed = range(first // bucket, (first + days) // bucket + 1)
        expired = [each for each in needed if now - read_at.get((user, each), -math.inf) >= ttl]
        if expired:
            reads += now >= 0
            read_at.update({(user, each): now for each in expired})
    return reads


@dataclass(frozen=True)
class Size:
    """An installation that answers ``rate`` requests a second, each for the slots of one of its users."""

    rate: float
    users: int
    push: bool

    @property
    def hits(self) -> float:
        """The share of answers from the cache."""
        return hit_share(self._user_rate, self._kept)

    @property
    def reads(self) -> float:
        """Provider calls in a second: of requests, and of audits of what they have used."""
        return self.rate * (1 - self.hits) + self.audits

    @property
    def audits(self) -> float:
        """Provider calls of audits in a second."""
        if not self.push:
            return 0.0
        used = 1 - math.exp(-self._user_rate * (AUDIT - TTL))
        return self.users * self.hits * used / AUDIT

    @property
    def _user_rate(self) -> float:
        return self.rate / self.users

    @property
    def _kept(self) -> float:
        """Seconds for which a read is cached. A change of a calendar ends that with push."""
        if not self.push:
            return TTL
        audited = AUDIT * math.expm1(self._user_rate * (AUDIT - TTL)) + MAX_AGE
        return 1 / (1 / audited + CHANGES / DAY)

    @property
    def processors(self) -> float:
        """For web and workers, at the utilization that is assumed."""
        cached = self.rate * WARM_REQUEST
        return (cached + self.reads * (COLD_REQUEST + COLD_READ)) / UTILIZATION

    @property
    def web(self) -> int:
        """Web processes: two at least, and one for each processor."""
        return max(2, math.ceil(self.processors))

    @property
    def workers(self) -> int:
        """Worker processes: for the reads in flight, and for their processor time; two at least."""
        in_flight = self.reads * LATENCY / UTILIZATION
        busy = self.reads * (COLD_REQUEST + COLD_READ) / UTILIZATION
        return max(2, math.ceil(in_flight / READS_IN_FLIGHT), math.ceil(busy))

    @property
    def memory(self) -> float:
        """GiB of web and workers."""
        return (self.web * WEB_MEMORY + self.workers * WORKER_MEMORY) / 1024

    @property
    def google_minute(self) -> float:
        """Calls to Google in a minute."""
        return self.reads * 60 * AT_GOOGLE

    @property
    def google_day(self) -> float:
        """Calls to Google in a day, if the rate holds for eight hours."""
        return self.reads * 8 * HOUR * AT_GOOGLE

    @property
    def microsoft_10_seconds(self) -> float:
        """Calls to Microsoft in ten seconds."""
        return self.reads * 10 * (1 - AT_GOOGLE)


RATES = (10, 100, 1_000)
USERS = (1_000, 100_000)


def sizes() -> Iterator[Size]:
    """The sizes of the document."""
    for users in USERS:
        for rate in RATES:
            for push in (False, True):
                yield Size(rate, users, push)


def size_table() -> str:
    """The processes and provider calls of each size."""
    head = (
        *("requests a second", "users", "push", "from the cache", "provider calls a second"),
        *("processors", "web", "workers", "GiB", "Google's minute", "Google's day", "Microsoft's 10 s"),
    )
    rows = [_row(head), "|" + "---|" * len(head)]
    for each in sizes():
        cells = (f"{each.rate:,}", f"{each.users:,}", "on" if each.push else "off", f"{each.hits:.1%}")
        cells += (f"{each.reads:,.1f}", f"{each.processors:,.1f}", f"{each.web}", f"{each.workers}")
        cells += (f"{each.memory:.1f}", f"{each.google_minute / GOOGLE_MINUTE:.1%}")
        cells += (f"{each.google_day / GOOGLE_FREE_DAY:.1%}",)
        rows.append(_row((*cells, f"{each.microsoft_10_seconds / MICROSOFT_10_SECONDS:.2%}")))
    return "\n".join(rows)


def store_table() -> str:
    """The load of each size on Redis, the database and the broker, in a second."""
    head = (
        "requests a second",
        "users",
        "push",
        "Redis commands",
        "kB into Redis",
        "SQL statements",
        "tasks",
    )
    rows = [_row(head), "|" + "---|" * len(head)]
    for each in sizes():
        commands = each.rate * WARM_COMMANDS + each.reads * COLD_COMMANDS
        kilobytes = (each.rate * WARM_BYTES + each.reads * COLD_BYTES) / 1000
        cells = (f"{each.rate:,}", f"{each.users:,}", "on" if each.push else "off", f"{commands:,.0f}")
        cells += (f"{kilobytes:,.0f}", f"{each.reads * COLD_STATEMENTS:,.1f}", f"{each.reads:,.0f}")
        rows.append(_row(cells))
    return "\n".join(rows)


def cost_table() -> str:
    """The costs of single requests."""
    head = (
        "request",
        "processor time",
        "Redis commands",
        "bytes into Redis",
        "provider calls",
        "SQL statements",
    )
    rows = [_row(head), "|" + "---|" * len(head)]
    rows.append(_row(("slots of one user, cached", _ms(WARM_REQUEST), "1", f"{WARM_BYTES:.0f}", "0", "0")))
    for members in (100, 1_000):
        what = f"slots of an organization of {members:,}, cached"
        rows.append(_row((what, _ms(warm_seconds(members)), "1 or more", "not measured", "0", "0")))
    for reads in (1, 100, 1_000):
        what = "slots of one user, read" if reads == 1 else f"slots of an organization of {reads:,}, read"
        cells = (what, _ms(cold_processor_seconds(reads)), f"{reads * COLD_COMMANDS:,.0f}")
        cells += (f"{reads * COLD_BYTES:,.0f}", f"{reads:,}", f"{reads * COLD_STATEMENTS:,.2g}")
        rows.append(_row(cells))
    return "\n".join(rows)


TABLES: dict[str, Callable[[], str]] = {"costs": cost_table, "sizes": size_table, "stores": store_table}


def written(document: str) -> str:
    """The document with the tables of this model between their markers."""
    for name, table in TABLES.items():
        start, end = f"<!-- {name}: computed -->\n", f"<!-- {name}: end -->"
        block = re.compile(re.escape(start) + ".*?" + re.escape(end), re.DOTALL)
        document, count = block.subn(f"{start}\n{table()}\n\n{end}", document)
        assert count == 1, f"the document has {count} tables named {name}"
    return document


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms" if seconds < 0.1 else f"{seconds * 1000:,.0f} ms"


def main() -> None:
    """Write the tables into the document."""
    DOCUMENT.write_text(written(DOCUMENT.read_text()))


if __name__ == "__main__":
    main()
