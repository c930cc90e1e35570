"""Commands that are not run are compared with the command line."""

from __future__ import annotations

import click
import pytest

from tests.docs import commands
from tests.docs.fences import Block


def block(text: str) -> Block:
    return Block("docs/x.md", 1, "sh", {}, text)


@pytest.mark.parametrize(
    "text",
    [
        "make demo",
        "make bench ONLY=warm",
        ".venv/bin/almanac up --sandbox  # a comment",
        "A=1 almanac up \\\n  --port 1",
    ],
)
def test_a_command_that_is_there_passes(text: str):
    assert commands.only_checked(block(text))
    commands.check(block(text))


def test_what_has_no_target_or_is_another_program_fails():
    for text in ("make coffee", "make", "docker compose up", "make demo\ndocker ps"):
        with pytest.raises(AssertionError):
            commands.check(block(text))


def test_options_and_commands_that_are_not_there_fail():
    for text in ("almanac up --fast", "almanac fly"):
        with pytest.raises(click.UsageError):
            commands.check(block(text))


def test_a_call_is_run_and_not_only_checked():
    assert not commands.only_checked(block("KEY=$(almanac keys create x)\ncurl http://x"))
