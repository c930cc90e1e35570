"""Goals 1, 2 and 12: organizations read without the cache, over HTTP through every part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from tests.benchmarks import delegated, head_of_line, join, outage, people, proof
from tests.benchmarks.installation import Installation, Running
from tests.benchmarks.processes import cpu_seconds
from tests.benchmarks.provider import Behaviour
from tests.benchmarks.questions import WEEK
from tests.benchmarks.report import Plot, Report, progress, seconds
from tests.benchmarks.scale import Scale
from tests.benchmarks.timing import deviation

LATENCY = Behaviour().least
CALLS_A_ROUND = 3


@dataclass
class Size:
    """One organization's rounds, in seconds. ``processor`` is web's and workers' time, where known."""

    members: int
    ideal: float
    rounds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    provider: list[float] = field(default_factory=list)
    peak: int = 0
    bytes: int = 0

    @property
    def ratio(self) -> float:
        """The ratio to the waiting alone."""
        return median(self.rounds) / self.ideal

    @property
    def each(self) -> float | None:
        """Processor time for each member; None where the system does not report it."""
        return median(self.processor) / self.members if self.processor else None


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """Goals 1 to 5, 15, and the cold half of 12."""
    proof.canned_is_what_the_sandbox_says(installation, report)
    report.note(
        f"Every provider answer takes {LATENCY * 1000:.0f} ms; database: {installation.database}; "
        "seven days, 09:00 to 17:00. The baseline is latency x ceil(reads / in flight): "
        "waiting, and nothing else."
    )
    with installation.running() as running:
        first_requests(installation, running, report)
        sizes, plain = measure(installation, running, scale)
        report_times(sizes, plain, running, report)
        delegated.run(installation, running, report, scale)
        head_of_line.run(installation, running, report, scale)
        join.run(installation, running, report, scale)
    outage.run(installation, report, scale)


def first_requests(installation: Installation, running: Running, report: Report) -> None:
    """The time of the first requests of fresh processes, on top of the waiting."""
    progress("cold: the first requests of fresh processes")
    times = []
    for number in range(4):
        person = people.name(installation.spare(number))
        answer = running.client.get(f"/v1/users/{person}/scheduling", WEEK, fresh=True)
        assert answer.status == 200, answer.body
        times.append(seconds(answer.seconds))
    report.note(f"The first four requests of fresh processes, one user each: {', '.join(times)}.")


def measure(installation: Installation, running: Running, scale: Scale) -> tuple[list[Size], list[float]]:
    """Rounds of every size side by side, and of a plain call to the provider."""
    sizes = [Size(each, LATENCY * -(-each // running.in_flight)) for each in installation.sizes]
    plain: list[float] = []
    for number in range(scale.rounds):
        plain.append(installation.provider.plain_call())
        for size in sizes:
            if size.members < 10_000 or number < scale.large_rounds:
                progress(f"cold: round {number + 1} of {scale.rounds}, {size.members:,} members")
                for _ in range(CALLS_A_ROUND if size.members <= 100 else 1):
                    read_anew(installation, running, size)
    return sizes, plain


def read_anew(installation: Installation, running: Running, size: Size) -> None:
    """One request; every member must have been read once, and be in the answer."""
    installation.provider.behave()
    used = cpu_seconds([running.web, *running.workers])
    provider = installation.provider.record()["cpu"]
    answer = running.client.get(f"/v1/organizations/org-{size.members}/scheduling", WEEK, fresh=True)
    now = cpu_seconds([running.web, *running.workers])
    if used is not None and now is not None:
        size.processor.append(now - used)
    record = installation.provider.record()
    size.provider.append(record["cpu"] - provider)
    size.rounds.append(answer.seconds)
    size.bytes = len(answer.body)
    size.peak = max(size.peak, record["peak"])
    assert answer.status == 200, answer.body
    assert record["requests"] == size.members, f"{record['requests']} reads for {size.members} members"
    told = answer.json()
    assert told["failedUsers"] == []
    assert len({slot["userId"] for slot in told["data"]["availableSlots"]}) == size.members


def report_times(sizes: Sequence[Size], plain: list[float], running: Running, report: Report) -> None:
    """The table, the plot and the verdicts."""
    report.table(
        f"Everything read without the cache, {running.in_flight} reads in flight",
        *(
            "members",
            "waiting alone",
            "median",
            "ratio",
            "max",
            "reads at once",
            "processor time for each member",
        ),
        "answer",
    )
    for size in sizes:
        report.row(
            f"{size.members:,}",
            seconds(size.ideal),
            seconds(median(size.rounds)),
            f"{size.ratio:.2f}",
            seconds(max(size.rounds)),
            str(size.peak),
            "not readable here" if size.each is None else seconds(size.each),
            f"{size.bytes / 1e6:.2f} MB",
        )
    largest = sizes[-1]
    report.note(
        f"A plain call by requests takes {seconds(median(plain))}: one user is "
        f"{median(sizes[0].rounds) / median(plain):.2f} x that. A request costs the provider's process "
        f"{seconds(median(largest.provider) / largest.members)} of the same processors."
    )
    report.plot(
        Plot(
            "cold",
            "Organizations read without the cache",
            "members",
            "seconds",
            {
                "Almanac": [(each.members, median(each.rounds)) for each in sizes],
                "waiting alone": [(each.members, each.ideal) for each in sizes],
            },
        )
    )
    by_members = {size.members: size for size in sizes}
    report.verdict(1, "one user, cold", "provider latency", by_members[1].ratio, 1.07)
    report.verdict(1, "organization of 100, cold", "provider latency", by_members[100].ratio, 1.30)
    report.verdict(2, "organization of 1 000, cold", "waiting alone", by_members[1000].ratio, 1.20)
    large = [size for size in sizes if size.members >= 100]
    waiting = deviation({size.members: size.ratio for size in large})
    to = f"100 to {largest.members:,} members"
    report.verdict(12, f"largest deviation of the cold ratio, {to}", "that of 1 000", waiting, 0.10)
    costs = {size.members: size.each for size in large if size.each is not None}
    if costs:
        what = f"largest deviation of cold processor time for a member, {to}"
        report.verdict(12, what, "that of 1 000", deviation(costs), 0.10)
