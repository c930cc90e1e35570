"""The drawings are the engine's: drawing them again gives the same files, and the text matches them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.docs.drawings import DRAWINGS, FOLDER, Drawing, svg
from tests.docs.fences import ROOT

PAGE = (ROOT / "docs/reference/scheduling.md").read_text()
each = pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.name)


def test_each_is_there_and_shown():
    names = {drawing.name for drawing in DRAWINGS}

    assert {file.stem for file in FOLDER.glob("*.svg")} == names
    assert set(re.findall(r"\(scheduling/([\w-]+)\.svg\)", PAGE)) == names


@each
def test_drawing_it_again_gives_the_same_file(drawing: Drawing):
    made = svg(drawing)

    ElementTree.fromstring(made)
    assert (FOLDER / f"{drawing.name}.svg").read_text() == made, "python -m tests.docs.drawings"


@each
def test_slots_that_the_text_names_are_those_of_the_drawing(drawing: Drawing):
    told = re.search(rf"!\[([^\]]*)\]\(scheduling/{drawing.name}\.svg\)", PAGE)
    drawn = re.search(r"slots at ([\d:, ]+)", svg(drawing))
    assert told is not None
    assert drawn is not None

    named = told[1].partition("lots ")[2]

    if named:
        assert re.findall(r"\d\d:\d\d", named) == re.findall(r"\d\d:\d\d", drawn[1])
