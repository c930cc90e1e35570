"""The secrets that docker-compose.yml gives to its containers, made once, each in a file of its own."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from store.config.settings import new_secrets

# The containers' users are nobody's on this host: the folder keeps others out, the files let them in.
FOLDER_MODE = 0o700
FILE_MODE = 0o444


class OpenFolder(Exception):
    """Others can enter the folder; the message says how to mend it."""


def write(folder: Path) -> list[str]:
    """Make the secrets that are not there yet; returns the names of their files.

    :raise OpenFolder: before anything is written
    """
    folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        raise OpenFolder(f"Others can enter {folder}: run chmod 700 {folder} first")
    secret_key, encryption_key = new_secrets()
    fresh = {
        "secret_key": secret_key,
        "encryption_keys": encryption_key,
        "flower_password": secrets.token_urlsafe(24),
        "postgres_password": secrets.token_urlsafe(24),
    }
    written = [name for name, value in fresh.items() if _write_once(folder / name, value)]
    password = (folder / "postgres_password").read_text()
    if _write_once(folder / "database_url", f"postgresql://almanac:{password}@postgres/almanac"):
        written.append("database_url")
    return written


def _write_once(file: Path, value: str) -> bool:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return False
    with open(descriptor, "w") as opened:
        # Whatever the umask says.
        os.fchmod(descriptor, FILE_MODE)
        opened.write(value)
    return True
