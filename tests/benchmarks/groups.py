"""Goal 19: slots that a group shares, beside those of an organization with the same members; both warm."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from tests.benchmarks import in_turn
from tests.benchmarks.client import Answer
from tests.benchmarks.installation import Installation
from tests.benchmarks.questions import WEEK
from tests.benchmarks.report import Report
from tests.benchmarks.scale import Scale

MEMBERS = 100
SLUG = "group"
ORGANIZATION, ALL, SOME = "the organization", "all of the group", "any ten of the group"
LIMIT = 2


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """Both over HTTP, in turn, in every round."""
    installation.organize(SLUG, range(MEMBERS))
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
        compared = in_turn.compare("groups", calls, installation, scale)
    compared.table(report, f"{MEMBERS} users over a week, from the cache", "slots of")
    for name in (ALL, SOME):
        ratio = compared.ratio(report, name, ORGANIZATION)
        report.verdict(19, f"{name}, {MEMBERS} users, 7 days", ORGANIZATION, ratio, LIMIT)


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
