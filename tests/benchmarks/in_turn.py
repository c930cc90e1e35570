"""Calls that are compared warm over HTTP: all of them in turn, in every round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from tests.benchmarks.client import Answer
from tests.benchmarks.installation import Installation
from tests.benchmarks.report import Report, progress, seconds, spread
from tests.benchmarks.scale import Scale

MIN_ROUNDS = 5
CALLS_A_ROUND = 10


@dataclass(frozen=True)
class Compared:
    """The seconds of each call, by round, and the size of its answer in bytes."""

    times: Mapping[str, list[list[float]]]
    sizes: Mapping[str, int]

    def table(self, report: Report, title: str, what: str) -> None:
        """A row for each call."""
        report.table(title, what, "median", "min", "max", "size")
        for name, of_rounds in self.times.items():
            taken = [each for of_round in of_rounds for each in of_round]
            cells = (seconds(median(taken)), seconds(min(taken)), seconds(max(taken)))
            report.row(name, *cells, f"{self.sizes[name] / 1e3:,.0f} kB")

    def ratio(self, report: Report, name: str, base: str) -> float:
        """The median of the ratios of two calls within a round."""
        pairs = zip(self.times[name], self.times[base], strict=True)
        ratios = [median(each) / median(of_base) for each, of_base in pairs]
        report.note(f"Ratio of the rounds for {name}, min / median / max: {spread(ratios)}.")
        return median(ratios)


def compare(
    what: str,
    calls: Mapping[str, Callable[[], Answer]],
    installation: Installation,
    scale: Scale,
    calls_a_round: int = CALLS_A_ROUND,
) -> Compared:
    """Make the calls; nothing of them may be read from the provider."""
    reads = installation.provider.record()["requests"]
    times: dict[str, list[list[float]]] = {name: [] for name in calls}
    sizes: dict[str, int] = {}
    rounds = max(MIN_ROUNDS, scale.rounds)
    for number in range(rounds):
        progress(f"{what}: round {number + 1} of {rounds}")
        for name, call in calls.items():
            answers = [call() for _ in range(calls_a_round)]
            assert {answer.status for answer in answers} == {200}
            times[name].append([answer.seconds for answer in answers])
            sizes[name] = len(answers[-1].body)
    assert installation.provider.record()["requests"] == reads, "something warm was read from the provider"
    return Compared(times, sizes)
