"""How often Python looks for garbage that refers to itself."""

from __future__ import annotations

import gc

# Objects made before it looks. A large organization's answer makes so many that nothing is garbage of, that
# with Python's own 700 a tenth of its time went into looking.
OF_ANSWERS = 20_000
# A job makes few, and statements and failures leave some that refer to themselves: 3 MiB with as many.
OF_JOBS = 5_000
# Looks at what is new, and then one at what was in use during those. With Python's own 10, what requests and
# statements leave behind was several MiB, some of it for a quarter of an hour.
LOOKS = 1


def collect_seldom(objects: int) -> None:
    """For a process that has just started: what it has loaded stays, and is not looked at again.

    ``objects`` may be made before each look.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(objects, LOOKS)
