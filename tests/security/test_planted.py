"""A whole installation with known secrets and faults: no secret leaks."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from sqlalchemy import update

from app.cli import administrator_setup
from app.server import commands, flower
from app.server.flower import FlowerSignIn
from providers.sandbox.client import Sandbox
from store.config.settings import new_secrets
from store.sql.models import OAuthConnection
from tests.app.cli.test_commands import almanac
from tests.installation.builder import Installation, installed
from tests.installation.processes import free_port, listens, running, wait_until
from tests.observability.collector import Collector, collecting
from tests.security import planted
from tests.security.echo import STATUSES, echoing
from tests.waiting import until

pytestmark = [pytest.mark.security, pytest.mark.timeout(600)]

DAY = {"start": "2026-12-03", "end": "2026-12-04"}
NOW = {"Cache-Control": "no-cache"}
SUBJECT = "planted-subject-of-a-meeting"
EVENT = {
    "subject": SUBJECT,
    "description": "planted-description",
    "start": "2026-12-03T09:00:00Z",
    "end": "2026-12-03T10:00:00Z",
}
PASSWORD = "planted-password-of-ada"
METRICS, FLOWER = "planted-metrics-token", "planted-flower-password"
TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT"
# The files that hold an installation's secrets; without variables they are in `secrets`.
THEIRS = ("secrets",)


class Traffic:
    """Makes calls and keeps every answer; ``planted`` are the secrets that appear on the way."""

    def __init__(self, made: Installation) -> None:
        self.made = made
        self.answers: list[bytes] = []
        self.planted: dict[str, str] = {}

    def call(self, method: str, path: str, *, kept: bool = True, **more) -> requests.Response:
        answer = self.made.call(method, path, **more)
        if kept:
            self.keep(answer)
        return answer

    def keep(self, answer: requests.Response) -> None:
        self.answers += [str(answer.headers).encode(), answer.content]

    def get(self, path: str, **query: object) -> requests.Response:
        return self.call("GET", path, headers=NOW, params=query)


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as made:
        yield made


@pytest.fixture(scope="module")
def secret_settings() -> dict[str, str]:
    secret_key, encryption_key = new_secrets()
    return {
        "ALMANAC_SECRET_KEY": secret_key,
        "ALMANAC_ENCRYPTION_KEYS": encryption_key,
        "ALMANAC_GOOGLE_CLIENT_SECRET": "planted-google-client-secret",
        "ALMANAC_MICROSOFT_CLIENT_SECRET": "planted-microsoft-client-secret",
        "ALMANAC_METRICS_TOKEN": METRICS,
        "ALMANAC_FLOWER_PASSWORD": FLOWER,
    }


@pytest.fixture(scope="module")
def whole(environment, tmp_path_factory, secret_settings, collector) -> Iterator[Installation]:
    """Web, worker, beat, a Redis of its own and a Flower; Microsoft is a malicious provider."""
    folder = tmp_path_factory.mktemp("planted")
    with ExitStack() as closing:
        ill = closing.enter_context(echoing())
        variables = secret_settings | {
            "ALMANAC_MICROSOFT_GRAPH_URL": f"{ill}/v1.0",
            "ALMANAC_MICROSOFT_LOGIN_URL": ill,
            "ALMANAC_LOG_LEVEL": "debug",
            "ALMANAC_PUBLIC_URL": "http://127.0.0.1:1",
            TRACES: collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }
        made = closing.enter_context(
            installed(environment, folder, workers=("worker1", "worker2"), beat=True, **variables)
        )
        _watch(made, environment | variables, closing)
        yield made


def _watch(made: Installation, variables: dict[str, str], closing: ExitStack) -> None:
    """Start Flower, which ``parts`` then has."""
    port = free_port()
    log = closing.enter_context((made.folder / "flower.log").open("wb"))
    ours = variables | {"ALMANAC_DATA_DIR": str(made.folder), "PATH": os.environ["PATH"]}
    ours = flower.environment(ours, FlowerSignIn("almanac", FLOWER, False))
    command = commands.flower("127.0.0.1", port, "")
    process = closing.enter_context(running(command, ours, log))
    made.flower = f"http://127.0.0.1:{port}"  # type: ignore[attr-defined]
    wait_until(lambda: listens(port), [process])


def test_no_secret_is_anywhere_but_where_it_belongs(whole, sandbox, collector, secret_settings):
    traffic = Traffic(whole)
    with planted.overheard(whole.stores.redis) as heard:
        shown = _a_day(traffic, sandbox)
        until(lambda: collector.raw)
    secrets = secret_settings | {"api key": whole.key[12:], "password": PASSWORD} | traffic.planted
    places = {
        "logs": whole.output().encode(),
        "answers": b"\n".join(traffic.answers),
        "what goes through Redis": b"\n".join(heard),
        "what is in Redis": planted.dumped(whole.stores.redis),
        "traces": collector.raw,
        "command lines": planted.arguments(),
        "settings": f"{whole.settings!r} {whole.stores.keyring!r} {whole.stores!r}".encode(),
        **shown,
    }
    assert [where for where, content in places.items() if not content] == []
    # The search works: it finds a message of the broker, a line of a log, a word of a request.
    assert ("task", "what goes through Redis") in planted.found({"task": "reads.drain"}, places)
    assert ("user", "answers") in planted.found({"user": "mallory"}, places)
    places |= planted.kept(whole.folder, but=THEIRS)

    assert len(secrets) > 15
    assert planted.found(secrets, places) == []
    # Only providers, clients and the path between them may see the subject of a meeting.
    ways = ("answers", "what goes through Redis", "what is in Redis")
    elsewhere = {where: content for where, content in places.items() if where not in ways}
    assert planted.found({"subject": SUBJECT, "description": "planted-description"}, elsewhere) == []
    assert SUBJECT.encode() in places["answers"]


def _a_day(traffic: Traffic, sandbox: Sandbox) -> dict[str, bytes]:
    """Runs the traffic; returns the output that operators see."""
    _connections(traffic, sandbox)
    _consents(traffic)
    _dashboard(traffic)
    _failures(traffic, sandbox)
    _crashes(traffic)
    return _onlookers(traffic)


def _connections(traffic: Traffic, sandbox: Sandbox) -> None:
    ada = sandbox.account("google", "ada@example.com", events=[EVENT])
    mallory = sandbox.account("microsoft", "mallory@example.com")
    user = traffic.made.user("ada", ada)
    traffic.made.user("mallory", mallory)
    for account in (ada, mallory):
        traffic.planted[f"access of {account.email}"] = account.access_token
        traffic.planted[f"refresh of {account.email}"] = account.refresh_token
    hook = traffic.call("POST", "/webhooks", kept=False, json={"url": "http://127.0.0.1:9/hook"})
    traffic.planted["webhook secret"] = hook.json()["data"]["secret"].removeprefix("whsec_")
    path = f"/users/{user}/calendar/events/google/primary"
    made = traffic.call("POST", path, json=EVENT, headers={"Idempotency-Key": "planted-idempotency-key"})
    assert made.status_code == 201, made.text
    traffic.planted["idempotency key"] = "planted-idempotency-key"
    traffic.get(f"/users/{user}/calendar/events", **DAY)
    traffic.get(f"/users/{user}/oauth")
    traffic.get("/users")


def _consents(traffic: Traffic) -> None:
    """One that succeeds, and one with an unknown code; only the caller gets the state."""
    made = traffic.made
    for code in (None, "planted-code-of-nobody"):
        link = traffic.call("GET", "/users/ada/oauth/google/link", kept=False).json()["data"]["link"]
        state = parse_qs(urlsplit(link).query)["state"][0]
        if code is None:
            hint = {"login_hint": "ada@example.com"}
            landed = requests.get(link, params=hint, allow_redirects=False, timeout=20).headers["Location"]
            code = parse_qs(urlsplit(landed).query)["code"][0]
        query = {"state": state, "code": code}
        traffic.keep(requests.get(f"{made.url}/v1/oauth/google/callback", params=query, timeout=30))
        traffic.planted |= {f"state of {code}": state, f"code {code}": code}


def _dashboard(traffic: Traffic) -> None:
    made = traffic.made
    assert administrator_setup.create(made.stores, "ada", PASSWORD)
    link = administrator_setup.link(made.stores, made.url)
    traffic.planted["one-time link"] = link.rpartition("/")[2]
    for each in (link.replace("http://127.0.0.1:1", made.url), f"{made.url}/dashboard/sign-in"):
        traffic.keep(requests.get(each, timeout=30))
    wrong = {"name": "ada", "password": PASSWORD, "csrf_token": "wrong"}
    traffic.keep(requests.post(f"{made.url}/dashboard/sign-in", data=wrong, timeout=30))


def _failures(traffic: Traffic, sandbox: Sandbox) -> None:
    for fault in (
        {"status": 401},
        {"status": 403, "reason": "forbidden"},
        {"status": 429, "retry_after": 0.1},
        {"status": 500, "body": "html"},
        {"body": "truncated"},
        {"body": "reset"},
    ):
        sandbox.fault(provider="google", **fault)
        traffic.get("/users/ada/calendar/busy", **DAY)
        sandbox.clear_faults()
    path = "/users/mallory/calendar/events/microsoft/primary"
    for _ in STATUSES:
        traffic.get("/users/mallory/calendar/busy", **DAY)
        traffic.get("/users/mallory/calendar/events", **DAY)
        traffic.call("POST", path, json=EVENT)
        traffic.call("GET", "/users/mallory/oauth/microsoft/token", kept=False)
    traffic.made.session.get(f"{traffic.made.url}/v1/users/%ff?planted", timeout=30)
    sandbox.revoke("ada@example.com")
    traffic.get("/users/ada/calendar/busy", **DAY)
    traffic.call("DELETE", "/users/mallory")


def _crashes(traffic: Traffic) -> None:
    """A worker is killed while it reads, and what was sealed cannot be opened any more."""
    made = traffic.made
    with made.stores.database.writing() as session:
        session.execute(update(OAuthConnection).values(alive=True))
    with ThreadPoolExecutor(1) as caller:
        answer = caller.submit(traffic.get, "/users/ada/calendar/busy", **DAY)
        time.sleep(0.1)
        made.parts["worker2"].send_signal(signal.SIGKILL)
        answer.result()
    with made.stores.database.writing() as session:
        session.execute(update(OAuthConnection).values(alive=True, sealed_access_token=b"\x01spoilt"))
    traffic.get("/users/ada/calendar/busy", **DAY)


def _onlookers(traffic: Traffic) -> dict[str, bytes]:
    """The output of Flower, Prometheus and the doctor."""
    made = traffic.made
    who = ("almanac", FLOWER)
    paths = ("/", "/tasks", "/workers", "/broker", "/api/tasks", "/api/workers?refresh=1", "/metrics")
    url = made.flower  # type: ignore[attr-defined]
    seen = [requests.get(f"{url}{path}", auth=who, timeout=30) for path in paths]
    assert seen[0].status_code == 200
    tasks = requests.get(f"{url}/api/tasks", auth=who, timeout=30).json()
    assert {task["name"] for task in tasks.values()} >= {"reads.drain"}
    seen += [requests.get(f"{url}/task/{each}", auth=who, timeout=30) for each in tasks]
    metrics = requests.get(f"{made.url}/metrics", headers={"Authorization": f"Bearer {METRICS}"}, timeout=30)
    ready = requests.get(f"{made.url}/readyz", timeout=30)
    return {
        "Flower": b"\n".join(each.content for each in seen),
        "metrics": metrics.content + ready.content,
        "the doctor": _doctor(made),
    }


def _doctor(made: Installation) -> bytes:
    with open(f"/proc/{made.parts['web'].pid}/environ", "rb") as file:
        variables = dict(each.split("=", 1) for each in file.read().decode().split("\0") if "=" in each)
    ours = {name: value for name, value in variables.items() if name.startswith("ALMANAC_")}
    ours.pop("ALMANAC_DATA_DIR")
    told = [almanac("doctor", *more, data=made.folder, **ours) for more in ((), ("--json",))]
    return "".join(each.output for each in told).encode()
