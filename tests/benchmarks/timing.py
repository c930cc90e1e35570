"""Times taken side by side: rounds in which every contender runs once, so that a busy machine hits all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

# Seconds that one contender runs in one round, at least: long next to the clock and to a thread switch.
ROUND = 0.01


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds for one call of each contender, one list of rounds for each."""

    rounds: dict[str, list[float]]

    def seconds(self, name: str) -> float:
        return median(self.rounds[name])

    def ratio(self, name: str, base: str) -> float:
        """The median of the ratios within each round, which drift does not touch."""
        return median(a / b for a, b in zip(self.rounds[name], self.rounds[base], strict=True))


def interleaved(contenders: dict[str, Callable[[], object]], rounds: int = 7) -> Times:
    """Run all contenders in turn, ``rounds`` times."""
    calls = {name: max(1, round(ROUND / _once(call))) for name, call in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            start = perf_counter()
            for _ in range(calls[name]):
                call()
            times[name].append((perf_counter() - start) / calls[name])
    return Times(times)


def _once(call: Callable[[], object]) -> float:
    """Seconds of a second call: the first may fill caches."""
    call()
    start = perf_counter()
    call()
    return perf_counter() - start
