"""The structure of the project, held by tests rather than by a reviewer's memory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workers.settings import SETTINGS

ROOT = Path(__file__).parents[2]

# Variables of the assistants' server, which is a client of the API.
OF_CLIENTS = {"ALMANAC_API_KEY", "ALMANAC_URL"}


def test_code_names_no_other_variables_than_declared_settings():
    declared = [setting.name for setting in SETTINGS]
    code = "".join(
        file.read_text() for package in ("app", "workers", "store") for file in (ROOT / package).rglob("*.py")
    )

    named = set(re.findall(r"\bALMANAC_[A-Z_]+[A-Z]\b", code))

    assert len(set(declared)) == len(declared)
    assert {name.removesuffix("_FILE") for name in named} - OF_CLIENTS <= set(declared)


@pytest.mark.parametrize("package", ["app", "workers", "scheduling", "providers", "store"])
def test_every_module_has_a_docstring(package):
    for file in (ROOT / package).rglob("*.py"):
        assert file.read_text().lstrip().startswith('"""'), file
