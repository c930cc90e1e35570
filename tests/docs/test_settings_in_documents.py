"""Every default and every range that a document gives for a setting is the declared one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.docs_site.settings import DOCUMENT, DOTENV, document, dotenv
from store.config.setting import value_text
from tests.docs.fences import DOCUMENTS, ROOT
from tests.live import credentials as live
from workers.settings import GROUPS

DECLARED = {setting.name: setting for _, group in GROUPS for setting in group}
# Variables that are no settings: those of compose, of traces, and examples of what was removed.
NOT_DECLARED = {
    *("ALMANAC_WORKER_MEMORY", "ALMANAC_WEBHOOK_SECRET", "ALMANAC_URL", "ALMANAC_API_KEY"),
    *("ALMANAC_EXAMPLES", "ALMANAC_PUSH_AUDIT", "ALMANAC_PAGE_ORDER"),
}
OTHERS = ("CHANGELOG.md", "CONTRIBUTING.md", "docker-compose.yml", ".env.example")
TEXTS = [*DOCUMENTS, *(ROOT / each for each in OTHERS)]

# Durations that the documents write in words.
_WORDS = {
    "a minute": 60,
    "ten minutes": 600,
    "an hour": 3600,
    "six hours": 21600,
}
_TOLD = re.compile(r"`(ALMANAC_\w+)` \(([^()]*)\)")
# `366 days (`ALMANAC_...`)`.
_NUMBER = re.compile(r"(?<!and )(?<!\d)(\d[\d ]*)(?: [a-z]+){0,4} \(`(ALMANAC_\w+)`\)")
_UNLESS = re.compile(r"`(ALMANAC_\w+)`[^`|]{0,40}?, (\d+) unless")


def told() -> Iterator[tuple[str, str, str]]:
    """Each default that a sentence gives: `` `ALMANAC_X` (a minute) `` and the like."""
    for file in DOCUMENTS:
        if "engineering" in file.parts:
            continue
        text, place = " ".join(file.read_text().split()), str(file.relative_to(ROOT))
        yield from ((place, name, words) for name, words in _TOLD.findall(text) if words in _WORDS)
        yield from ((place, name, number.replace(" ", "")) for number, name in _NUMBER.findall(text))
        yield from ((place, name, number) for name, number in _UNLESS.findall(text))


def test_the_tables_are_the_ones_of_the_declaration():
    assert document(DOCUMENT.read_text()) == DOCUMENT.read_text()
    assert dotenv(DOTENV.read_text()) == DOTENV.read_text()


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(Path(file).relative_to(ROOT)))
def test_every_setting_that_a_document_names_is_declared(file):
    named = set(re.findall(r"\b(ALMANAC_[A-Z_]+[A-Z])\b", file.read_text()))

    # The credentials of the live tests are no settings either.
    settings = {name.removesuffix("_FILE") for name in named if not name.startswith(live.PREFIX)}
    assert settings - DECLARED.keys() - NOT_DECLARED == set()


@pytest.mark.parametrize(("file", "name", "text"), list(told()))
def test_a_default_in_a_sentence_is_the_declared_one(file, name, text):
    default = value_text(DECLARED[name].default)
    meant = _WORDS.get(text, text)

    assert float(default) == float(meant), f"{file} says {text} of {name}, which is {default}"


def test_the_pauses_between_attempts_are_the_declared_ones():
    text = " ".join((ROOT / "docs/reference/webhooks.md").read_text().split())
    (pauses,) = re.findall(r"are about ([^()]*) \(`ALMANAC_WEBHOOKS_RETRY_SECONDS`\)", text)
    seconds = {"s": 1, "min": 60, "h": 3600}

    shown = tuple(int(number) * seconds[unit] for number, unit in re.findall(r"(\d+) (s|min|h)\b", pauses))
    assert shown == DECLARED["ALMANAC_WEBHOOKS_RETRY_SECONDS"].default


def test_the_defaults_in_tables_are_the_declared_ones():
    """Tables of other documents with the columns setting and default."""
    for file in DOCUMENTS:
        rows = r"^\| `(ALMANAC_\w+)` \| (`[^`|]*`|none|[\d.]+) \|"
        for row in re.findall(rows, file.read_text(), re.MULTILINE):
            name, shown = row
            if file != DOCUMENT:
                default = value_text(DECLARED[name].default) or "none"
                assert shown.strip("`") == default, f"{file.name}: {name}"
