"""Processes under measurement: their children, memory and processor time."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tests.installation.processes import Process, family

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(processes: Iterable[Process]) -> float | None:
    """Processor time that processes and their living children have used; None where /proc is missing."""
    try:
        return sum(_ticks(each) for process in processes for each in family(process.pid)) / TICKS
    except OSError:
        return None


def memory(pid: int) -> dict[str, int] | None:
    """``Rss`` and ``Pss`` of one process in bytes; None where the system does not show it."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return None
    sizes = {line.partition(":")[0]: line.partition(":")[2] for line in lines}
    return {name: int(sizes[name].split()[0]) * 1024 for name in ("Rss", "Pss")}


def _ticks(pid: int) -> int:
    # The name in brackets may hold spaces; user and system time are the 14th and 15th field.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
