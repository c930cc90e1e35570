"""Settings that are kept in files: each has its own, and one that is wrong is named."""

from __future__ import annotations

import os
import re
from dataclasses import fields
from pathlib import Path

import pytest

from store.config.settings import ProviderSettings, Settings, SettingsError, new_secrets, read_settings

NAMES = ("DATABASE_URL", "REDIS_URL", "BROKER_URL", "SECRET_KEY", "GOOGLE_CLIENT_SECRET", "FLOWER_PASSWORD")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ALMANAC_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Keep a setting in a file."""

    def put(name: str, text: str) -> Path:
        file = tmp_path / name.lower()
        file.write_text(text)
        monkeypatch.setenv(f"ALMANAC_{name}_FILE", str(file))
        return file

    return put


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", " \n\n"])
def test_what_a_file_holds_counts_as_if_the_variable_held_it(put, monkeypatch, ending):
    secret, encryption = new_secrets()
    values = {
        "DATABASE_URL": "postgresql://almanac:planted@db/almanac",
        "REDIS_URL": "redis://:planted@cache/0",
        "SECRET_KEY": secret,
        "ENCRYPTION_KEYS": f"{encryption},{new_secrets()[1]}",
        "GOOGLE_CLIENT_SECRET": "planted-client",
        "FLOWER_PASSWORD": "planted-flower",
        "FANOUT_DEADLINE": "7.5",
    }
    for name, value in values.items():
        monkeypatch.setenv(f"ALMANAC_{name}", value)
    by_variables = read_settings()
    for name, value in values.items():
        monkeypatch.delenv(f"ALMANAC_{name}")
        put(name, f"{value}{ending}")

    by_files = read_settings()

    assert by_files == by_variables
    assert by_files.fanout_deadline_seconds == 7.5
    assert "planted" not in repr(by_files)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_is_not_there_is_named_with_its_variable(monkeypatch, tmp_path, name):
    monkeypatch.setenv(f"ALMANAC_{name}_FILE", str(tmp_path / "nowhere"))

    with pytest.raises(SettingsError, match=rf"ALMANAC_{name}_FILE: {tmp_path}/nowhere cannot be read"):
        read_settings(tmp_path)


def test_a_folder_in_the_place_of_a_file_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("ALMANAC_SECRET_KEY_FILE", str(tmp_path))

    with pytest.raises(SettingsError, match="cannot be read"):
        read_settings(tmp_path)


@pytest.mark.parametrize("empty", ["", "\n", "  \n"])
def test_an_empty_file_does_not_count_as_not_set(put, tmp_path, empty):
    # Without the address of a database everything would go into the embedded one.
    put("DATABASE_URL", empty)

    with pytest.raises(SettingsError, match=r"ALMANAC_DATABASE_URL_FILE: .* is empty"):
        read_settings(tmp_path)


def test_a_file_of_several_lines_is_refused_without_showing_them(put, tmp_path):
    put("SECRET_KEY", "planted-one\nplanted-two\n")

    with pytest.raises(SettingsError, match="on one line") as refused:
        read_settings(tmp_path)
    assert "planted" not in str(refused.value)


def test_a_file_that_is_no_text_is_refused(put, tmp_path):
    put("SECRET_KEY", "").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(SettingsError, match=r"ALMANAC_SECRET_KEY_FILE: .* is not text"):
        read_settings(tmp_path)


def test_a_variable_and_its_file_do_not_compete(put, monkeypatch, tmp_path):
    put("SECRET_KEY", "planted-file")
    monkeypatch.setenv("ALMANAC_SECRET_KEY", "planted-variable")

    with pytest.raises(SettingsError, match="ALMANAC_SECRET_KEY and ALMANAC_SECRET_KEY_FILE") as refused:
        read_settings(tmp_path)
    assert "planted" not in str(refused.value)


def test_an_empty_variable_beside_a_file_is_none(put, monkeypatch, tmp_path):
    put("SECRET_KEY", "from-a-file")
    monkeypatch.setenv("ALMANAC_SECRET_KEY", "")

    assert read_settings(tmp_path).secret_key == "from-a-file"


def test_what_is_refused_in_a_file_is_refused_in_the_words_of_its_setting(put, tmp_path):
    put("FANOUT_DEADLINE", "soon")

    with pytest.raises(SettingsError, match="ALMANAC_FANOUT_DEADLINE"):
        read_settings(tmp_path)


def test_every_setting_that_hides_itself_is_documented_with_its_file():
    known = (*fields(Settings), *fields(ProviderSettings))
    hidden = {each.name.upper() for each in known if not each.repr}
    document = (Path(__file__).parents[3] / "docs/settings.md").read_text()

    assert hidden
    assert hidden <= set(re.findall(r"`ALMANAC_(\w+)_FILE`", document))
