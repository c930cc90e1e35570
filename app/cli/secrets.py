"""Generates the secrets for docker-compose.yml, each in its own file."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from store.config.settings import new_secrets

# The containers run as users that do not exist on this host, so the files are readable for all users.
# The folder's mode keeps other users of this host out.
FOLDER_MODE = 0o700
FILE_MODE = 0o444


class OpenFolder(Exception):
    """Other users can enter the folder; the message says how to fix it."""


def write(folder: Path) -> list[str]:
    """Generate the secrets whose files do not exist yet; returns the names of the new files.

    :raise OpenFolder: if other users can enter the folder; nothing is written then
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
        # ``os.open`` has applied the umask to the mode.
        os.fchmod(descriptor, FILE_MODE)
        opened.write(value)
    return True
