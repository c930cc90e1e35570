"""The Celery app of production, with a leak: for ``celery -A tests.workers.growing``."""

from __future__ import annotations

from workers.main import celery

__all__ = ["celery"]

_kept: list[bytearray] = []


@celery.task(name="upkeep.grow", ignore_result=True)
def grow(*, mebibytes: int) -> None:
    """Hold so much more, for ever."""
    # Filled: what nobody has written to takes no memory.
    _kept.append(bytearray(b"x" * (mebibytes * 2**20)))
