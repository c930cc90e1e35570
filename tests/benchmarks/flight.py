"""Goal 13: identical cold requests at once read each connection once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from statistics import median
from threading import Barrier

from tests.benchmarks.installation import Installation
from tests.benchmarks.questions import WEEK
from tests.benchmarks.report import Report, progress, seconds
from tests.benchmarks.scale import Scale

REQUESTS = 50
MEMBERS = 20
DEADLINE = 10


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """Each round requests an organization that no earlier round has requested."""
    report.table(
        f"{REQUESTS} identical cold requests at once, an organization of {MEMBERS}",
        *("round", "provider reads", "median answer", "slowest answer", "answers with a missing member"),
    )
    reads = []
    lacking = 0
    with installation.running(FANOUT_DEADLINE=DEADLINE) as running, ThreadPoolExecutor(REQUESTS) as threads:
        for number in range(scale.rounds):
            progress(f"flight: round {number + 1} of {scale.rounds}")
            slug = f"flight-{number}"
            installation.organize(
                slug, [installation.spare(200 + number * MEMBERS + each) for each in range(MEMBERS)]
            )
            installation.provider.behave()
            together = Barrier(REQUESTS)

            def ask(slug: str = slug, together: Barrier = together) -> tuple[float, bool]:
                together.wait()
                answer = running.client.get(f"/v1/organizations/{slug}/scheduling", WEEK)
                assert answer.status == 200, answer.body
                return answer.seconds, answer.json()["failedUsers"] == []

            asked = [threads.submit(ask) for _ in range(REQUESTS)]
            times, whole = zip(*(each.result() for each in asked), strict=True)
            lacking += whole.count(False)
            reads.append(installation.provider.record()["requests"])
            report.row(
                str(number + 1),
                str(reads[-1]),
                seconds(median(times)),
                seconds(max(times)),
                str(whole.count(False)),
            )
    what = f"provider reads of {REQUESTS} identical requests, worst round"
    report.verdict(13, what, "one for each connection", max(reads) / MEMBERS, 1)
    report.verdict(13, "answers with a missing member, all rounds", "none", lacking, 0)
