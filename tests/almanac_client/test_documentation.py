"""The examples in the documentation work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import almanac_client
from almanac_client import Almanac
from almanac_client.errors import AlmanacError
from almanac_mcp.tools import Tools
from tests.almanac_client.test_verification import BODY, SECRET, signed
from tests.conftest import Api

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
IN_CLIENTS, IN_README = "docs/reference/clients.md", "clients/python/README.md"


def python_blocks(file: str) -> list[str]:
    return re.findall(r"```python[^\n]*\n(.*?)```", (ROOT / file).read_text(), re.DOTALL)


@pytest.fixture
def almanac(base_url: str, new_api: Callable[..., Api], monkeypatch: pytest.MonkeyPatch) -> Iterator[Almanac]:
    """A client whose address and key the examples find in the environment."""
    monkeypatch.setenv("ALMANAC_URL", base_url)
    monkeypatch.setenv("ALMANAC_API_KEY", new_api().key)
    with Almanac() as client:
        yield client


def run(file: str, number: int, /, *, replaced: dict[str, str], **names: object) -> dict[str, object]:
    """The variables of an example after it ran, with some of its text replaced."""
    example = python_blocks(file)[number]
    for name, ours in replaced.items():
        assert name in example
        example = example.replace(name, ours)
    exec(compile(example, file, "exec"), names)
    return names


@pytest.mark.slow
def test_the_blocking_example_runs(almanac, base_url, new_api, unique, capsys):
    slug, user = unique("acme"), unique("zoe")
    almanac.organizations.create(slug)
    replaced = {"http://127.0.0.1:8080": base_url, '"demo"': f'"{slug}"', '"zoe"': f'"{user}"'}

    run(IN_CLIENTS, 0, replaced=replaced, key=new_api().key)

    assert capsys.readouterr().out == ""
    assert [each.id for each in almanac.members.list(slug)] == [user]


@pytest.mark.slow
def test_the_asynchronous_example_runs(
    almanac, new_organization, sandbox, new_user, new_api, monkeypatch, capsys
):
    slug = new_organization()
    new_user(sandbox.account("google", "ada@example.com"), slugs=(slug,))
    # This key sees that user only.
    monkeypatch.setenv("ALMANAC_API_KEY", new_api(organization=slug).key)

    run(IN_CLIENTS, 1, replaced={})

    assert capsys.readouterr().out == "<Answer of 0, complete>\n"


def test_the_example_of_webhooks_runs(capsys):
    receive = run(IN_CLIENTS, 2, replaced={})["receive"]

    assert receive(BODY.encode(), signed(), SECRET) == 204
    assert capsys.readouterr().out == "calendar.changed ada\n"
    assert receive(BODY.encode(), {}, SECRET) == 400


def test_the_example_of_the_readme_runs(almanac, sandbox, new_user, capsys):
    user = new_user(sandbox.account("google", "ada@example.com"))

    run(IN_README, 0, replaced={'"ada"': f'"{user}"'})

    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "2026-11-23T00:00:00+00:00"
    assert len(printed) == 48


def test_every_example_is_run():
    assert (len(python_blocks(IN_CLIENTS)), len(python_blocks(IN_README))) == (3, 1)


def test_every_error_is_in_the_table():
    table = (ROOT / IN_CLIENTS).read_text()
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
    table = (ROOT / "docs/guides/assistants.md").read_text()
    tools = [tool.__name__ for tool in Tools(None).every()]

    assert len(tools) == 10
    for name in tools:
        assert f"`{name}`" in table
