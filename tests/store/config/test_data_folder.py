"""The data folder of the embedded default is private, also one that an older version has made."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from store.config.data_folder import make_private


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    for name in ("almanac.db", "almanac.db-wal", "redis.log"):
        (folder / name).touch(mode=0o644)
    return folder


def test_an_open_folder_and_its_files_become_private_and_that_is_logged(older, caplog):
    make_private(older)
    assert (mode(older), {mode(each) for each in older.iterdir()}) == (0o700, {0o600})
    assert f"access of other users removed: {older}" in caplog.text
    caplog.clear()
    make_private(older)
    assert caplog.text == ""


def test_files_that_are_created_later_are_private(tmp_path):
    make_private(tmp_path / "new")
    (tmp_path / "new" / "almanac.db").touch()
    assert (mode(tmp_path / "new"), mode(tmp_path / "new" / "almanac.db")) == (0o700, 0o600)


def test_a_folder_that_others_use_keeps_its_mode(older):
    foreign = older / "website"
    foreign.touch(mode=0o644)
    make_private(older)
    assert (mode(older), mode(foreign), mode(older / "almanac.db")) == (0o755, 0o644, 0o600)
