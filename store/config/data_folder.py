"""Keeps the data folder of the embedded default private: it holds email addresses and encrypted tokens."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from store.config.settings import make_data_dir

log = logging.getLogger(__name__)

# What Almanac writes into the folder, by the start of the name.
OWN = ("almanac.db", "secrets", "redis.", "beat-schedule")
OTHERS = 0o077


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
