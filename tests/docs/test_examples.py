"""Every example of the documentation does what it says."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs import commands
from tests.docs.conftest import Installation
from tests.docs.fences import DOCUMENTS, LANGUAGES, Block, blocks
from tests.docs.shapes import difference, like, shown_json
from tests.docs.shell import Shell

# With a whole installation: too long for the default run.
pytestmark = pytest.mark.long

EVERY = [block for file in DOCUMENTS for block in blocks(file)]
NOT_RUN = [block for block in EVERY if not block.runs]
# Set to the number that a run has printed, it repeats the order of its pages.
ORDER = "ALMANAC_PAGE_ORDER"
STATUS = re.compile(r"HTTP/[\d.]+ (\d+)")


def name(value: Any) -> str:
    return value.name if isinstance(value, Path) else f"{value.place} {value.info.get('reason', '')}"


@pytest.mark.parametrize("block", NOT_RUN, ids=name)
def test_example_that_is_not_run_has_a_reason(block: Block):
    assert len(block.info.get("reason", "").split()) > 1, f'{block.place} needs reason="..."'
    if block.language == "python":
        ast.parse(block.text)


def test_every_block_is_in_a_language_that_is_checked():
    assert len(EVERY) > 40
    assert {block.place: block.language for block in EVERY if block.language not in LANGUAGES} == {}


def test_no_indented_text_hides_a_call_from_these_tests():
    fenced = "\n".join(block.text for block in EVERY)
    for file in DOCUMENTS:
        for line in re.findall(r"^\s*(?:\$ )?curl .*", file.read_text(), re.MULTILINE):
            assert line.strip() in fenced, f"{file.name}: {line}"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("file", DOCUMENTS, ids=name)
def test_every_example_answers_as_shown(file: Path, installation: Installation, tmp_path: Path):
    if has_commands(file):
        installation.seed()
    run_page(file, installation.shell(tmp_path))


@pytest.mark.timeout(900)
def test_pages_can_be_read_in_any_order(
    new_installation: Installation,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
):
    """One reader pastes all pages into one installation; nothing is reset between them."""
    seed = os.environ.get(ORDER) or str(random.SystemRandom().randrange(10_000))
    pages = [file for file in DOCUMENTS if has_commands(file)]
    random.Random(seed).shuffle(pages)
    order = f"{ORDER}={seed}: {' '.join(map(name, pages))}"
    with capsys.disabled():
        sys.stderr.write(f"\nthe order of the pages by {order}\n")
    new_installation.seed()
    wrong = []
    for file in pages:
        try:
            run_page(file, new_installation.shell(tmp_path_factory.mktemp("terminal")))
        except (AssertionError, ValueError) as error:
            wrong.append(f"{name(file)}: {error}")
    assert not wrong, "\n\n".join([*wrong, order])


def has_commands(file: Path) -> bool:
    """Whether a page has blocks that are run in a shell."""
    return any(block.runs and block.language in ("sh", "python") for block in blocks(file))


def run_page(file: Path, shell: Shell) -> None:
    """Run the blocks of a page, from its top to its end."""
    for block in blocks(file):
        if not block.runs:
            continue
        if block.language == "json":
            shown_json(block.text)
        if block.language == "yaml":
            assert yaml.safe_load(block.text)
        elif block.language == "python":
            shell.run_python(block)
        elif block.language == "sh" and commands.only_checked(block):
            commands.check(block)
        elif block.language == "sh":
            run(block, shell)


def run(block: Block, shell: Shell) -> None:
    """Run a block; its calls succeed, or the last one fails as the block says."""
    printed, statuses = shell.run(block)
    wanted = block.info.get("status")
    failed = [status for status in statuses[: -1 if wanted else None] if status >= 400]
    assert not failed, f"{block.place} was refused: {failed} {printed}"
    assert wanted is None or statuses[-1] == int(wanted), f"{block.place}: {statuses} {printed}"
    if block.shown is not None:
        wrong = compare(block.shown, printed)
        assert wrong is None, f"{block.shown.place}: {wrong}"


def compare(shown: Block, printed: str) -> str | None:
    """The first difference between a shown and a real answer."""
    if shown.language == "json":
        return difference(shown_json(shown.text), json.loads(printed))
    if shown.language == "text":
        return None if like(shown.text.strip(), printed.strip()) else f"printed was {printed}"
    return compare_http(shown.text, printed)


def compare_http(shown: str, printed: str) -> str | None:
    """The first difference in the status line, some of the headers, and the body where there is one."""
    head, _, body = shown.partition("\n\n")
    real_head, _, real_body = printed.replace("\r", "").partition("\n\n")
    (status, *headers), (real_status, *real_headers) = head.splitlines(), real_head.splitlines()
    if STATUS.match(status)[1] != STATUS.match(real_status)[1]:  # type: ignore[index]
        return f"the status is {real_status}"
    for header in headers:
        if not any(like(header.lower(), each.lower()) for each in real_headers):
            return f"no {header!r} among {real_headers}"
    return difference(shown_json(body), json.loads(real_body)) if body.strip() else None
