"""Counts tried cases, for the summary of the run."""

from __future__ import annotations

from collections import Counter

tried: Counter[str] = Counter()


def count(what: str, number: int = 1) -> None:
    tried[what] += number
