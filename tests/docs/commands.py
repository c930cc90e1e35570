"""Checks the lines of shell blocks that are not run against the commands that they call."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import dropwhile

import click

from app.cli.main import main
from tests.docs.fences import ROOT, Block

# They run until they are stopped, or set a machine up: other tests cover them.
_STARTS = re.compile(
    r"^(?:[A-Z_]+=\S+ )*(?:make|(?:\.venv/bin/)?almanac (?:up|demo|serve|worker|beat|sandbox))\b",
    re.MULTILINE,
)
_TARGETS = frozenset(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
_SETTING = re.compile(r"[A-Z_]+=.*")
_ALMANAC = (".venv/bin/almanac", "almanac")


def lines(block: Block) -> Iterator[list[str]]:
    """The words of each line of a block, without comments and settings; continued lines are joined."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = list(dropwhile(_SETTING.fullmatch, shlex.split(line, comments=True)))
        if words:
            yield words


def only_checked(block: Block) -> bool:
    """Whether a block starts or builds something, so that its lines are checked and not run."""
    return _STARTS.search(block.text) is not None


def check(block: Block) -> None:
    """Every line is an existing command, with valid options."""
    for words in lines(block):
        if words[0] == "make":
            targets = [word for word in words[1:] if "=" not in word]
            assert targets, f"{block.place}: make what?"
            assert _TARGETS.issuperset(targets), f"{block.place}: the Makefile has no {targets}"
        else:
            assert words[0] in _ALMANAC, f"{block.place}: {words[0]} is neither make nor almanac"
            _check_almanac(block.place, words[1:])


def _check_almanac(place: str, words: list[str]) -> None:
    command: click.Command = main
    context = click.Context(command)
    while isinstance(command, click.Group):
        assert words, f"{place}: almanac alone does nothing"
        _name, found, words = command.resolve_command(context, words)
        assert found is not None
        command = found
        context = click.Context(command, parent=context)
    command.make_parser(context).parse_args(args=list(words))
