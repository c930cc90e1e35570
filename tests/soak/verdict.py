"""What a run has to be to pass, and what one process has to: by these rules docs/soak.md is written too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import linear_regression

from tests.soak.faults import SHARE
from tests.soak.measures import MIB, PAUSE, Sample
from tests.soak.records import Records

# What a process may grow in a minute, in MiB, and still be called flat: while what it loads, remembers and
# keeps open still fills up, and when the half that is looked at began with all of it full.
FLAT, LEVEL = 1.0, 0.2
# Seconds of its life after which nothing is new to a process under load.
FILLED = 15 * 60.0
# Minutes once everything is warm. A shorter time tells nothing of growth.
LEAST = 1.5
# Files and threads that may be more at rest than they were under load: kept connections come and go.
MORE = 8
# Of the answers, those that may be named as failed: as many as calls have a fault. Few answers stand on
# more than one call, and retries and the cache spare most: beyond it, one fault has failed several answers.
BUDGET = SHARE


@dataclass(frozen=True)
class Process:
    """One of them, seen first when it ``began``: under load once all was warm, and ``rest`` after it."""

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
        """The same in the second half: what still warms up slows down, and a leak does not."""
        return slope([(each.at, each.memory) for each in self._later])

    @property
    def _later(self) -> list[Sample]:
        return self.loaded[len(self.loaded) // 2 :]

    @property
    def busy(self) -> float:
        """Of one processor, the share that it took under load."""
        first, last = self.loaded[0], self.loaded[-1]
        return (last.worked - first.worked) / max(last.at - first.at, PAUSE)

    @property
    def tells(self) -> bool:
        """Whether this was long enough to speak of growth."""
        return self.loaded[-1].at - self.loaded[0].at >= LEAST * 60

    @property
    def grows(self) -> bool:
        bound = FLAT if self._later[0].at - self.began < FILLED else LEVEL
        return self.tells and min(self.growth, self.growth_later) > bound

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
    """All that were there under load, from the moment when they were warm until it was over."""
    found = []
    for name, samples in sorted(looks.items()):
        if loaded := [each for each in samples if warm <= each.at <= over]:
            found.append(Process(name, samples[0].at, loaded, samples[-1]))
    return found


def slope(points: list[tuple[float, int]]) -> float:
    """Bytes at moments in seconds, as MiB a minute."""
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
