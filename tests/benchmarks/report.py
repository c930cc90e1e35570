"""Rows and verdicts, printed as Markdown so that a run can go into docs/benchmarks.md as it is."""

from __future__ import annotations


def heading(title: str, *columns: str) -> None:
    print(f"\n### {title}\n")
    row(*columns)
    print("|" + "---|" * len(columns))


def row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def verdict(goal: str, measured: float, limit: float, *, at_least: bool = False) -> None:
    """Say whether the worst ratio that a goal speaks of keeps its limit."""
    holds = measured >= limit if at_least else measured <= limit
    sign = "≥" if at_least else "≤"
    print(f"- goal {goal}: {measured:.3g} {sign} {limit:g} x {'holds' if holds else 'does not hold'}")


def seconds(time: float) -> str:
    """With a unit of its own size."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if time >= size:
            return f"{time / size:.3g} {unit}"
    return f"{time / 1e-6:.3g} µs"
