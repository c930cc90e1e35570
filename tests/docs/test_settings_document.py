"""The generated table rows and `.env.example` lines of a declared setting."""

from __future__ import annotations

import re

import pytest

from app.docs_site import settings as document
from app.docs_site.settings import document as generated_document
from app.docs_site.settings import dotenv
from store.config.setting import raw_values, value_text
from workers.settings import SETTINGS


@pytest.fixture
def page() -> str:
    return document.DOCUMENT.read_text()


def row(text: str, name: str) -> list[str]:
    # A setting may also be in the table of the first ones to set, which has two columns.
    lines = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
    (line,) = [line for line in lines if line.count(" | ") > 1]
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize(
    ("name", "value", "default"),
    [
        ("ALMANAC_FANOUT_DEADLINE", "number, 0.1 to 120", "10"),
        ("ALMANAC_MAX_SLOTS", "whole number, at least 1", "1000000"),
        ("ALMANAC_LOG_LEVEL", "`debug`, `info`, `warning` or `error`", "`warning`"),
        ("ALMANAC_WEBHOOKS_ALLOW_PRIVATE", "`true` or `false`", "`false`"),
        ("ALMANAC_CORS_ORIGINS", "list", "none"),
        ("ALMANAC_DATABASE_URL", "text", "SQLite in the data folder"),
    ],
)
def test_a_row_shows_type_range_and_default(page, name, value, default):
    assert row(page, name)[1:3] == [value, default]


def test_the_row_of_a_secret_names_its_file(page):
    assert row(page, "ALMANAC_SECRET_KEY")[3].endswith("Secret; in a file: `ALMANAC_SECRET_KEY_FILE`")


def test_changed_row_is_regenerated_and_other_text_is_kept(page):
    edited = page.replace("whole number, at least 1 | 1000000", "whole number | 7")

    assert edited != page
    assert generated_document(edited) == page


def test_a_page_without_the_heading_of_a_section_is_an_error(page):
    with pytest.raises(ValueError, match="one table below the heading Flower"):
        generated_document(page.replace("## Flower\n", "## Flowers\n"))


def test_example_has_every_setting_that_compose_does_not_set():
    text = dotenv(document.DOTENV.read_text())

    offered = set(re.findall(r"^# (ALMANAC_\w+)=", text, re.MULTILINE))
    assert offered == {setting.name for setting in SETTINGS if setting.in_dotenv}


def test_the_example_needs_both_markers():
    with pytest.raises(ValueError, match="two lines"):
        dotenv("# ALMANAC_BUSY_TTL=60\n")


def test_every_default_is_a_valid_value(monkeypatch):
    for setting in SETTINGS:
        monkeypatch.delenv(setting.file_variable, raising=False)
        monkeypatch.setenv(setting.name, value_text(setting.default))

    assert raw_values(SETTINGS) == {each.name: each.default for each in SETTINGS}
