"""The version of the package. hatchling runs this file by itself, so it imports nothing of the project."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

# The version that is being worked on; a release raises it.
NEXT = "1.1.0"
# Names the version of a build that has no repository, as that of the image.
RELEASE = "RELEASE_VERSION"

ROOT = Path(__file__).parents[2]


def version(root: Path = ROOT) -> str:
    """``RELEASE_VERSION``; else the tag of the commit, such as v1.1.0; else the next version with ``.dev0``.

    So a commit without a tag never has the version of a release.
    """
    return (os.environ.get(RELEASE) or _tag(root)).removeprefix("v") or f"{NEXT}.dev0"


def _tag(root: Path) -> str:
    """The tag of the commit that is checked out; empty without a tag, a repository or git."""
    # Only the repository of this folder: its files may be inside the repository of another project.
    command = ["git", f"--git-dir={root / '.git'}", "describe", "--tags", "--exact-match"]
    try:
        found = subprocess.run([*command, "--match", "v[0-9]*"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return found.stdout.strip()
