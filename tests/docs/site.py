"""The built documentation site, for tests that look at its pages."""

from __future__ import annotations

import fcntl
import subprocess
import sys

from tests.docs.fences import ROOT


def build() -> None:
    """Build the site unless it is newer than its sources; of several test processes one builds it."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build/docs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_outdated():
            command = [sys.executable, str(ROOT / "docs/site/build.py")]
            subprocess.run(command, check=True, capture_output=True)


def _is_outdated() -> bool:
    site = ROOT / "build/site/index.html"
    sources = [ROOT / "mkdocs.yml", *(file for file in (ROOT / "docs").rglob("*") if file.is_file())]
    return not site.is_file() or max(file.stat().st_mtime for file in sources) > site.stat().st_mtime
