"""Goal 20: cached slots of one tenant, alone and beside another tenant that uses all it can.

Each round measures the slots alone, then beside each kind of hostile load: drift of the machine hits all.
"""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tests import rsa_keys
from tests.benchmarks import calendars, people, pressure
from tests.benchmarks.client import Answer, Client
from tests.benchmarks.installation import Installation
from tests.benchmarks.provider import Behaviour
from tests.benchmarks.questions import WEEK, whole
from tests.benchmarks.report import Report, progress, seconds, spread
from tests.benchmarks.scale import Scale
from tests.receiver import receiving

HOSTILE, VICTIM = "hostile", "victim"
# Of the spare people: those of the victim, then those of the hostile tenant.
VICTIMS, FIRST_HOSTILE, HOSTILES = 20, 20, 130
DAYS = 7
# Requests of the victim in a second.
RATE = 50.0
LIMIT = 3

HELD = 100  # users of each hold
CHANGES = 3.0  # of holds, in a second
SLOW_SECONDS = 3.0
BODIES, BODY = 240, 1_000_000
ENDPOINTS = 100
# In seconds: from the start of a load to the measurement, which is about as long.
WARM_UP = 1.0
PATIENCE = 60.0


@dataclass
class Tenants:
    """Clients of the two tenants, and the number of times that the hostile one holds."""

    hostile: Client
    victim: Client
    keys: dict[str, str]
    held_times: int


Load = Callable[["Installation", Tenants, threading.Event], Sequence[Callable[[], object]]]


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """One web process, so that the two tenants cannot miss each other."""
    spare = installation.spare
    installation.organize(VICTIM, [spare(each) for each in range(VICTIMS)])
    installation.organize(HOSTILE, [spare(FIRST_HOSTILE + each) for each in range(HOSTILES)])
    keys = {slug: installation.bound_key(slug) for slug in (HOSTILE, VICTIM)}
    settings = {
        "WEBHOOKS_ALLOW_PRIVATE": "true",
        # The largest that an operator may have allowed: the quota itself is not measured here.
        "MAX_HELD_USERS": "100000",
    }
    with (
        tempfile.TemporaryDirectory(prefix="almanac-bench-") as folder,
        installation.running(web=1, **settings) as running,
    ):
        port = running.client.port
        clients = {slug: Client(port, {"Authorization": f"Bearer {key}"}) for slug, key in keys.items()}
        tenants = Tenants(clients[HOSTILE], clients[VICTIM], keys, scale.held_times)
        requests = pressure.varied(Path(folder), [spare(each) for each in range(VICTIMS)], DAYS)
        failed: list[int] = []
        measure = partial(_p95, port, requests, keys[VICTIM], 2 * scale.slice_seconds, failed)
        for user in range(VICTIMS):
            path = f"/v1/users/{people.name(spare(user))}/scheduling"
            answer = tenants.victim.get(path, whole(pressure.FIRST_DAYS + DAYS + 1))
            assert answer.status == 200, answer.body
        measure()
        failed.clear()
        times, notes = _rounds(installation, tenants, measure, scale)
    _report(report, times, notes, scale)
    report.verdict(20, "failed answers of the victim, all rounds", "none", len(failed), 0)


def _rounds(
    installation: Installation, tenants: Tenants, measure: Callable[[], float], scale: Scale
) -> tuple[dict[str, list[float]], list[str]]:
    times: dict[str, list[float]] = {"alone": [], **{name: [] for name in LOADS}}
    notes: list[str] = []
    for number in range(scale.rounds):
        progress(f"neighbour: round {number + 1} of {scale.rounds}")
        times["alone"].append(measure())
        for name, load in LOADS.items():
            with _under(load, installation, tenants) as statuses:
                time.sleep(WARM_UP)
                times[name].append(measure())
                if load is hanging_webhooks and not number:
                    notes.append(f"A webhook of the victim arrived after {seconds(_webhook(tenants))}.")
            if not number:
                notes.append(f"Answers to the hostile tenant, {name}: {_counted(statuses)}.")
        installation.provider.behave()
    return times, notes


