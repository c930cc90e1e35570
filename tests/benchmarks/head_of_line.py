"""Goal 4: one cold user while an organization of 1 000 is being read, beside the same with nothing else."""

from __future__ import annotations

import threading
import time
from itertools import cycle
from statistics import median

from tests.benchmarks import people
from tests.benchmarks.installation import Installation, Running
from tests.benchmarks.questions import whole
from tests.benchmarks.report import Report, progress, seconds
from tests.benchmarks.scale import Scale

DAY = whole(1)
USERS_A_ROUND = 5


def run(installation: Installation, running: Running, report: Report, scale: Scale) -> None:
    """Idle and busy in turn; only users asked for and answered while the organization was not count."""
    installation.provider.behave()
    strangers = cycle([people.name(installation.spare(number)) for number in range(people.SPARE)])
    idle: list[float] = []
    busy: list[float] = []

    def one() -> float:
        answer = running.client.get(f"/v1/users/{next(strangers)}/scheduling", DAY, fresh=True)
        assert answer.status == 200, answer.body
        return answer.seconds

    for number in range(scale.rounds):
        progress(f"cold: round {number + 1} of {scale.rounds}, one user beside an organization")
        idle += [one() for _ in range(USERS_A_ROUND)]
        organization = threading.Thread(target=_organization, args=(running,))
        organization.start()
        # All of its reads are in progress by then.
        time.sleep(0.3)
        while True:
            took = one()
            if not organization.is_alive():
                break
            busy.append(took)
        organization.join()
    report.table("One cold user", "while", "users", "median", "max")
    for name, times in (("nothing else", idle), ("an organization of 1 000 is read", busy)):
        report.row(name, str(len(times)), seconds(median(times)), seconds(max(times)))
    ratio = median(busy) / median(idle)
    report.verdict(4, "a cold user while a cold organization of 1 000 is in flight", "idle", ratio, 1.10)


def _organization(running: Running) -> None:
    answer = running.client.get("/v1/organizations/org-1000/scheduling", DAY, fresh=True)
    assert answer.status == 200, answer.body
