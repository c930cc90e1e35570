"""The size of a run: complete, or just enough to show that the benchmarks work."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """Members of the organizations, rounds, and the seconds of one slice of load."""

    sizes: tuple[int, ...]
    rounds: int
    large_rounds: int
    slice_seconds: float
    held_times: int


FULL = Scale((1, 10, 100, 1_000, 10_000), 5, 2, 2.0, 10_000)
QUICK = Scale((1, 10, 100, 1_000), 2, 1, 1.0, 1_000)
