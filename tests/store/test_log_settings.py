"""How a process is told to log."""

from __future__ import annotations

import logging

import pytest

from store.log_settings import LEVEL, LogSettings, read_log_settings
from store.settings import SettingsError

FORMAT = "ALMANAC_LOG_FORMAT"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in (FORMAT, LEVEL):
        monkeypatch.delenv(name, raising=False)


def test_without_settings_it_is_text_from_warnings_on():
    assert read_log_settings() == LogSettings("text", logging.WARNING)


def test_format_and_level_are_words_in_any_case(monkeypatch):
    monkeypatch.setenv(FORMAT, "JSON")
    monkeypatch.setenv(LEVEL, "Debug")

    assert read_log_settings() == LogSettings("json", logging.DEBUG)


@pytest.mark.parametrize(("name", "words"), [(FORMAT, "text, json"), (LEVEL, "debug, info, warning, error")])
def test_another_word_is_refused_with_those_that_are_taken(monkeypatch, name, words):
    monkeypatch.setenv(name, "loud")

    with pytest.raises(SettingsError, match=f"{name} must be one of {words}"):
        read_log_settings()
