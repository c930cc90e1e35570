"""The table of docs/engineering/reliability.md has every fault test, and nothing else."""

from __future__ import annotations

import re

from tests.docs.fences import ROOT
from tests.faults import document


def rows() -> set[str]:
    """The tests that the document names, without their parameters."""
    found = re.findall(
        r"\| `(test_\w+\.py::test_\w+)(?:\[[^`]*\])?` \|$", document.DOCUMENT.read_text(), re.MULTILINE
    )
    return set(found)


def faults() -> set[str]:
    """The fault tests of the suite."""
    return {
        f"{file.name}::{name}"
        for file in (ROOT / "tests/faults").glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }


def test_every_fault_test_has_a_row_and_every_row_a_test():
    assert rows() == faults()


def test_the_table_is_the_one_that_was_measured():
    assert document.table() in document.DOCUMENT.read_text()
