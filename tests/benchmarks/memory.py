"""Memory of web and worker processes, at the start and after large answers."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks.installation import Installation, Running
from tests.benchmarks.processes import memory
from tests.benchmarks.questions import WEEK
from tests.benchmarks.report import Report, progress
from tests.benchmarks.scale import Scale
from tests.installation.processes import Process, family

REPEATED = 5


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """One installation, asked for more and more."""
    columns = ("web, sum of PSS", "web, largest RSS", "workers, sum of PSS", "workers, largest RSS")
    report.table("Memory of two web and two worker processes", "after", *columns)
    with installation.running() as running:
        _row("the start", running, report)
        _ask(running, 1_000, fresh=True)
        _row("1,000 members, cold", running, report)
        for size in [each for each in scale.sizes if each >= 1_000]:
            progress(f"memory: {size:,} members")
            for _ in range(REPEATED):
                _ask(running, size)
            _row(f"{size:,} members, warm, {REPEATED} times", running, report)


def _ask(running: Running, members: int, *, fresh: bool = False) -> None:
    answer = running.client.get(f"/v1/organizations/org-{members}/scheduling", WEEK, fresh=fresh)
    assert answer.status == 200, answer.body


def _row(after: str, running: Running, report: Report) -> None:
    report.row(after, *_cells([running.web]), *_cells(running.workers))


def _cells(processes: Sequence[Process]) -> tuple[str, str]:
    """Shared pages count once in the sum; the largest is that of one process."""
    sizes = [memory(each) for process in processes for each in family(process.pid)]
    known = [size for size in sizes if size is not None]
    if not known:
        return "not readable here", "not readable here"
    return _megabytes(sum(size["Pss"] for size in known)), _megabytes(max(size["Rss"] for size in known))


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"
