"""The Bruno collection has every operation of the OpenAPI document, as it is now."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.almanac_typescript.types import document
from tests.bruno.collection import FOLDER, METHODS, files


@pytest.fixture(scope="module")
def api() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document())
    return found


def test_it_is_that_of_the_document(api):
    """After a change of the API, `make bruno` writes it again."""
    written = {
        file.relative_to(FOLDER).as_posix(): file.read_text() for file in FOLDER.rglob("*") if file.is_file()
    }

    assert written == files(api)


def test_every_operation_has_a_request_to_its_path(api):
    operations = {
        (method, re.sub(r"\{(\w+)\}", r":\1", path))
        for path, item in api["paths"].items()
        for method in METHODS
        if method in item
    }
    requests = {
        (found[1], found[2])
        for text in files(api).values()
        if (found := re.search(r"^(\w+) \{\n  url: \{\{url\}\}([^?\n]*)", text, re.MULTILINE))
    }

    assert requests == operations
    assert len(operations) > 50


def test_required_parameters_are_sent_and_others_are_switched_off(api):
    text = files(api)["scheduling/listUserSlots.bru"]

    assert re.search(r"^  url: .*\?start=\S+&end=\S+$", text, re.MULTILINE)
    assert re.search(r"^  start: \S+$", text, re.MULTILINE)
    assert "\n  ~slotDuration: 60\n" in text
    assert "\n  userId: ada\n" in text
