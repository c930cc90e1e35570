"""Logging, set up once by each command."""

from __future__ import annotations

import logging
import sys


def configure(name: str, *, verbose: bool = False) -> None:
    """Log lines of ``name`` to standard error."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format=f"%(asctime)s {name} %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
        force=True,
    )
