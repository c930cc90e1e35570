"""The `--help` text of each command, in a terminal of 80 columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from app.cli.main import main

README = Path(__file__).parents[3] / "README.md"
OPERATE = [
    f"docs/operate/{name}.md"
    for name in ("deploy", "one-machine", "containers", "systemd", "upgrade", "backup", "runbook")
]


def commands(group: click.Group, *before: str) -> Iterator[tuple[str, ...]]:
    yield before
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield (*before, name)


EVERY = list(commands(main))


def shown(*words: str) -> str:
    result = CliRunner().invoke(main, [*words, "--help"], prog_name="almanac", terminal_width=80)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_it_fits_is_in_sentences_and_leaves_no_option_unexplained(words):
    text = shown(*words)

    assert text.startswith(f"Usage: {' '.join(('almanac', *words))}")
    assert all(len(line) <= 80 for line in text.splitlines())
    # Click cuts off summaries that do not fit beside a command's name with dots.
    assert "..." not in text.replace("[OPTIONS] COMMAND [ARGS]...", "").replace("(ALMANAC_...)", "")
    description = text.split("\n\n")[1]
    assert re.match(r"  [A-Z`]", description)
    assert description.rstrip().endswith(".")


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_every_option_has_a_help_sentence(words):
    command: click.Command = main
    for word in words:
        assert isinstance(command, click.Group)
        command = command.commands[word]

    options = [each for each in command.params if isinstance(each, click.Option)]
    assert all(
        option.help and option.help[0].isupper() and option.help.endswith((".", ")")) for option in options
    )


@pytest.mark.parametrize(
    "document", ["README.md", *OPERATE, "docs/reference/settings.md", "docker-compose.yml"]
)
def test_every_command_that_a_document_names_exists(document):
    text = (README.parent / document).read_text()
    # In a block of code, or between backticks.
    named = re.findall(r"(?:`|^\s*|\.venv/bin/)almanac ((?:[a-z][a-z-]* ?)+)", text, re.MULTILINE)

    for words in named:
        command: click.Command = main
        for word in words.split():
            if isinstance(command, click.Group):
                command = command.commands[word]
