"""The files with the containers' secrets."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from tests.app.cli.test_commands import almanac
from workers.settings import read_settings

NAMES = {"secret_key", "encryption_keys", "flower_password", "postgres_password", "database_url"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "secrets"


def test_secrets_are_created_once_with_private_permissions(folder, tmp_path):
    result = almanac("keys", "secrets", "--to", str(folder), data=tmp_path)

    assert result.exit_code == 0, result.stderr
    assert {file.name for file in folder.iterdir()} == NAMES
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    # The containers run as users that do not exist on this host.
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o444}
    values = {file.name: file.read_text() for file in folder.iterdir()}
    assert not any(value in result.output for value in values.values())
    assert len(set(values.values())) == len(NAMES)


def test_the_settings_accept_the_secrets(folder, tmp_path, monkeypatch):
    almanac("keys", "secrets", "--to", str(folder), data=tmp_path)
    for name in NAMES - {"postgres_password"}:
        monkeypatch.setenv(f"ALMANAC_{name.upper()}_FILE", str(folder / name))

    settings = read_settings()

    url = make_url(settings.database_url)
    assert (url.username, url.host, url.database) == ("almanac", "postgres", "almanac")
    assert url.password == (folder / "postgres_password").read_text()
    assert settings.flower_password == (folder / "flower_password").read_text()


def test_existing_secrets_are_kept(folder, tmp_path):
    almanac("keys", "secrets", "--to", str(folder), data=tmp_path)
    kept = {file.name: file.read_text() for file in folder.iterdir()}
    (folder / "flower_password").unlink()

    again = almanac("keys", "secrets", "--to", str(folder), data=tmp_path)
    third = almanac("keys", "secrets", "--to", str(folder), data=tmp_path)

    assert again.stdout == f"Written to {folder}: flower_password\n"
    now = {file.name: file.read_text() for file in folder.iterdir()}
    assert {name for name in NAMES if now[name] != kept[name]} == {"flower_password"}
    assert third.stdout == f"{folder} has all of them already\n"


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o701])
def test_a_folder_that_other_users_can_enter_is_refused(folder, tmp_path, mode):
    folder.mkdir()
    folder.chmod(mode)

    refused = almanac("keys", "secrets", "--to", str(folder), data=tmp_path)

    assert refused.exit_code == 1
    assert f"run chmod 700 {folder}" in refused.stderr
    assert not list(folder.iterdir())
