"""How often Python's cyclic garbage collector runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Net new objects before a collection in a web process. A large organization's answer allocates many objects,
# none of them garbage: with Python's default of 700, a tenth of the time went into collections.
OF_ANSWERS = 20_000
# The same in a worker. A job allocates few objects, but SQL statements and errors leave reference cycles:
# 3 MiB at this threshold.
OF_JOBS = 5_000
# A collection of the middle generation follows when more young ones have run. With Python's default of 10,
# requests and statements left several MiB of cycles, some of them for a quarter of an hour.
YOUNG_COLLECTIONS = 1


@contextmanager
def without_collections() -> Iterator[None]:
    """Context for imports, which make many objects and no garbage: collections took a tenth of the start."""
    gc.disable()
    try:
        yield
    finally:
        # Exempt them: later collections would visit them all.
        gc.freeze()
        gc.enable()


def collect_seldom(objects: int) -> None:
    """Exempt all objects that a process has loaded at its start from collection, and collect less often.

    ``objects`` is the threshold of the young generation.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(objects, YOUNG_COLLECTIONS)