def _p95(port: int, requests: pressure.Requests, key: str, seconds: float, failed: list[int]) -> float:
    """The 95th percentile in seconds; adds the statuses of failed answers to ``failed``."""
    answers = pressure.paced(port, requests, key, seconds, RATE)
    failed += [status for _, status in answers if status != 200]
    return quantiles(sorted(took for took, _ in answers), n=100, method="inclusive")[94]


@contextmanager
def _under(load: Load, installation: Installation, tenants: Tenants) -> Iterator[list[int]]:
    """Run a load, as threads that repeat their calls until the end; yields the statuses of their answers."""
    over = threading.Event()
    statuses: list[int] = []
    calls = load(installation, tenants, over)

    def repeat(call: Callable[[], object]) -> None:
        while not over.is_set():
            answer = call()
            if isinstance(answer, Answer):
                statuses.append(answer.status)
                if answer.status in (429, 503):
                    # As `Retry-After` says, at least.
                    over.wait(1)

    with ThreadPoolExecutor(len(calls)) as threads:
        repeated = [threads.submit(repeat, call) for call in calls]
        try:
            yield statuses
        finally:
            over.set()
            for each in repeated:
                # A request that the server has ended is a refusal.
                with suppress(OSError):
                    each.result()


def held_times(
    installation: Installation, tenants: Tenants, over: threading.Event
) -> Sequence[Callable[[], object]]:
    """Many held times of the hostile tenant's users, and some changes of holds in each second."""
    users = [people.name(installation.spare(FIRST_HOSTILE + each)) for each in range(HELD)]
    installation.provider.behave(Behaviour(least=0.0, most=0.0))
    while tenants.held_times > 0:
        answer = tenants.hostile.post("/v1/holds", _hold(users, tenants.held_times))
        if answer.status == 201:
            tenants.held_times -= len(users)
        else:
            # Of all other answers, only that of a busy machine may be repeated.
            assert answer.status == 503, answer.body
            over.wait(1)

    def change() -> Answer:
        answer = tenants.hostile.post("/v1/holds", _hold(users[:1], -len(users)))
        over.wait(1 / CHANGES)
        if answer.status == 201:
            tenants.hostile.delete(f"/v1/holds/{answer.json()['data']['id']}")
            over.wait(1 / CHANGES)
        return answer

    return [change]


