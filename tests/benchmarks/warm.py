"""Goals 6, 7 and 12 warm: answers from the cache, beside applications that do next to nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import mean, median

from tests.benchmarks import pressure
from tests.benchmarks.client import Client
from tests.benchmarks.installation import Installation, Running, bare_server
from tests.benchmarks.pressure import Requests
from tests.benchmarks.questions import WEEK, office, whole
from tests.benchmarks.report import Plot, Report, progress, seconds, spread
from tests.benchmarks.scale import Scale
from tests.benchmarks.timing import deviation

USERS = 400
RANGES = (1, 7, 30)
HELLO, REDIS = "bare hello", "hello and one Redis GET"
CALLS_A_ROUND = 3
# As production runs. The limit is never reached, but counted for each request.
PRODUCTION = {"RATE_LIMIT": 100_000_000, "CORS_ORIGINS": "https://app.example.com"}


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """On the server of ``almanac serve``, on both sides."""
    report.note(
        f"The server of `almanac serve` on both sides, Almanac with a rate limit and CORS; "
        f"database: {installation.database}; "
        "every answer is checked. The cached periods were read from the provider through the workers."
    )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="almanac-bench-")))
        running = stack.enter_context(installation.running(**PRODUCTION))
        keys = read_once(installation, running, "org-1000", office(30))
        body = running.client.get("/v1/organizations/org-1000/scheduling", office(30)).body
        (folder / "keys").write_bytes(b"\n".join(keys))
        (folder / "body").write_bytes(body)
        environment = installation.environment | {
            "ALMANAC_REDIS_URL": installation.settings().redis_url,
            "BENCH_KEYS": str(folder / "keys"),
            "BENCH_BODY": str(folder / "body"),
        }
        port = stack.enter_context(bare_server(environment))
        beside_static(running.client, Client(port), body, len(keys), report, scale)
        growth(installation, running, report, scale)
        one_user(installation, running, port, folder, report, scale)


def read_once(installation: Installation, running: Running, slug: str, query: dict[str, str]) -> list[bytes]:
    """Read an organization into the cache; returns the names of its cache keys."""
    progress(f"warm: filling the cache for {slug}")
    before = set(installation.redis.scan_iter("busy:*", count=1_000))
    answer = running.client.get(f"/v1/organizations/{slug}/scheduling", query)
    assert answer.status == 200, answer.body
    assert answer.json()["failedUsers"] == []
    return sorted(set(installation.redis.scan_iter("busy:*", count=1_000)) - before)


def beside_static(ours: Client, bare: Client, body: bytes, keys: int, report: Report, scale: Scale) -> None:
    """Goal 7: the slots of 1 000 members over 30 days, one request at a time."""
    times: dict[str, list[float]] = {"Almanac": [], "static body and MGET": []}
    calls = {
        "Almanac": lambda: ours.get("/v1/organizations/org-1000/scheduling", office(30)),
        "static body and MGET": lambda: bare.get("/static"),
    }
    for number in range(scale.rounds + 1):
        progress(f"warm: round {number} of {scale.rounds}, 1,000 members over 30 days")
        for name, call in calls.items():
            for answer in [call() for _ in range(CALLS_A_ROUND)]:
                assert answer.status == 200
                assert answer.body == body
                # The first round is for both processes to open what they need.
                if number:
                    times[name].append(answer.seconds)
    slots = body.count(b'"userId":')
    report.table(
        f"1,000 members, 30 days: {slots:,} slots, {len(body) / 1e6:.1f} MB, {keys:,} keys",
        *("answer", "median", "min", "max"),
    )
    for name, taken in times.items():
        report.row(name, seconds(median(taken)), seconds(min(taken)), seconds(max(taken)))
    ratio = median(times["Almanac"]) / median(times["static body and MGET"])
    report.verdict(
        7, "warm organization of 1 000, 30 days", "a static body of the same bytes + MGET", ratio, 3
    )


def growth(installation: Installation, running: Running, report: Report, scale: Scale) -> None:
    """Goal 12, warm: the cost of a member in organizations of every size."""
    for size in installation.sizes:
        read_once(installation, running, f"org-{size}", WEEK)
    reads = installation.provider.record()["requests"]
    times: dict[int, list[float]] = {size: [] for size in installation.sizes}
    sizes: dict[int, int] = {}
    for number in range(scale.rounds):
        progress(f"warm: round {number + 1} of {scale.rounds}, organizations of every size over a week")
        for size, taken in times.items():
            for _ in range(CALLS_A_ROUND if size < 10_000 else 1):
                answer = running.client.get(f"/v1/organizations/org-{size}/scheduling", WEEK)
                assert answer.status == 200
                taken.append(answer.seconds)
                sizes[size] = len(answer.body)
    assert installation.provider.record()["requests"] == reads, "something warm was read from the provider"
    report.table("Organizations over a week", "members", "median", "for each member", "answer")
    for size, taken in times.items():
        each = seconds(median(taken) / size)
        report.row(f"{size:,}", seconds(median(taken)), each, f"{sizes[size] / 1e6:.2f} MB")
    costs = {size: median(taken) / size for size, taken in times.items()}
    line = [(float(size), cost) for size, cost in costs.items()]
    report.plot(Plot("warm-members", "Cached, seven days", "members", "seconds a member", {"Almanac": line}))
    large = {size: cost for size, cost in costs.items() if size >= 100}
    what = f"largest deviation of warm time for a member, 100 to {max(large):,} members"
    report.verdict(12, what, "that of 1 000", deviation(large), 0.10)


def one_user(
    installation: Installation, running: Running, bare: int, folder: Path, report: Report, scale: Scale
) -> None:
    """Goal 6: varied users and questions, each slice of load between two of the bare server."""
    installation.organize("warm", range(USERS))
    # Long slots keep the answer small; only its effect on the cache matters.
    read_once(installation, running, "warm", {**whole(61), "slotDuration": "480"})
    reads = installation.provider.record()["requests"]
    progress("warm: writing the questions")
    hello, redis = (pressure.fixed(folder, path, "hello") for path in ("/hello", "/redis"))
    ours = {days: pressure.varied(folder, range(USERS), days) for days in RANGES}

    def slice_of(port: int, requests: Requests, first: int = 0) -> float:
        return pressure.rate(port, requests, installation.key, scale.slice_seconds, first=first)

    port = running.client.port
    slice_of(bare, redis)
    for requests in ours.values():
        pressure.rate(port, requests, installation.key, 1)
    contenders: dict[str, Callable[[int], float]] = {REDIS: lambda _: slice_of(bare, redis)}
    for days, requests in ours.items():
        contenders[f"{days} d"] = lambda number, each=requests: slice_of(
            port, each, (number + 1) * pressure.QUESTIONS // (scale.rounds + 1)
        )
    rates: dict[str, list[float]] = {name: [] for name in (HELLO, *contenders)}
    ratios: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(scale.rounds):
        progress(f"warm: round {number + 1} of {scale.rounds}, one user under {pressure.GENERATOR}")
        rates[HELLO].append(slice_of(bare, hello))
        for name, contender in contenders.items():
            rates[name].append(contender(number))
            rates[HELLO].append(slice_of(bare, hello))
            ratios[name].append(rates[name][-1] / mean(rates[HELLO][-2:]))
    assert installation.provider.record()["requests"] == reads, "something warm was read from the provider"
    _report_rates(rates, ratios, installation.database, report)


def _report_rates(
    rates: dict[str, list[float]], ratios: dict[str, list[float]], database: str, report: Report
) -> None:
    report.table(
        f"One of {USERS} users, load by {pressure.GENERATOR}; key and user looked up in {database}",
        *("answer", "requests a second", "to bare hello, min / median / max"),
    )
    report.row(HELLO, f"{median(rates[HELLO]):,.0f}", "1")
    for name, found in ratios.items():
        label = name if name == REDIS else f"Almanac, {name}"
        report.row(label, f"{median(rates[name]):,.0f}", spread(found))
    line = [(float(days), median(ratios[f"{days} d"])) for days in RANGES]
    others = {HELLO: [(days, 1.0) for days, _ in line]}
    others[REDIS] = [(days, median(ratios[REDIS])) for days, _ in line]
    report.plot(
        Plot(
            "warm-user",
            "One user, cached",
            "days asked for",
            "requests a second, to bare hello",
            {"Almanac": line, **others},
            logarithmic=(False, False),
        )
    )
    for days, limit in ((7, 0.40), (30, 0.35)):
        ratio = median(ratios[f"{days} d"])
        report.verdict(6, f"warm user, {days} days", "bare hello", ratio, limit, at_least=True)
