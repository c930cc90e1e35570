"""Half-open stretches of time as packed arrays: one owner's, or many owners' laid flat."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Milliseconds since 1970 in UTC: the resolution of the timestamps we answer with.
Times = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Stretches of time, ``starts[i]`` included and ``ends[i]`` not, in UTC milliseconds."""

    starts: Times
    ends: Times

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Intervals:
        """Pack pairs as they come: nothing is sorted, merged or dropped."""
        rows = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        return cls(rows[:, 0].copy(), rows[:, 1].copy())

    def __len__(self) -> int:
        return int(self.starts.size)

    def pairs(self) -> list[tuple[int, int]]:
        """As plain pairs, for tests, messages and small answers."""
        return list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Intervals of many owners laid flat: owner ``i`` has the rows ``offsets[i]:offsets[i + 1]``."""

    starts: Times
    ends: Times
    offsets: Times

    def __len__(self) -> int:
        return int(self.offsets.size) - 1