def _hold(users: Sequence[str], number: int) -> dict[str, Any]:
    """A hold of a quarter of an hour, each at another time and years after all meetings."""
    start = calendars.START + (4000 + number // HELD) * calendars.DAY
    ends = {"start": calendars.text(start), "end": calendars.text(start + 900_000)}
    return {"users": list(users), **ends, "expiresIn": 3600}


def slow_reads(
    installation: Installation, tenants: Tenants, over: threading.Event
) -> Sequence[Callable[[], object]]:
    """Fresh reads of accounts whose provider takes long."""
    installation.provider.behave(Behaviour(least=SLOW_SECONDS, most=SLOW_SECONDS))
    paths = [
        f"/v1/users/{people.name(installation.spare(FIRST_HOSTILE + each))}/scheduling"
        for each in range(HOSTILES)
    ]
    return [partial(tenants.hostile.get, path, WEEK, fresh=True) for path in paths]


def key_files(
    installation: Installation, tenants: Tenants, over: threading.Event
) -> Sequence[Callable[[], object]]:
    """The largest key file that is admitted, stored again and again."""
    path = f"/v1/organizations/{HOSTILE}/grants/{'google'}"

    def put(bits: int) -> Answer:
        return tenants.hostile.put(path, {"serviceAccountKey": _key_file(bits), "subject": _ROBOT})

    largest = next(bits for bits in (8192, 4096) if put(bits).status == 200)
    return [partial(put, largest)]


_ROBOT = f"robot@{people.DOMAIN}"


def _key_file(bits: int) -> dict[str, str]:
    return {"type": "service_account", "client_email": _ROBOT, "private_key": rsa_keys.pem(bits)}


def unfinished_bodies(
    installation: Installation, tenants: Tenants, over: threading.Event
) -> Sequence[Callable[[], object]]:
    """Bodies that lack their last byte, half of them without a key."""
    key = tenants.keys[HOSTILE]
    port = tenants.hostile.port

    def send() -> None:
        with ExitStack() as sent:
            for number in range(BODIES):
                head = f"POST /v1/users HTTP/1.1\r\nHost: x\r\nContent-Length: {BODY + 1}\r\n"
                head += f"Authorization: Bearer {key}\r\n" if number % 2 else ""
                # The server refuses some of them.
                with suppress(OSError):
                    connection = sent.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
                    connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
                    connection.sendall(b"x" * BODY)
                if over.is_set():
                    return
            over.wait(10)

    return [send]


def hanging_webhooks(
    installation: Installation, tenants: Tenants, over: threading.Event
) -> Sequence[Callable[[], object]]:
    """Endpoints that take connections and never answer, each with an event in every second."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    threading.Thread(target=lambda: (over.wait(), listener.close()), daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    for _ in range(ENDPOINTS - _number_of(tenants.hostile)):
        _endpoint(tenants.hostile, url)
    endpoints = [each["id"] for each in tenants.hostile.get("/v1/webhooks").json()["data"]]

    def test() -> Answer:
        answers = [tenants.hostile.post(f"/v1/webhooks/{each}/test", {}) for each in endpoints]
        over.wait(1)
        return answers[-1]

    return [test]


def _number_of(client: Client) -> int:
    return len(client.get("/v1/webhooks").json()["data"])


def _endpoint(client: Client, url: str) -> str:
    made = client.post("/v1/webhooks", {"url": url, "events": ["calendar.changed"]})
    assert made.status == 201, made.body
    return str(made.json()["data"]["id"])


def _webhook(tenants: Tenants) -> float:
    """Seconds from an event of the victim to its webhook."""
    with receiving() as receiver:
        endpoint = _endpoint(tenants.victim, receiver.url)
        began = time.monotonic()
        tenants.victim.post(f"/v1/webhooks/{endpoint}/test", {})
        while not receiver.received and time.monotonic() < began + PATIENCE:
            time.sleep(0.01)
        took = time.monotonic() - began
        tenants.victim.delete(f"/v1/webhooks/{endpoint}")
        return took


def _counted(statuses: Sequence[int]) -> str:
    counts = [f"{statuses.count(status)} times {status}" for status in sorted(set(statuses))]
    return ", ".join(counts) or "none"


LOADS: dict[str, Load] = {
    "held times": held_times,
    "slow reads": slow_reads,
    "key files": key_files,
    "unfinished bodies": unfinished_bodies,
    "hanging webhooks": hanging_webhooks,
}


def _report(report: Report, times: dict[str, list[float]], notes: Sequence[str], scale: Scale) -> None:
    about = {
        "held times": f"{scale.held_times:,} held times, {CHANGES:.0f} changes of holds a second",
        "slow reads": f"{HOSTILES} fresh reads at once, {SLOW_SECONDS:.0f} s each",
        "key files": "the largest key file of a service account, again and again",
        "unfinished bodies": f"{BODIES} bodies of 1 MB without their end, half without a key",
        "hanging webhooks": f"{ENDPOINTS} webhook endpoints that never answer",
    }
    title = f"95th percentile of cached slots, {RATE:.0f} requests a second, one web process"
    report.table(title, "beside", "median of the rounds", "min", "max", "ratio, min / median / max")
    alone = times["alone"]
    report.row("no other tenant", seconds(median(alone)), seconds(min(alone)), seconds(max(alone)), "")
    for name, taken in times.items():
        if name == "alone":
            continue
        ratios = [each / base for each, base in zip(taken, alone, strict=True)]
        cells = (seconds(median(taken)), seconds(min(taken)), seconds(max(taken)), spread(ratios))
        report.row(about[name], *cells)
        report.verdict(20, f"cached slots beside {about[name]}", "alone", median(ratios), LIMIT)
    for note in notes:
        report.note(note)
