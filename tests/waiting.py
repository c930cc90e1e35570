"""Waiting for what others do: it comes when it comes, and a busy machine may take its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

# Seconds: a test with two such waits still says which of them was in vain.
PATIENCE = 50.0


def until(
    holds: Callable[[], Any], patience: float = PATIENCE, *, meanwhile: Callable[[], object] = lambda: None
) -> Any:
    """What ``holds`` answers as soon as it is true; fails when it never is."""
    give_up = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < give_up, "it does not come to pass"
        meanwhile()
        time.sleep(0.05)
    return found
