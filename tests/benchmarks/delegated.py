"""Goal 15: an organization of 1 000 read by its grants, beside the same people with tokens of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tests.benchmarks import people
from tests.benchmarks.installation import DELEGATED, DELEGATED_MEMBERS, Installation, Running
from tests.benchmarks.processes import cpu_seconds
from tests.benchmarks.provider import Behaviour
from tests.benchmarks.questions import WEEK
from tests.benchmarks.report import Report, progress, seconds
from tests.benchmarks.scale import Scale

LATENCY = Behaviour().least

# Ten queries for 50 at Google and 25 batches for 20 at Microsoft, and five that may be sent again.
MAX_REQUESTS = 40


@dataclass
class Way:
    """One of the two ways to read the same people, and what each round cost."""

    slug: str
    members: list[str]
    rounds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    requests: int = 0


def run(installation: Installation, running: Running, report: Report, scale: Scale) -> None:
    """Both ways in turn; their slots must be the same."""
    everyone = range(DELEGATED_MEMBERS)
    grant = Way(DELEGATED, [people.delegated(each) for each in everyone])
    single = Way(f"org-{DELEGATED_MEMBERS}", [people.name(each) for each in everyone])
    # Not measured: it requests the tokens, once in an hour, and the provider computes its answers.
    _read(installation, running, Way(DELEGATED, grant.members))
    for number in range(scale.rounds):
        progress(f"cold: round {number + 1} of {scale.rounds}, {DELEGATED_MEMBERS:,} members by grant")
        assert _read(installation, running, grant) == _read(installation, running, single)
    ideal = LATENCY * -(-DELEGATED_MEMBERS // running.in_flight)
    report.table(
        f"{DELEGATED_MEMBERS:,} members, half at Google and half at Microsoft, without the cache",
        *("read by", "provider requests", "median", "ratio to the waiting of single reads", "processor time"),
    )
    for name, way in (("one grant for each provider", grant), ("a connection of each member", single)):
        processor = seconds(median(way.processor)) if way.processor else "not readable here"
        ratio = median(way.rounds) / ideal
        report.row(name, f"{way.requests:,}", seconds(median(way.rounds)), f"{ratio:.2f}", processor)
    what = "organization of 1 000 delegated members, cold"
    report.verdict(15, what, "waiting of single reads", median(grant.rounds) / ideal, 0.35)
    report.verdict(15, "provider requests for them", "one", float(grant.requests), float(MAX_REQUESTS))


def _read(installation: Installation, running: Running, way: Way) -> list[list[dict[str, Any]]]:
    """One request; the slots of each member, in the order of ``way.members``."""
    installation.provider.behave()
    used = cpu_seconds([running.web, *running.workers])
    answer = running.client.get(f"/v1/organizations/{way.slug}/scheduling", WEEK, fresh=True)
    now = cpu_seconds([running.web, *running.workers])
    assert answer.status == 200, answer.body
    way.rounds.append(answer.seconds)
    if used is not None and now is not None:
        way.processor.append(now - used)
    way.requests = max(way.requests, installation.provider.record()["requests"])
    result = answer.json()
    assert result["failedUsers"] == []
    slots: dict[str, list[dict[str, Any]]] = {member: [] for member in way.members}
    for slot in result["data"]["availableSlots"]:
        slots[slot.pop("userId")].append(slot)
    assert all(slots.values())
    return list(slots.values())
