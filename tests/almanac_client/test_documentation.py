"""The examples in the documentation work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import almanac_client
from almanac_client.errors import AlmanacError
from almanac_mcp.tools import Tools

ROOT = Path(__file__).parents[2]


def python_blocks(file: str) -> list[str]:
    return re.findall(r"```python[^\n]*\n(.*?)```", (ROOT / file).read_text(), re.DOTALL)


def test_the_example_in_python_runs(almanac, base_url, new_api, unique, capsys):
    (example,) = python_blocks("docs/clients.md")
    slug, user = unique("acme"), unique("ada")
    almanac.organizations.create(slug)
    names = {"http://127.0.0.1:8080": base_url, '"acme"': f'"{slug}"', '"ada"': f'"{user}"'}
    for name, ours in names.items():
        assert name in example
        example = example.replace(name, ours)

    exec(compile(example, "docs/clients.md", "exec"), {"key": new_api().key})

    assert capsys.readouterr().out == ""
    assert [each["id"] for each in almanac.members.list(slug)] == [user]


def test_every_error_is_in_the_table():
    table = (ROOT / "docs/clients.md").read_text()
    errors = {
        name
        for name in almanac_client.__all__
        if isinstance(getattr(almanac_client, name), type)
        and issubclass(getattr(almanac_client, name), AlmanacError)
    }

    assert len(errors) > 10
    for name in errors - {"RequestFailed"}:
        assert f"`{name}`" in table or f"`{name}s`" in table or f"`{name}`s" in table, name


def test_every_tool_is_in_the_table():
    table = (ROOT / "docs/mcp.md").read_text()
    tools = [tool.__name__ for tool in Tools(None).every()]

    assert len(tools) == 9
    for name in tools:
        assert f"`{name}`" in table


@pytest.mark.parametrize("package", ["almanac_client", "almanac_mcp"])
def test_every_module_says_what_it_is_for(package):
    files = list((ROOT / "clients/python" / package).glob("*.py"))

    assert files
    for file in files:
        assert file.read_text().startswith('"""'), file
