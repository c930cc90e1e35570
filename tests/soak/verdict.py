"""The rules by which a run and each of its processes pass; the document is written by them too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import linear_regression

from tests.soak.faults import SHARE
from tests.soak.measures import MIB, PAUSE, Sample
from tests.soak.records import Records

# The growth of a process in MiB a minute that still counts as flat: while its modules, caches and
# connections still fill up, and when the second half began with all of them full.
FLAT, LEVEL = 1.0, 0.2
# Seconds under load after which a process is fully warm.
FILLED = 15 * 60.0
# Minutes once everything is warm. A shorter time shows no growth.
LEAST = 1.5
# Files and threads that may be more at rest than they were under load: kept connections come and go.
MORE = 8
# The share of answers that may be named as failed: the share of calls with a fault. Few answers need
# more than one call, and retries and the cache spare most: beyond it, one fault has failed several answers.
BUDGET = SHARE


@dataclass(frozen=True)
class Process:
    """The samples of one process, from when it ``began``: warm and under load, then at ``rest``."""

    name: str
    began: float
    loaded: list[Sample]
    rest: Sample

    @property
    def growth(self) -> float:
        """MiB a minute, by least squares."""
        return slope([(each.at, each.memory) for each in self.loaded])

    @property
    def growth_later(self) -> float:
        """The same in the second half: warming up slows down, and a leak does not."""
        return slope([(each.at, each.memory) for each in self._later])

    @property
    def _later(self) -> list[Sample]:
        return self.loaded[len(self.loaded) // 2 :]

    @property
    def busy(self) -> float:
        """The share of one processor that it used under load."""
        first, last = self.loaded[0], self.loaded[-1]
        return (last.worked - first.worked) / max(last.at - first.at, PAUSE)

    @property
    def is_long_enough(self) -> bool:
        """Whether the time was long enough to judge growth."""
        return self.loaded[-1].at - self.loaded[0].at >= LEAST * 60

    @property
    def grows(self) -> bool:
        bound = FLAT if self._later[0].at - self.began < FILLED else LEVEL
        return self.is_long_enough and min(self.growth, self.growth_later) > bound

    @property
    def files(self) -> int:
        return max(each.files for each in self.loaded)

    @property
    def threads(self) -> int:
        return max(each.threads for each in self.loaded)

    @property
    def leaks(self) -> bool:
        return self.rest.files > self.files + MORE or self.rest.threads > self.threads + MORE


def processes(looks: Mapping[str, list[Sample]], warm: float, over: float) -> list[Process]:
    """All processes under load, from the moment when they were warm until it was over."""
    found = []
    for name, samples in sorted(looks.items()):
        if loaded := [each for each in samples if warm <= each.at <= over]:
            found.append(Process(name, samples[0].at, loaded, samples[-1]))
    return found


def slope(points: list[tuple[float, int]]) -> float:
    """Bytes at times in seconds, as MiB a minute."""
    if len(points) < 3:
        return 0.0
    found, _ = linear_regression([at / 60 for at, _ in points], [size / MIB for _, size in points])
    return found


def failings(records: Records, faults: Mapping[str, int], judged: list[Process]) -> Iterator[str]:
    """Why a run has not passed; nothing when it has."""
    if records.wrong:
        yield f"{len(records.wrong)} wrong answers"
    if not records.checked:
        yield "no answer was compared"
    if not faults:
        yield "no provider had a fault"
    if records.share_named > BUDGET:
        yield f"{records.share_named:.2%} of the answers were named as failed, and {BUDGET:.0%} may be"
    if not judged:
        yield "no process was looked at once it was warm"
    for each in judged:
        if each.grows:
            yield f"{each.name} grows by {each.growth:.2f} MiB a minute"
        if each.leaks:
            yield f"{each.name} leaks files or threads"
