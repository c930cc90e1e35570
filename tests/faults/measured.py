"""The effect of a fault on the clients: asserted, and kept for docs/engineering/reliability.md."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from tests.faults.document import MEASURED
from tests.faults.installation import FaultInstallation
from tests.faults.questions import Verdict
from tests.faults.witness import Witness

# Seconds for all answers to be right before a fault, and for a fault to show, on any machine.
BACK = 240.0

# Seconds in which answers must be right again: about three times what the document's table has, which was
# measured on a machine with other load. The groups: no process starts and no client waits for a retry;
# after the pause of a breaker, 15 seconds; once web or workers have started, 14 to 21 seconds; once a
# database was restored and all parts have started, 50 to 58 seconds.
AT_ONCE, AFTER_A_PAUSE, AFTER_A_START, AFTER_A_LOSS = 15.0, 45.0, 75.0, 180.0
# Silently dropped connections time out one by one; that of a worker's pop within 11 seconds.
AFTER_SILENCE = 45.0


@dataclass
class Measured:
    """A row of the table. ``again`` are the writes that were sent again, each done once in the end."""

    test: str
    fault: str
    answers: dict[str, int]
    slowest: float
    back: float
    writes: int
    again: int
    lost: str = "nothing"


@dataclass
class Case:
    """One fault: its name, its clients, and how long it took to be over."""

    witness: Witness
    sees: set[str]
    seconds: float | None = field(default=None)

    def run_for(self, seconds: float) -> None:
        """Keep the fault for this time while the clients run."""
        self.witness.run_for(seconds)

    def until_seen(self) -> None:
        """Waits until the clients have seen every expected outcome: on a busy machine that takes a while."""
        give_up = time.monotonic() + BACK
        while not self.sees <= set(self.witness.outcomes()):
            assert time.monotonic() < give_up, self.witness.outcomes()
            self.witness.run_for(0.2)

    def wait_for_recovery(self, *, within: float) -> None:
        """Starts the measured and bounded time, which ends with the last answer that was not right."""
        began = time.monotonic()
        first = self.witness.wait_for_recovery(BACK)
        self.witness.run_for(1.0)
        self.seconds = max(first, self.witness.last_trouble() - began)
        assert self.seconds < within, f"right again after {self.seconds:.1f} s"


@contextmanager
def fault(
    world: FaultInstallation,
    test: str,
    what: str,
    *,
    sees: set[str] = frozenset(),
    may: set[str] = frozenset(),
) -> Iterator[Case]:
    """Break something in the block. Clients must see each answer of ``sees``, and none beyond these
    and ``may``.

    In every case no busy time is free and no write is lost or made twice.
    """
    world.begin()
    name = re.sub(r"\W+", "-", test.partition("::")[2])
    witness = world.witness(name)
    witness.wait_for_recovery(BACK)
    with witness:
        witness.run_for(0.5)
        case = Case(witness, sees)
        yield case
    assert not witness.wrong, witness.wrong[:5]
    assert case.seconds is not None, "nobody has waited until all was right"
    seen = witness.outcomes()
    assert sees <= set(seen), seen
    # A retry of work in progress elsewhere is 409; that comes later.
    assert set(seen) <= sees | set(may) | {Verdict.RIGHT}, seen
    slowest = witness.slowest()
    again = witness.settle()
    nothing_lost(world, witness, name)
    writes = len(witness.writes)
    keep(Measured(test, what, dict(seen), round(slowest, 1), round(case.seconds, 1), writes, again))


def nothing_lost(world: FaultInstallation, witness: Witness, name: str) -> None:
    """Every write exists exactly once."""
    events = [write.body["subject"] for write in witness.writes if "subject" in write.body]
    assert world.subjects(name) == sorted(events)
    users = {write.body["id"] for write in witness.writes if "id" in write.body}
    listed = [each["id"] for each in world.installation.get("/users").json()["data"]]
    assert sorted(each for each in listed if each in users) == sorted(users)


def keep(measured: Measured) -> None:
    """Stores the row in the file of the document's table; other tests' rows stay."""
    rows = {row["test"]: row for row in json.loads(MEASURED.read_text())} if MEASURED.exists() else {}
    rows[measured.test] = asdict(measured)
    MEASURED.write_text(json.dumps([rows[test] for test in sorted(rows)], indent=2) + "\n")
