"""Writes the result of a run to docs/engineering/soak.md, with a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.report import Plot, seconds
from tests.soak.client import SLACK
from tests.soak.faults import Faults
from tests.soak.installation import TTL
from tests.soak.measures import MIB, Measures, Sample
from tests.soak.records import Records
from tests.soak.verdict import BUDGET, FILLED, FLAT, LEAST, LEVEL, MORE, Process, failings, processes, slope

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs/engineering/soak.md"
PICTURE = ROOT / "docs/engineering/benchmarks/soak.svg"
SHOWN = 5

FOUND = """\
## What it has found

- **Workers grew by about 1 MiB a minute.** Nothing leaked: after five minutes a full collection left as
  many objects as there had been, garbage included, after one. Memory that threads had freed stayed in
  sixteen heaps of the C library and in a cache of each thread, and older garbage waited long for its
  collection. Threads now [share two heaps and keep no caches](decisions/requests.md#limits), and older
  garbage is collected sooner.
- **One of the two web processes answered everything.** Both were woken for each new connection, the faster
  one took it, and clients keep theirs. Connections are now spread over the processes by the
  [kernel](decisions/operation.md#running).
- **Redis had 900 keys more each minute.** Every read leaves one, so that other requests can
  follow it (single flight). It expired after ten minutes; now after five, which no read outlasts. So the
  number of keys follows the reads of the last five minutes, and is level from then on.
- **The meetings of this test began at any minute**, which real meetings do not, and a worker's cache of
  timestamps (16 384 at most) kept growing for half an hour. They begin at every fifth minute now.
- **Five minutes show nothing level.** Modules, caches and open connections of a process grow for a
  quarter of an hour: workers grew by 2 MiB in the first two minutes, 1 in the next two, 0.4 in the fifth
  two, and 0.2 to 0.8 in all of the last ten of thirty. `make soak MINUTES=30` shows it.
"""


@dataclass
class Run:
    """Everything that the document reports of one run."""

    about: list[str]
    minutes: float
    took: float
    people: int
    clients: int
    records: Records
    measures: Measures
    faults: Faults
    deliveries: int
    # Seconds after which everything is warm.
    warm: float

    @property
    def processes(self) -> list[Process]:
        return processes(self.measures.samples, self.warm, self.took)

    def failings(self) -> list[str]:
        return list(failings(self.records, self.faults.posted, self.processes))


def lines(run: Run) -> list[str]:
    """The document."""
    records, faults = run.records, run.faults
    rate = records.total / run.took
    return [
        "# Soak",
        "",
        "<!-- Written by `make soak`; change tests/soak/document.py instead. -->",
        "",
        "Does the service stay correct, and its memory level, under load for a while? `make soak`",
        "starts a whole installation (two web processes, two workers, beat, the",
        "[sandbox](../start/quickstart.md), a Redis of its own) and lets clients ask and write for some",
        "minutes,",
        "while about one provider call in twenty fails, hangs or is cut off. Each answer is compared",
        "with the true busy time of that moment, minute by minute: the service's own writes must show",
        f"at once, changes made elsewhere within the {TTL} seconds of the cache and the {SLACK:g} of a read",
        "in progress. Half of the users have connections of their own; the other half is read by",
        "[grants of their organizations](../guides/organization-grants.md), in bundles, which have",
        "faults of their",
        "own too. Two users of each organization have the same mailboxes, and some of the writes are holds,",
        "creates and moves with `ifFree=true`, whose answers are compared too. The code is in `tests/soak`.",
        "",
        *run.about,
        "",
        "## Outcome",
        "",
        f"{run.minutes:g} min, {run.people} users, {run.clients} clients: **{records.total} requests, "
        f"{rate:.0f} a second; {records.checked} answers compared, {len(records.wrong)} wrong.**",
        f"{records.outside} changes were made elsewhere, {records.unclear} writes had an unknown outcome, "
        f"{run.deliveries} webhooks were received.",
        "",
        *_outcome(run),
        "",
        *_latencies(records),
        "",
        *_budget(records, faults),
        "",
        *_memory(run),
        "",
        "![Memory of the largest process of each kind](benchmarks/soak.svg)",
        *_wrong(records),
        "",
        *FOUND.splitlines(),
    ]


def _latencies(records: Records) -> list[str]:
    rows = [
        f"| {route} | {len(times)} | "
        + " | ".join(seconds(_percentile(times, each)) for each in (50, 95, 99))
        + " |"
        for route, times in sorted(records.seconds.items())
    ]
    return ["## Latency", "", "| request | count | p50 | p95 | p99 |", "|---|---|---|---|---|", *rows]


def _budget(records: Records, faults: Faults) -> list[str]:
    asked = records.answered + records.named
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(records.statuses.items()))
    kinds, targets = (
        ", ".join(f"{name}: {count}" for name, count in sorted(counted.items()))
        for counted in (faults.posted, faults.at)
    )
    return [
        "## Errors",
        "",
        f"Answers by status: {statuses}. Faults of the providers: {kinds}.",
        f"They were for: {targets}; {faults.struck} of {faults.posted.total()} have struck.",
        f"Of {asked} users, calendars and requests that were to be answered, {records.named} were named as "
        f"failed: {records.share_named:.2%}.",
        f"The budget is {BUDGET:.0%}, the share of provider calls that have a fault: one fault is to fail",
        "one answer at the most, and a retry or the cache often spares that one too.",
    ]


def _memory(run: Run) -> list[str]:
    first, last = (_near(run.measures.kept, at) for at in (run.warm, run.took))
    growth = slope([(at, size) for at, size, _, _ in run.measures.kept if run.warm <= at <= run.took])
    return [
        "## Memory, files and threads",
        "",
        f"The first {run.warm:.0f} seconds warm everything up and do not count, nor does the rest after the",
        f"load. Growth in between is by least squares: a process grows when it is more than {FLAT:g} MiB a",
        "minute over all of that time, and over the second half of it too, for what still warms up slows",
        "down and a leak does not; it is flat otherwise. When that half begins after "
        f"{FILLED / 60:g} minutes of load,",
        f"nothing warms up any longer, and {LEVEL:g} MiB are the limit. A run of less than {LEAST:g}",
        f"minutes shows nothing. It leaks when at rest, with no client left, it has over {MORE} files",
        "or threads more than under load.",
        "",
        "| process | of a processor | MiB at the end | growth a minute | second half | memory "
        "| files | threads | at rest |",
        "|---|---|---|---|---|---|---|---|---|",
        *map(_process, run.processes),
        "",
        f"Redis: {last[1] / MIB:.1f} MiB at the end, {growth:+.2f} MiB a minute; {first[2]} keys when warm, "
        f"{last[2]} at the end; {first[3]} connections, then {last[3]}.",
    ]


def _process(each: Process) -> str:
    memory = f"{each.rest.memory / MIB:.0f} | {each.growth:+.2f} MiB | {each.growth_later:+.2f} MiB"
    grows = "grows" if each.grows else "flat" if each.is_long_enough else "too short"
    leaks = "leaks" if each.leaks else "no leak"
    files, threads = f"{each.files} → {each.rest.files}", f"{each.threads} → {each.rest.threads}"
    return f"| {each.name} | {each.busy:.0%} | {memory} | {grows} | {files} | {threads} | {leaks} |"


def _outcome(run: Run) -> list[str]:
    """Whether it has passed, by the rules that the document states below."""
    found = run.failings()
    return [f"Not passed: {'; '.join(found)}."] if found else ["Passed, by the rules below."]


def _wrong(records: Records) -> list[str]:
    if not records.wrong:
        return []
    return ["", "## Wrong answers", "", *(f"- {each}" for each in records.wrong[:SHOWN])]


def _percentile(times: list[float], percent: int) -> float:
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)]


def _near(kept: Sequence[tuple[float, int, int, int]], at: float) -> tuple[float, int, int, int]:
    return min(kept, key=lambda each: abs(each[0] - at))


def plot(run: Run) -> Plot:
    """Memory of the largest process of each kind."""
    kinds: dict[str, list[Sample]] = {}
    for name, samples in run.measures.samples.items():
        kind = name.rstrip("0123456789.")
        if kind not in kinds or samples[-1].memory > kinds[kind][-1].memory:
            kinds[kind] = samples
    named = {kind: [(each.at, each.memory / MIB) for each in samples] for kind, samples in kinds.items()}
    redis = [(at, size / MIB) for at, size, _, _ in run.measures.kept]
    return Plot(
        "soak",
        "Memory of the largest process of each kind",
        "seconds",
        "MiB",
        {**dict(list(named.items())[:3]), "redis": redis},
        (False, False),
    )
