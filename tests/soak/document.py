"""What a run has found, as docs/soak.md and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.report import Plot, seconds
from tests.soak.client import SLACK
from tests.soak.faults import Faults
from tests.soak.house import TTL
from tests.soak.measures import FLAT, MIB, Measures, Sample
from tests.soak.records import Records

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs/soak.md"
PICTURE = ROOT / "docs/benchmarks/soak.svg"
# Files and threads that may be more at the end than once it was warm: kept connections come and go.
MORE = 8
SHOWN = 5


@dataclass
class Run:
    """Everything that is told of one run."""

    about: str
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


def lines(run: Run) -> list[str]:
    """The document."""
    records, faults = run.records, run.faults
    rate = records.total / run.took
    return [
        "# Soak",
        "",
        "<!-- Written by `make soak`; change tests/soak/document.py instead. -->",
        "",
        "`make soak` starts a whole installation (two web processes, two workers, beat, the sandbox, its own",
        "Redis) and lets clients ask and write for some minutes, while about one provider call in twenty",
        "fails, hangs or is cut off. Each answer is compared with what was truly busy at that moment, by a",
        "count of every minute: what the service wrote itself must be seen at once, what somebody else wrote",
        f"within the {TTL} seconds of the cache and the {SLACK:g} of a read that was under way.",
        "",
        run.about,
        "",
        f"{run.minutes:g} minutes, {run.people} users, {run.clients} clients: **{records.total} requests, "
        f"{rate:.0f} a second; {records.checked} answers compared, {len(records.wrong)} wrong.**",
        f"{records.outside} changes were made elsewhere, {records.unclear} writes ended unclear, "
        f"{run.deliveries} webhooks came.",
        "",
        *_latencies(records),
        "",
        *_budget(records, faults),
        "",
        *_memory(run),
        "",
        "![Memory of every process](benchmarks/soak.svg)",
        *_wrong(records),
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
    share = records.named / asked if asked else 0.0
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(records.statuses.items()))
    kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(faults.posted.items()))
    return [
        "## Errors",
        "",
        f"Answers by status: {statuses}. Faults of the providers: {kinds}.",
        f"Of {asked} users, calendars and requests that were to be answered, {records.named} were named as "
        f"failed: {share:.2%}.",
    ]


def _memory(run: Run) -> list[str]:
    rows = [_process(name, samples, run) for name, samples in sorted(run.measures.samples.items())]
    first, last = (_near(run.measures.kept, at) for at in (run.warm, run.took))
    growth = run.measures.redis_growth(run.warm)
    return [
        "## Memory, files and threads",
        "",
        f"Growth is by least squares after {run.warm:.0f} seconds; a process is flat when it is at most "
        f"{FLAT:g} MiB a minute.",
        f"Nothing leaks when, at rest, there are at most {MORE} more files or threads than under load.",
        "",
        "| process | MiB at the end | growth a minute | | files | threads | |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
        f"Redis: {last[1] / MIB:.1f} MiB at the end, {growth:+.2f} MiB a minute; {first[2]} keys when warm, "
        f"{last[2]} at the end; {first[3]} connections, then {last[3]}.",
    ]


def _process(name: str, samples: Sequence[Sample], run: Run) -> str:
    warm = [each for each in samples if each.at >= run.warm] or list(samples)
    last = samples[-1]
    growth = run.measures.growth(name, run.warm)
    files, threads = (max(getattr(each, what) for each in warm[:-1] or warm) for what in ("files", "threads"))
    leaks = last.files > files + MORE or last.threads > threads + MORE
    return (
        f"| {name} | {last.memory / MIB:.0f} | {growth:+.2f} MiB | {'flat' if growth <= FLAT else 'grows'} "
        f"| {files} → {last.files} | {threads} → {last.threads} | {'leaks' if leaks else 'no leak'} |"
    )


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
