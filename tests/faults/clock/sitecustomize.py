"""Shifts the wall clock of this process by the seconds in a file; the monotonic clock stays.

Python runs this module at its start when the folder is on ``PYTHONPATH``.
"""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import time_machine

# Seconds between two reads of the file.
LOOK = 0.02


def _follow(file: Path, moved: time_machine.Traveller) -> None:
    offset = 0.0
    while True:
        # An empty file is about to be written.
        wanted = float(file.read_text() or offset)
        if wanted != offset:
            moved.shift(wanted - offset)
            offset = wanted
        time.sleep(LOOK)


if _file := os.environ.get("TESTS_CLOCK_OFFSET"):
    _moved = time_machine.travel(datetime.now(UTC), tick=True).start()
    # The clock begins to tick when it is first read.
    time.time()
    threading.Thread(target=_follow, args=(Path(_file), _moved), daemon=True).start()
