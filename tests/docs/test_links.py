"""Links between the documents lead to existing files and headings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.fences import DOCUMENTS, ROOT

# These are added together with the parts that they describe.
WRITTEN_ELSEWHERE: frozenset[str] = frozenset()

_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.name)
def test_every_link_leads_somewhere(file: Path):
    for target, anchor in _LINK.findall(file.read_text()):
        found = file.parent / target if target else file
        assert found.exists() or found.name in WRITTEN_ELSEWHERE, f"{target} is not there"
        if anchor and found.exists():
            assert anchor in anchors(found.read_text()), f"{target}#{anchor} is not there"


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to headings."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_test_that_a_document_names_is_there():
    named = {path for file in DOCUMENTS for path in re.findall(r"`(tests/[\w/]+\.py)`", file.read_text())}

    assert named
    assert {path for path in named if not (ROOT / path).is_file()} == set()
