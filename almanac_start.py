"""The command ``almanac``: checks that Python finds this installation's packages, then runs the command line.

The packages have common names. If another project has a package ``app`` too, Python could import parts of
both: this says so instead. The module has a name of its own, so that Python finds at least this one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("app", "workers", "scheduling", "providers", "store")

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run the command line; exits with one line for each package that is not ours."""
    if errors := list(collisions()):
        sys.exit("\n".join(errors))
    from app.cli.main import main as command_line

    command_line()


def collisions() -> Iterator[str]:
    """One sentence for each package of this installation that Python would import from elsewhere."""
    for name in PACKAGES:
        spec = find_spec(name)
        found = Path(spec.origin).resolve() if spec and spec.origin else None
        if found != HERE / name / "__init__.py":
            yield (
                f"Error: Almanac's package {name} is in {HERE / name}, and Python would import "
                f"{found or 'none'}. Install Almanac into an environment of its own (pipx install, or a "
                "virtual environment), and remove the other folder from PYTHONPATH"
            )
