"""The pages of architecture and terms name real code: every module, function and folder."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("app", "workers", "scheduling", "providers", "store")
ARCHITECTURE = (ROOT / "docs/engineering/architecture.md").read_text()
GLOSSARY = (ROOT / "docs/engineering/glossary.md").read_text()
# `package.module` or `package.module:name.attribute`
REFERENCE = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.\w+)+)(?::([\w.]+))?`")
FOLDER = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:/\w+)*)/`")

REFERENCES = sorted(set(REFERENCE.findall(ARCHITECTURE + GLOSSARY)))


@pytest.mark.parametrize(("module", "name"), REFERENCES, ids=map(":".join, REFERENCES))
def test_every_reference_exists(module, name):
    reduce(getattr, name.split(".") if name else (), import_module(module))


def test_the_folder_tables_are_complete():
    folders = {
        str(file.parent.relative_to(ROOT))
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if file.name == "__init__.py"
    }

    assert set(FOLDER.findall(ARCHITECTURE)) == folders


def test_every_term_names_its_module():
    rows = re.findall(r"^\| \*\*.*$", GLOSSARY, re.MULTILINE)

    assert len(rows) >= 20
    assert [row for row in rows if not REFERENCE.search(row)] == []
