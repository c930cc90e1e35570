"""The data folder of the embedded default. It is private: it holds email addresses and encrypted tokens."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from store.config.setting import SettingsError

log = logging.getLogger(__name__)

# What Almanac writes into the folder, by the start of the name; the first two at its first start.
STARTED = ("almanac.db", "secrets")
OWN = (*STARTED, "redis.", "beat-schedule")
OTHERS = 0o077
# sockaddr_un holds 108 bytes on Linux and 104 on macOS.
MAX_SOCKET_PATH = 100


def make_data_dir(folder: Path) -> None:
    """Create the data folder for its owner only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def socket_path(folder: Path) -> Path:
    """A socket in the data folder, or in the temporary folder if the data folder's path is too long."""
    inside = folder.resolve() / "redis.sock"
    if len(str(inside)) <= MAX_SOCKET_PATH:
        return inside
    name = hashlib.sha256(str(inside).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"almanac-{name}.sock"


def secrets_file(folder: Path) -> Path:
    """The file with the secret key in its first line, and the encryption keys in its second."""
    return folder / "secrets"


def stored_secrets(folder: Path, new: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """The two lines of the file with the secrets; ``new`` makes them for the first start.

    :raise SettingsError: if the file has other than two lines
    """
    file = secrets_file(folder)
    if not file.exists():
        make_data_dir(folder)
        _write_once(file, "\n".join(new()))
    # Editors add an empty line.
    lines = [line.strip() for line in file.read_text().splitlines() if line.strip()]
    if len(lines) != 2:
        raise SettingsError(f"{file} must have two lines: the secret key, and the encryption keys by commas")
    return lines[0], lines[1]


def _write_once(file: Path, text: str) -> None:
    """Create ``file`` atomically, readable by its owner only. The first of several writers wins."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent) as draft:
        draft.write(text)
        draft.flush()
        with contextlib.suppress(FileExistsError):
            os.link(draft.name, file)


def make_private(folder: Path) -> None:
    """Create the data folder, or remove the access of others to an existing one and to our files in it.

    Files that this process and its children create from now on are private too. A folder with files that
    are not ours keeps its mode: other programs use it.
    """
    os.umask(OTHERS)
    make_data_dir(folder)
    entries = list(folder.iterdir())
    own = [entry for entry in entries if entry.name.startswith(OWN)]
    if len(own) == len(entries):
        own.append(folder)
    # Sockets need no own mode, and links lead elsewhere.
    changed = [entry for entry in own if _is_open(entry)]
    for entry in changed:
        try:
            entry.chmod(stat.S_IMODE(entry.stat().st_mode) & ~OTHERS)
        except OSError as error:
            log.warning("others can read %s, and its mode cannot be changed: %s", entry, error.strerror)
        else:
            log.warning("access of other users removed: %s", entry)


def _is_open(entry: Path) -> bool:
    mode = entry.lstat().st_mode
    return (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and bool(mode & OTHERS)
