"""Slots that several members share: at each start, enough members of every group are free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduling.intervals import Indexes
from scheduling.query import Slots


@dataclass(frozen=True, slots=True, eq=False)
class Requirement:
    """At least ``required`` of ``members`` have to be free; members are indexes without repetition."""

    members: Indexes
    required: int


def shared(
    found: Slots, requirements: Sequence[Requirement], members: int, limit: int | None = None
) -> Slots:
    """The slots of ``found`` at the starts that meet every requirement.

    ``found`` has the slots of ``members`` members. Its query aligns to the clock: slots of different members
    are on one grid then. ``limit`` is the maximum number of starts, earliest first.
    """
    firsts = found.firsts()
    enough = np.ones(firsts.size, dtype=bool)
    for requirement in requirements:
        counts = np.zeros(members, np.int64)
        counts[requirement.members] = 1
        # The number of these members that have a slot at each start.
        free = np.add.reduceat(counts.take(found.members), firsts) if firsts.size else firsts
        enough &= free >= requirement.required
    if limit is not None:
        enough[enough.nonzero()[0][limit:]] = False
    rows = enough.repeat(np.append(firsts, len(found))[1:] - firsts).nonzero()[0]
    return Slots(found.starts.take(rows), found.members.take(rows), found.duration)
