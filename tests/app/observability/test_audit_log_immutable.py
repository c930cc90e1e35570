"""The service only appends to the audit log and reads it."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from app.cli.main import main
from store.sql.models import AuditRecord
from tests.docs.fences import ROOT

READS = {"GET", "HEAD", "OPTIONS"}


def test_no_route_but_reading_ones_names_it(app):
    rules = [rule for rule in app.url_map.iter_rules() if "audit" in f"{rule.rule} {rule.endpoint}"]
    assert rules
    assert {method for rule in rules for method in rule.methods} <= READS


def test_no_command_names_it():
    def names(group: click.Group) -> list[str]:
        own = [*group.commands]
        return own + [
            n for each in group.commands.values() if isinstance(each, click.Group) for n in names(each)
        ]

    assert not [name for name in names(main) if "audit" in name]


@pytest.mark.parametrize("folder", ["app", "workers", "store", "providers"])
def test_no_statement_changes_or_deletes_a_record(folder):
    """The database refuses changes too; this test names the code that tries."""
    for file in (Path(ROOT) / folder).rglob("*.py"):
        text = file.read_text()
        for deed in ("update", "delete"):
            assert f"{deed}({AuditRecord.__name__}" not in text, file
