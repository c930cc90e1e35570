"""Percentiles under steady load while the provider fails now and then, beside the same without faults."""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import quantiles

from tests.benchmarks import pressure
from tests.benchmarks.installation import Installation
from tests.benchmarks.provider import Behaviour
from tests.benchmarks.report import Plot, Report, progress, seconds
from tests.benchmarks.scale import Scale

USERS = 50
RATE = 40.0
DAYS = 7
# With it, a good part of the answers needs a read of the provider.
TTL = 5
# Answers that may fail, as a share of all: one in a hundred, though one call to the provider in twenty does.
BUDGET = 0.01
FAULTY = Behaviour(errors=0.04, slow=0.01, slow_seconds=1.0, by_account=False)
PERCENTILES = (50, 95, 99)


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """The production server, on its threads."""
    report.note(
        f"{RATE:.0f} requests a second for {scale.steady_seconds:g} s, {USERS} users, {DAYS} days, cached "
        f"for {TTL} s; each answer counts from when its request was due. Faults: 4 % of the "
        "provider's answers are HTTP 500, 1 % take a second."
    )
    faults = {"none": Behaviour(), "5 %": FAULTY}
    lines: dict[str, list[tuple[float, float]]] = {}
    columns = (*(f"p{each}" for each in PERCENTILES), "failed answers", "of the error budget")
    report.table("Seconds from due to answered", "provider faults", "provider reads", *columns)
    with (
        tempfile.TemporaryDirectory(prefix="almanac-bench-") as folder,
        installation.running(BUSY_TTL=TTL) as running,
    ):
        requests = pressure.varied(Path(folder), [installation.spare(each) for each in range(USERS)], DAYS)
        pressure.paced(running.client.port, requests, installation.key, 2, RATE)
        for name, behaviour in faults.items():
            progress(f"steady: provider faults {name}")
            installation.provider.behave(behaviour)
            answers = pressure.paced(
                running.client.port, requests, installation.key, scale.steady_seconds, RATE
            )
            reads = installation.provider.record()["requests"]
            times = sorted(took for took, _ in answers)
            cuts = quantiles(times, n=100, method="inclusive")
            failed = sum(status != 200 for _, status in answers) / len(answers)
            cells = [seconds(cuts[each - 1]) for each in PERCENTILES]
            report.row(name, f"{reads:,}", *cells, f"{failed:.2%}", f"{failed / BUDGET:.0%}")
            lines[f"faults: {name}"] = [(cut, share) for share, cut in enumerate(cuts, 1)]
    report.plot(
        Plot("steady", "Steady load", "seconds", "% of the answers", lines, logarithmic=(True, False))
    )
    report.note(f"The error budget is {BUDGET:.0%} of the answers.")
