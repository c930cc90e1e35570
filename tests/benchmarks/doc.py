"""The document of benchmarks: replaces the measurements between markers, keeps the text around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.benchmarks import plots
from tests.benchmarks.report import GOAL_COLUMNS, Report, goals

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs/engineering/benchmarks.md"
PICTURES = ROOT / "docs/engineering/benchmarks"
SUMMARY, MACHINE = "goals", "machine"


def write(reports: Sequence[Report], machine: Sequence[str], stamp: str) -> None:
    """Replace the blocks of the parts that ran, and the table of goals over all parts."""
    # The goals are collected again below.
    text = _with(_with(DOCUMENT.read_text(), SUMMARY, []), MACHINE, machine)
    for report in reports:
        block = [stamp, "", *goals(report.verdicts)] if report.verdicts else [stamp]
        text = _with(text, report.part, block + report.lines)
        for plot in report.plots:
            PICTURES.mkdir(exist_ok=True)
            plots.draw(plot, PICTURES / f"{plot.name}.svg")
    DOCUMENT.write_text(_with(text, SUMMARY, goals(_verdicts(text))))


def require_blocks(parts: Iterable[str]) -> None:
    """Check that the document has a place for the measurements of each part.

    :raise LookupError: if it has none
    """
    text = DOCUMENT.read_text()
    for part in (SUMMARY, MACHINE, *parts):
        _with(text, part, [])


def _with(text: str, name: str, lines: Sequence[str]) -> str:
    """The document with the block of that name replaced."""
    begin, end = f"<!-- {name}: measured -->", f"<!-- {name}: end -->"
    block = "\n".join([begin, "", *lines, "", end])
    replaced, blocks = re.subn(f"{begin}.*?{end}", lambda _: block, text, flags=re.DOTALL)
    if blocks != 1:
        raise LookupError(f"{DOCUMENT} must have one block from {begin} to {end}, and has {blocks}")
    return replaced


def _verdicts(text: str) -> list[tuple[str, ...]]:
    """Every verdict in the blocks of the parts, whenever they were measured."""
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", text, re.MULTILINE)
    cells = [(goal, *rest.split(" | ")) for goal, rest in rows]
    return [each for each in cells if len(each) == len(GOAL_COLUMNS) and each[-2].startswith(("≤", "≥"))]
