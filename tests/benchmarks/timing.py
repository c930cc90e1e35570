"""Times taken side by side: rounds in which every contender runs once, so that a busy machine hits all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def deviation(costs: Mapping[int, float], base: int = 1_000) -> float:
    """How far the cost that is farthest from that of ``base`` lies from it, as a share of it."""
    return max(abs(cost / costs[base] - 1) for cost in costs.values())


def _once(call: Callable[[], object]) -> float:
    """Seconds of a call; of a second one where the first may have been filling caches for most of it."""
    first = _timed(call)
    return first if first > ROUND else _timed(call)


def _timed(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start
