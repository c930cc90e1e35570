"""Goal 16: commands, bytes, statements and processor time of a cold read; the counts of a warm request."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tests.benchmarks import people
from tests.benchmarks.installation import Installation, Running
from tests.benchmarks.processes import cpu_seconds
from tests.benchmarks.provider import Behaviour
from tests.benchmarks.questions import WEEK
from tests.benchmarks.report import Report, progress, seconds
from tests.benchmarks.scale import Scale

COUNTED = Path(__file__).parent / "counted"
MEMBERS = 1_000
REQUESTS = 200
# Few users, so that every web process has cached them.
USERS = 10
SCRIPTS = ("eval", "evalsha")

# Limits for a cold read and a warm request.
READ_LIMITS = {"commands": 20.0, "scripts": 0.15, "bytes": 2_500.0, "statements": 0.1}
WARM_LIMITS = {"commands": 2.0, "scripts": 0.0, "bytes": 500.0, "statements": 0.0}
# Background work of the processes, such as heartbeats, falls into a measurement too.
SLACK = 0.05


@dataclass(frozen=True, slots=True)
class Counts:
    """Redis commands, those inside scripts included; calls of scripts; bytes into Redis; SQL statements."""

    commands: float
    scripts: float
    bytes: float
    statements: float

    def of_each(self, before: Counts, number: int) -> Counts:
        """The counts since ``before``, for each of a number of reads or requests."""
        return Counts(*((getattr(self, each) - getattr(before, each)) / number for each in Counts.__slots__))


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """The counts in one installation, and the processor time beside a bare loop in another."""
    counted(installation, report)
    timed(installation, report, scale)


def counted(installation: Installation, report: Report) -> None:
    """The table of counts beside their limits."""
    report.table(
        f"Costs of a cold read, organization of {MEMBERS:,}, and of a warm request for one user",
        *("request", "Redis commands", "script calls", "bytes into Redis", "SQL statements", "verdict"),
    )
    with TemporaryDirectory() as folder:
        statements = Path(folder) / "statements"
        statements.touch()
        environment = {"PYTHONPATH": str(COUNTED), "BENCH_STATEMENTS": str(statements)}
        with installation.running(environment=environment) as running:
            # Processes have opened their connections and cached what they cache.
            cold(running)
            read = _measured(installation, statements, MEMBERS, lambda: cold(running))
            commands = _by_command(installation, lambda: cold(running))
            warm(running)
            request = _measured(installation, statements, REQUESTS, lambda: warm(running))
    for what, counts, limits in (("cold read", read, READ_LIMITS), ("warm request", request, WARM_LIMITS)):
        held = all(getattr(counts, each) <= limit + SLACK for each, limit in limits.items())
        report.row(what, *_cells(counts, limits), "holds" if held else "does not hold")
    report.note(f"Redis commands for each cold read: {commands}.")


def timed(installation: Installation, report: Report, scale: Scale) -> None:
    """Processor time of a cold read beside that of the bare loop, in turn."""
    times: dict[str, list[float]] = {"cold read": [], "bare loop": []}
    with installation.running() as running:
        cold(running)
        for number in range(scale.rounds):
            progress(f"costs: round {number + 1} of {scale.rounds}")
            installation.provider.behave(Behaviour())
            before = cpu_seconds([running.web, *running.workers])
            cold(running)
            after = cpu_seconds([running.web, *running.workers])
            if before is None or after is None:
                report.note("The system does not report processor times.")
                return
            times["cold read"].append((after - before) / MEMBERS)
            times["bare loop"].append(_bare(installation, running))
    report.table("Processor time of a cold read", "contender", "median", "min", "max")
    for what, each in times.items():
        report.row(what, seconds(median(each)), seconds(min(each)), seconds(max(each)))
    ratios = [ours / bare for ours, bare in zip(*times.values(), strict=True)]
    what = "processor time of a cold read, web and workers"
    report.verdict(16, what, "a bare loop over the same transport", median(ratios), 2.0)


def cold(running: Running) -> None:
    """Read an organization without the cache."""
    answer = running.client.get(f"/v1/organizations/org-{MEMBERS}/scheduling", WEEK, fresh=True)
    assert answer.status == 200, answer.body
    assert answer.json()["failedUsers"] == []


def warm(running: Running) -> None:
    """Request the slots of users whose busy periods are cached."""
    for number in range(REQUESTS):
        answer = running.client.get(f"/v1/users/{people.name(number % USERS)}/scheduling", WEEK)
        assert answer.status == 200, answer.body


def _measured(installation: Installation, statements: Path, number: int, work: Callable[[], None]) -> Counts:
    installation.provider.behave(Behaviour())
    before = _counts(installation, statements)
    work()
    return _counts(installation, statements).of_each(before, number)


def _counts(installation: Installation, statements: Path) -> Counts:
    calls = _calls(installation)
    return Counts(
        sum(calls.values()),
        sum(calls.get(each, 0) for each in SCRIPTS),
        _information(installation, "stats")["total_net_input_bytes"],
        statements.stat().st_size,
    )


def _by_command(installation: Installation, work: Callable[[], None]) -> str:
    before = _calls(installation)
    work()
    after = _calls(installation)
    each = {name: (calls - before.get(name, 0)) / MEMBERS for name, calls in after.items()}
    often = sorted(((calls, name) for name, calls in each.items() if calls >= 0.005), reverse=True)
    return ", ".join(f"{name} {calls:.2f}" for calls, name in often)


def _calls(installation: Installation) -> dict[str, int]:
    result = _information(installation, "commandstats")
    return {
        name.removeprefix("cmdstat_"): each["calls"]
        for name, each in result.items()
        if name != "cmdstat_info"
    }


def _information(installation: Installation, section: str) -> dict[str, Any]:
    result: dict[str, Any] = installation.redis.info(section)
    return result


def _cells(counts: Counts, limits: dict[str, float]) -> list[str]:
    return [f"{getattr(counts, each):,.2f} (≤ {limit:,g})" for each, limit in limits.items()]


def _bare(installation: Installation, running: Running) -> float:
    """Processor time of one call in as many processes and threads as the workers have."""
    processes = len(running.workers)
    command = [sys.executable, "-m", "tests.benchmarks.bare_loop"]
    command += ["--address", f"http://127.0.0.1:{installation.provider.port}"]
    command += ["--reads", str(MEMBERS // processes), "--threads", str(running.settings.reads_in_flight)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    result = [each.communicate(timeout=120)[0] for each in started]
    assert all(each.returncode == 0 for each in started)
    return sum(map(float, result)) / (MEMBERS // processes * processes)
