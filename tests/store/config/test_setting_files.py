"""Settings in files: the ``_FILE`` variables, and error messages that name a file that cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store.config.settings import LogSettings, SettingsError, new_secrets, read_log_settings
from tests import certificates
from workers.settings import read_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ALMANAC_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def put(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Write a setting to a file, and set its ``_FILE`` variable."""

    def put(name: str, text: str) -> Path:
        file = tmp_path / name.lower()
        file.write_text(text)
        monkeypatch.setenv(f"ALMANAC_{name}_FILE", str(file))
        return file

    return put


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", " \n\n"])
def test_a_file_has_the_effect_of_the_variable(put, monkeypatch, ending):
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


@pytest.mark.parametrize("name", ["DATABASE_URL", "LOG_FORMAT", "GOOGLE_CLIENT_SECRET"])
def test_a_missing_file_is_named_with_its_variable(monkeypatch, tmp_path, name):
    monkeypatch.setenv(f"ALMANAC_{name}_FILE", str(tmp_path / "nowhere"))

    with pytest.raises(SettingsError, match=rf"ALMANAC_{name}_FILE: {tmp_path}/nowhere cannot be read"):
        read_settings(tmp_path)


@pytest.mark.parametrize("empty", ["", "\n", "  \n"])
def test_an_empty_file_is_an_error(put, tmp_path, empty):
    # Treated as "not set", it would select the embedded database.
    put("DATABASE_URL", empty)

    with pytest.raises(SettingsError, match=r"ALMANAC_DATABASE_URL_FILE: .* is empty"):
        read_settings(tmp_path)


def test_a_file_of_several_lines_is_rejected_without_showing_them(put, tmp_path):
    put("SECRET_KEY", "planted-one\nplanted-two\n")

    with pytest.raises(SettingsError, match="on one line") as refused:
        read_settings(tmp_path)
    assert "planted" not in str(refused.value)


def test_a_binary_file_is_rejected(put, tmp_path):
    put("SECRET_KEY", "").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(SettingsError, match=r"ALMANAC_SECRET_KEY_FILE: .* is not text"):
        read_settings(tmp_path)


def test_a_variable_and_its_file_together_are_rejected(put, monkeypatch, tmp_path):
    put("SECRET_KEY", "planted-file")
    monkeypatch.setenv("ALMANAC_SECRET_KEY", "planted-variable")

    with pytest.raises(SettingsError, match="ALMANAC_SECRET_KEY and ALMANAC_SECRET_KEY_FILE") as refused:
        read_settings(tmp_path)
    assert "planted" not in str(refused.value)


def test_a_file_is_read_if_its_variable_is_empty(put, monkeypatch, tmp_path):
    put("SECRET_KEY", "from-a-file")
    monkeypatch.setenv("ALMANAC_SECRET_KEY", "")

    assert read_settings(tmp_path).secret_key == "from-a-file"


def test_log_settings_do_not_need_the_files_of_others(monkeypatch, tmp_path):
    # `almanac keys secrets` writes such files, and must start before they exist.
    monkeypatch.setenv("ALMANAC_SECRET_KEY_FILE", str(tmp_path / "nowhere"))

    assert isinstance(read_log_settings(), LogSettings)


def test_a_certificate_is_a_file_of_several_lines(monkeypatch, tmp_path):
    pem = "".join(certificates.of_application())
    file = tmp_path / "almanac.pem"
    file.write_text(pem)
    monkeypatch.setenv("ALMANAC_MICROSOFT_CLIENT_CERTIFICATE_FILE", str(file))

    settings = read_settings(tmp_path)

    assert settings.providers.of("microsoft")["client_certificate"] == pem.strip()
    assert "PRIVATE" not in repr(settings)


def test_a_file_that_is_no_certificate_is_named_and_not_repeated(monkeypatch, tmp_path):
    file = tmp_path / "almanac.pem"
    file.write_text("planted\nlines")
    monkeypatch.setenv("ALMANAC_MICROSOFT_CLIENT_CERTIFICATE_FILE", str(file))

    with pytest.raises(SettingsError, match="ALMANAC_MICROSOFT_CLIENT_CERTIFICATE must hold") as refused:
        read_settings(tmp_path)
    assert "planted" not in str(refused.value)
