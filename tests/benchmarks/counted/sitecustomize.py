"""Counts SQL statements: one byte for each in the file ``BENCH_STATEMENTS``.

Python imports this module at the start of every process whose ``PYTHONPATH`` has this folder.
"""

from __future__ import annotations

import os

from sqlalchemy import event
from sqlalchemy.engine import Engine

_file = os.open(os.environ["BENCH_STATEMENTS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


@event.listens_for(Engine, "before_cursor_execute")
def _count(*_: object) -> None:
    os.write(_file, b".")
