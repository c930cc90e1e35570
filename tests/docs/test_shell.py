"""Examples run against the installation of the tests, and reach nothing else that runs on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.fences import Block
from tests.docs.shell import Shell


def block(text: str) -> Block:
    return Block("docs/x.md", 1, "sh", {}, text)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path, {"http://127.0.0.1:8090": "http://127.0.0.1:1"}, {"PATH": "/usr/bin:/bin"})


def test_what_a_block_sets_is_there_for_the_next(shell: Shell):
    shell.run(block("NAME='two words'"))

    assert shell.run(block('echo "$NAME"'))[0] == "two words\n"


def test_a_command_that_fails_fails_the_example(shell: Shell):
    with pytest.raises(AssertionError, match="ended with 1"):
        shell.run(block("false\necho later"))


@pytest.mark.parametrize("address", ["http://127.0.0.1:8080", "http://localhost:8090"])
def test_an_address_that_may_be_anybodys_is_not_called(shell: Shell, address: str):
    with pytest.raises(AssertionError, match="would reach what else runs"):
        shell.run(block(f"echo {address}"))


def test_the_demo_is_seeded_in_the_sandbox_of_the_tests(shell: Shell):
    shell.run(block('almanac() { echo "$@"; }; SANDBOX=http://127.0.0.1:1'))

    printed, _ = shell.run(block('almanac() { echo "$@"; }\n.venv/bin/almanac seed demo'))

    assert printed == "seed demo --sandbox-url http://127.0.0.1:1\n"
