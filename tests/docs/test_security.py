"""Every claim of the page on security names tests that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.docs.fences import ROOT
from tests.security.test_issuers import OF_KEYS, OF_PEOPLE

PAGE = ROOT / "docs/operate/security.md"
_NAMED = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")


def rows_with_tests() -> Iterator[str]:
    """The rows of the tables that have a column of tests."""
    has_tests = False
    for line in PAGE.read_text().splitlines():
        if not line.startswith("|"):
            has_tests = False
        elif line.endswith("| tests |"):
            has_tests = True
        elif has_tests and set(line) - set("|- "):
            yield line


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text())
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef))


@pytest.mark.parametrize("row", list(rows_with_tests()), ids=lambda row: row.strip("| ")[:60])
def test_every_claim_names_tests_that_exist(row: str):
    named = _NAMED.findall(row.rsplit("|", 2)[1])

    assert named, "a claim without a test"
    for file, function in named:
        assert (ROOT / "tests" / file).is_file(), file
        assert not function or function in functions(file), f"{file}::{function}"


def test_every_kind_of_link_is_listed():
    listed = set(re.findall(r"^\| ([^|]+) \|", PAGE.read_text(), re.MULTILINE))

    assert set(OF_PEOPLE + OF_KEYS) <= listed
