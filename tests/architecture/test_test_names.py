"""Names of tests are plain English: no personification, and short enough to read in a report."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
WORDS = frozenset(("told", "tell", "tells", "say", "says", "hear", "hears", "heard", "nobody", "somebody"))
WORDS |= {"anew", "heed", "mended", "remembered"}
LONGEST = 80


def names(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def unclear(source: str) -> list[str]:
    return [name for name in names(source) if len(name) > LONGEST or WORDS.intersection(name.split("_"))]


def test_test_names_have_no_banned_word_and_are_short() -> None:
    files = [file for file in TESTS.rglob("*.py") if "node_modules" not in file.parts]
    found = {str(file.relative_to(TESTS)): unclear(file.read_text()) for file in files}
    assert {file: names for file, names in found.items() if names} == {}


@pytest.mark.parametrize("name", ["test_the_client_is_told", "test_nobody_waits", f"test_{'a' * 80}"])
def test_unclear_names_are_found(name: str) -> None:
    assert unclear(f"class TestOne:\n    async def {name}(self): ...") == [name]
    assert unclear("def test_retold_story_is_accepted(): ...\ndef tell(): ...") == []
