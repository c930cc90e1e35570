"""Goal 5: with failing and hanging accounts the answer comes by the deadline and names exactly those."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.benchmarks import people
from tests.benchmarks.installation import Installation, Running
from tests.benchmarks.provider import Behaviour
from tests.benchmarks.questions import WEEK
from tests.benchmarks.report import Report, progress, seconds
from tests.benchmarks.scale import Scale

MEMBERS = 1_000
DEADLINE = 4.0
# Joining, slots and JSON come after the deadline of the reads.
GRACE = 1.05
# Answers from before this share of the time must be in the result; after it, workers have timed out.
IN_TIME = 0.9


@dataclass(frozen=True, slots=True)
class Round:
    """One answer beside the provider's own record."""

    seconds: float
    free: int
    failing: int
    hanging: int
    late: int
    wrong: int
    lost: int


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """2 % of the accounts fail with HTTP 500, 2 % do not answer."""
    rounds = []
    with installation.running(FANOUT_DEADLINE=DEADLINE) as running:
        # So that the rounds are about the outage and not about fresh processes.
        running.client.get("/v1/organizations/org-100/scheduling", WEEK)
        for number in range(scale.rounds):
            progress(f"cold: round {number + 1} of {scale.rounds}, accounts that fail and hang")
            rounds.append(_round(installation, running, seed=number))
    report.table(
        f"{MEMBERS:,} members, 2 % HTTP 500, 2 % without an answer, deadline {DEADLINE:g} s",
        *("answer after", "with slots", "HTTP 500", "hanging", "late besides", "wrongly named", "lost"),
    )
    for each in rounds:
        counts = each.free, each.failing, each.hanging, each.late, each.wrong, each.lost
        report.row(seconds(each.seconds), *map(str, counts))
    slowest = max(each.seconds for each in rounds) / DEADLINE
    report.note(f"Median answer after {seconds(median(each.seconds for each in rounds))}.")
    report.verdict(5, "slowest answer with failing and hanging accounts", "deadline", slowest, GRACE)
    mistakes = sum(each.wrong + each.lost for each in rounds)
    report.verdict(5, "members wrongly named or lost, all rounds", "the provider's record", mistakes, 0)
    late = sum(each.late for each in rounds)
    report.verdict(5, "members named who neither failed nor hung, all rounds", "none", late, 0)


def _round(installation: Installation, running: Running, seed: int) -> Round:
    installation.provider.behave(Behaviour(seed=seed, errors=0.02, slow=0.02))
    start = time.monotonic()
    answer = running.client.get(f"/v1/organizations/org-{MEMBERS}/scheduling", WEEK, fresh=True)
    record = installation.provider.record()
    assert answer.status == 200, answer.body
    told = answer.json()
    free = {slot["userId"] for slot in told["data"]["availableSlots"]}
    return _compare(free, {each["customId"] for each in told["failedUsers"]}, record, start, answer.seconds)


def _compare(free: set[str], failed: set[str], record: dict[str, Any], start: float, took: float) -> Round:
    """Every member has slots (all calendars leave some) or is named as failed, and correctly so."""
    everybody = {people.name(person) for person in range(MEMBERS)}
    failing = {people.name(person) for person in record["errors"]}
    hanging = {people.name(person) for person in record["slow"]}
    give_up = start + DEADLINE * IN_TIME
    in_time = {people.name(person) for person, moment in record["answered"] if moment < give_up}
    answered = {people.name(person) for person, _ in record["answered"]}
    late = failed - failing - hanging - in_time
    # Named although the provider answered in time, or answered although the provider did not.
    wrong = (failed & in_time) | (free - answered) | (failing | hanging) - failed
    lost = (everybody - free - failed) | (free & failed)
    return Round(took, len(free), len(failing), len(hanging), len(late), len(wrong), len(lost))
