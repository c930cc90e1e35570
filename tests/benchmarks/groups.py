"""Goal 19: slots that a group shares, beside those of an organization with the same members; both warm."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from urllib.parse import urlencode

from tests.benchmarks.client import Answer
from tests.benchmarks.installation import Installation
from tests.benchmarks.questions import WEEK
from tests.benchmarks.report import Report, progress, seconds, spread
from tests.benchmarks.scale import Scale

MEMBERS = 100
SLUG = "group"
MIN_ROUNDS = 5
CALLS_A_ROUND = 10
ORGANIZATION, ALL, SOME = "the organization", "all of the group", "any ten of the group"
LIMIT = 2


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """Both over HTTP, in turn, in every round."""
    installation.organize(SLUG, range(MEMBERS))
    rounds = max(MIN_ROUNDS, scale.rounds)
    with installation.running() as running:
        users = [each["id"] for each in members(running.client.get(f"/v1/organizations/{SLUG}/members"))]
        query = {**WEEK, "align": "clock"}

        def shared(required: str | int) -> Answer:
            body = {"participants": [{"users": users, "required": required}]}
            return running.client.post(f"/v1/scheduling?{urlencode(query)}", body)

        calls: dict[str, Callable[[], Answer]] = {
            ORGANIZATION: lambda: running.client.get(f"/v1/organizations/{SLUG}/scheduling", query),
            ALL: lambda: shared("all"),
            SOME: lambda: shared(10),
        }
        same_users(calls[ORGANIZATION](), shared(1))
        reads = installation.provider.record()["requests"]
        times: dict[str, list[list[float]]] = {name: [] for name in calls}
        sizes: dict[str, int] = {}
        for number in range(rounds):
            progress(f"groups: round {number + 1} of {rounds}")
            for name, call in calls.items():
                answers = [call() for _ in range(CALLS_A_ROUND)]
                assert {answer.status for answer in answers} == {200}
                times[name].append([answer.seconds for answer in answers])
                sizes[name] = len(answers[-1].body)
        assert installation.provider.record()["requests"] == reads, (
            "something warm was read from the provider"
        )
    report_times(report, times, sizes)


def members(answer: Answer) -> list[dict[str, str]]:
    """The members in an answer."""
    assert answer.status == 200, answer.body
    found: list[dict[str, str]] = answer.json()["data"]
    assert len(found) == MEMBERS
    return found


def same_users(organization: Answer, shared: Answer) -> None:
    """Check that both answers have the same free users at each start."""
    assert organization.status == shared.status == 200, shared.body
    of_each: dict[str, set[str]] = {}
    for slot in organization.json()["data"]["availableSlots"]:
        of_each.setdefault(slot["start"], set()).add(slot["userId"])
    found = {slot["start"]: set(slot["users"]) for slot in shared.json()["data"]["availableSlots"]}
    assert found == of_each
    assert found


def report_times(report: Report, times: dict[str, list[list[float]]], sizes: dict[str, int]) -> None:
    """The table, and the medians of the ratios within a round."""
    title = f"{MEMBERS} users over a week, from the cache"
    report.table(title, "slots of", "median", "min", "max", "size")
    for name, of_rounds in times.items():
        taken = [each for of_round in of_rounds for each in of_round]
        cells = (seconds(median(taken)), seconds(min(taken)), seconds(max(taken)))
        report.row(name, *cells, f"{sizes[name] / 1e3:,.0f} kB")
    for name in (ALL, SOME):
        pairs = zip(times[name], times[ORGANIZATION], strict=True)
        ratios = [median(shared) / median(each) for shared, each in pairs]
        report.note(f"Ratio of the rounds for {name}, min / median / max: {spread(ratios)}.")
        report.verdict(19, f"{name}, {MEMBERS} users, 7 days", ORGANIZATION, median(ratios), LIMIT)
