"""The findings of one part of the benchmarks: tables, verdicts, notes and plots; printed at once."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from statistics import median

GOAL_COLUMNS = ("goal", "what", "baseline", "ratio", "limit", "verdict")
HOLDS, FAILS = "holds", "does not hold"

_began = time.monotonic()


@dataclass(frozen=True)
class Plot:
    """Lines over two axes; a plot is a file of its name beside the document."""

    name: str
    title: str
    x: str
    y: str
    lines: dict[str, list[tuple[float, float]]]
    logarithmic: tuple[bool, bool] = (True, True)


@dataclass
class Report:
    """One part's findings, as Markdown for the document; the verdicts come first."""

    part: str
    lines: list[str] = field(default_factory=list)
    verdicts: list[tuple[str, ...]] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)

    def table(self, title: str, *columns: str) -> None:
        """Begin a table."""
        self._say("", f"### {title}", "")
        self.row(*columns)
        self._say("|" + "---|" * len(columns))

    def row(self, *cells: str) -> None:
        """One more row of the table."""
        self._say(_row(cells))

    def note(self, text: str) -> None:
        """A sentence beside the tables."""
        self._say("", text)

    def plot(self, plot: Plot) -> None:
        """Draw this into a file; the document shows it here."""
        self.plots.append(plot)
        self.lines += ["", f"![{plot.title}](benchmarks/{plot.name}.svg)"]

    def verdict(
        self, goal: int, what: str, base: str, ratio: float, limit: float, *, at_least: bool = False
    ) -> None:
        """Record whether the ratio of a goal keeps its limit."""
        kept = ratio >= limit if at_least else ratio <= limit
        sign = "≥" if at_least else "≤"
        cells = (str(goal), what, base, f"{ratio:.3g}", f"{sign} {limit:g}", HOLDS if kept else FAILS)
        self.verdicts.append(cells)
        print(f"goal {goal}: {what}, beside {base}: {ratio:.3g} {sign} {limit:g} {cells[-1]}", flush=True)

    def _say(self, *lines: str) -> None:
        self.lines += lines
        print("\n".join(lines), flush=True)


def goals(verdicts: list[tuple[str, ...]]) -> list[str]:
    """The table of verdicts, by goal."""
    rows = sorted(verdicts, key=lambda cells: int(cells[0]))
    return [_row(GOAL_COLUMNS), "|" + "---|" * len(GOAL_COLUMNS), *(_row(cells) for cells in rows)]


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def progress(text: str) -> None:
    """Report progress on standard error, with the time."""
    print(f"[{time.monotonic() - _began:5.0f} s] {text}", file=sys.stderr, flush=True)


def seconds(time: float) -> str:
    """With a unit of its own size."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if time >= size:
            return f"{time / size:.3g} {unit}"
    return f"{time / 1e-6:.3g} µs"


def spread(values: list[float]) -> str:
    """Minimum, median and maximum."""
    return f"{min(values):.2f} / {median(values):.2f} / {max(values):.2f}"
