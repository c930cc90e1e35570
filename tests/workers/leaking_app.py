"""The Celery app of production with a memory leak, for ``celery -A tests.workers.leaking_app``."""

from __future__ import annotations

from workers.main import celery

__all__ = ["celery"]

_kept: list[bytearray] = []


@celery.task(name="upkeep.grow", ignore_result=True)
def grow(*, mebibytes: int) -> None:
    """Allocate memory and keep it."""
    # Filled, because pages that were never written to take no memory.
    _kept.append(bytearray(b"x" * (mebibytes * 2**20)))
