"""The settings of log format and log level."""

from __future__ import annotations

import logging

import pytest

from store.config.log_settings import LEVEL, LogSettings, read_log_settings
from store.config.settings import SettingsError

FORMAT = "ALMANAC_LOG_FORMAT"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in (FORMAT, LEVEL):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)


def test_the_default_is_text_at_level_warning():
    assert read_log_settings() == LogSettings("text", logging.WARNING)


def test_format_and_level_are_accepted_in_any_case(monkeypatch):
    monkeypatch.setenv(FORMAT, "JSON")
    monkeypatch.setenv(LEVEL, "Debug")

    assert read_log_settings() == LogSettings("json", logging.DEBUG)


@pytest.mark.parametrize(("name", "words"), [(FORMAT, "text, json"), (LEVEL, "debug, info, warning, error")])
def test_an_unknown_choice_is_rejected_with_the_list_of_choices(monkeypatch, name, words):
    monkeypatch.setenv(name, "loud")

    with pytest.raises(SettingsError, match=f"{name} must be one of {words}"):
        read_log_settings()


def test_both_can_be_in_files(monkeypatch, tmp_path):
    for name, value in ((FORMAT, "json"), (LEVEL, "debug")):
        file = tmp_path / name
        file.write_text(f"{value}\n")
        monkeypatch.setenv(f"{name}_FILE", str(file))

    assert read_log_settings() == LogSettings("json", logging.DEBUG)


@pytest.mark.parametrize("name", [FORMAT, LEVEL])
def test_a_file_that_cannot_be_read_is_named(monkeypatch, tmp_path, name):
    monkeypatch.setenv(f"{name}_FILE", str(tmp_path / "nowhere"))

    with pytest.raises(SettingsError, match=f"{name}_FILE: .*nowhere cannot be read"):
        read_log_settings()


def test_files_of_other_settings_are_not_checked(monkeypatch, tmp_path):
    # `almanac keys secrets` writes such files, and must start before they exist.
    monkeypatch.setenv("ALMANAC_SECRET_KEY_FILE", str(tmp_path / "nowhere"))

    assert read_log_settings() == LogSettings()
