"""Writes the table of docs/engineering/reliability.md from the measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.faults.questions import Verdict

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs/engineering/reliability.md"
MEASURED = ROOT / "docs/engineering/reliability.json"
BEGIN, END = "<!-- faults: measured -->", "<!-- faults: end -->"

COLUMNS = ("fault", "what clients saw", "longest answer", "correct again after", "lost", "test")


def write() -> None:
    """Replace the table; the text around it stays."""
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}")


def table() -> str:
    """A row for each test, by its name."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *map(_row, json.loads(MEASURED.read_text()))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _row(measured: dict[str, Any]) -> tuple[str, ...]:
    lost = measured["lost"]
    if measured["again"]:
        lost += f"; {measured['again']} of {measured['writes']} writes were sent again"
    return (
        measured["fault"],
        _seen(measured["answers"]),
        f"{measured['slowest']:.1f} s",
        f"{measured['back']:.1f} s",
        lost,
        f"`{measured['test']}`",
    )


def _seen(answers: dict[str, int]) -> str:
    """How often each kind of answer came, the correct ones first."""
    kinds = sorted(answers, key=lambda kind: (kind != Verdict.RIGHT, kind))
    return ", ".join(_counted(kind, answers[kind]) for kind in kinds)


def _counted(kind: str, count: int) -> str:
    if kind.isdigit():
        return f"{count} \N{MULTIPLICATION SIGN} HTTP {kind}"
    words = {Verdict.RIGHT: "correct", Verdict.PARTIAL: "partial (missing calendars named)"}
    return f"{count} {words.get(kind, kind)}"


if __name__ == "__main__":
    write()
