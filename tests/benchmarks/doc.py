"""The document of benchmarks: replaces the measurements between markers, keeps the text around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.benchmarks.report import GOAL_COLUMNS, Report, goals

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs/engineering/benchmarks.md"
PICTURES = ROOT / "docs/engineering/benchmarks"
SUMMARY, MACHINE, USERS = "goals", "machine", "users"
# Of the tables by the number of members.
MEMBERS = ("1", "100", "1,000", "10,000")


def write(reports: Sequence[Report], machine: Sequence[str], stamp: str) -> None:
    """Replace the blocks of the parts that ran, and the table of goals over all parts."""
    # Imported here: only benchmarks have matplotlib.
    from tests.benchmarks import plots

    # The goals are collected again below.
    text = _with(_with(DOCUMENT.read_text(), SUMMARY, []), MACHINE, machine)
    for report in reports:
        block = [stamp, "", *goals(report.verdicts)] if report.verdicts else [stamp]
        text = _with(text, report.part, block + report.lines)
        for plot in report.plots:
            PICTURES.mkdir(exist_ok=True)
            plots.draw(plot, PICTURES / f"{plot.name}.svg")
    text = _with(text, USERS, for_users(text))
    DOCUMENT.write_text(_with(text, SUMMARY, goals(_verdicts(text))))


def for_users(text: str) -> list[str]:
    """The figures that a user of the service gets, taken from the tables of the parts.

    :raise LookupError: if a table is missing
    """
    cached = _rows(text, "Organizations over a week")
    read = _rows(text, "Everything read without the cache, 128 reads in flight")
    under_load = _rows(text, "One of 400 users, load by wrk")
    rows = [
        f"| {'one user' if each == '1' else each + ' members'} | {cached[each][0]} | {read[each][1]} |"
        for each in MEMBERS
    ]
    return [
        "| slots of a week, for | from the cache | read from a provider that takes 200 ms |",
        "|---|---|---|",
        *rows,
        "",
        f"{under_load['Almanac, 7 d'][0]} requests a second for the cached slots of one user over a week.",
    ]


def _rows(text: str, heading: str) -> dict[str, list[str]]:
    """The cells of the table below a heading that begins so, by the first cell of their row."""
    found = re.search(rf"^### {re.escape(heading)}.*\n\n((?:\|.*\n)+)", text, re.MULTILINE)
    if found is None:
        raise LookupError(f"{DOCUMENT} has no table below {heading!r}")
    cells = ([cell.strip() for cell in row.strip("|").split("|")] for row in found[1].splitlines())
    return {first: others for first, *others in cells}


def require_blocks(parts: Iterable[str]) -> None:
    """Check that the document has a place for the measurements of each part.

    :raise LookupError: if it has none
    """
    text = DOCUMENT.read_text()
    for part in (SUMMARY, MACHINE, USERS, *parts):
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
