"""A whole installation to break: each part a process, on servers of its own, with users in it."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from providers.sandbox.client import Sandbox, SandboxAccount
from store.config.settings import new_secrets
from store.coordination.heartbeats import LiveProcesses
from tests.app.at_provider import AtProvider
from tests.faults import truth
from tests.faults.questions import Question, about
from tests.faults.servers import Server
from tests.faults.truth import Period
from tests.faults.witness import Witness
from tests.installation.builder import Installation, installed
from tests.waiting import until

PROVIDERS = ("google", "microsoft")

# Seconds for the start of everything, also on a busy machine.
PATIENCE = 300.0

# The fan-out's deadline of these installations, in seconds.
DEADLINE = 3.0

# Settings that other tests change; these tests use the production defaults.
AS_IN_PRODUCTION = ("ALMANAC_BREAKER_ACCOUNTS", "ALMANAC_BREAKER_FAILURES", "ALMANAC_FAILURE_TTL")


@dataclass
class FaultInstallation:
    """An installation to break and to repair; ``parts`` are its processes by name, ``servers`` too."""

    installation: Installation
    servers: dict[str, Server]
    sandbox: Sandbox
    people: Mapping[str, list[Period]]
    accounts: Mapping[str, SandboxAccount]
    questions: list[Question]
    slug: str
    writers: dict[str, SandboxAccount] = field(default_factory=dict)
    rounds: int = 0

    def witness(self, name: str) -> Witness:
        """Clients of it, whose events and users carry that name."""
        paths = {
            f"/users/{user}/calendar/events/{account.provider}/primary": f"/users/{user}/calendar/busy"
            for user, account in self.writers.items()
        }
        return Witness(self.installation.url, self.installation.key, self.questions, paths, name)

    def begin(self) -> None:
        """Repair the leftovers of earlier tests, and create unused calendars to write to."""
        self.repair()
        self.rounds += 1
        self.writers = {}
        for provider in PROVIDERS:
            name = f"{self.slug}-{provider}-{self.rounds}"
            account = self.sandbox.account(provider, f"{name}@example.com")
            self.writers[self.installation.user(name, account)] = account

    def repair(self) -> None:
        """Repair the leftovers of earlier tests."""
        self.sandbox.clear_faults()
        self.sandbox.forget_requests()
        for server in self.servers.values():
            if not server.answers():
                server.start()
        for part in self.installation.commands:
            process = self.installation.parts.get(part)
            if process is None or process.poll() is not None:
                self.installation.start(part)
        until(self.installation.ready, PATIENCE)

    def failed_calls(self) -> int:
        """How many calls the providers failed, by their own count."""
        return self.sandbox.requests().struck

    def present(self) -> LiveProcesses:
        """The heartbeats of its workers."""
        return self.installation.stores.heartbeats.live_processes()

    def is_working(self, part: str) -> bool:
        """Whether a recent heartbeat of a worker reports calls in flight."""
        workers = self.present().workers
        return any(name.startswith(part) and used for name, (used, _) in workers.items())

    @contextmanager
    def hanging(self, part: str) -> Iterator[None]:
        """A part that is stopped (SIGSTOP)."""
        process = self.installation.parts[part]
        process.send_signal(signal.SIGSTOP)
        until(lambda: state(process.pid) == "T")
        try:
            yield
            assert state(process.pid) == "T"
        finally:
            process.send_signal(signal.SIGCONT)

    def subjects(self, name: str) -> list[str]:
        """The subjects of the providers' events with that name."""
        return sorted(
            subject
            for account in self.writers.values()
            for subject in AtProvider(self.sandbox, account).subjects()
            if subject.startswith(f"{name} ")
        )


@contextmanager
def broken(
    environment: Mapping[str, str],
    sandbox: Sandbox,
    folder: Path,
    servers: dict[str, Server],
    *,
    web: int = 2,
    **changed: str,
) -> Iterator[FaultInstallation]:
    """Start the servers, an installation on them, and connect its people."""
    with ExitStack() as closing:
        for server in servers.values():
            closing.callback(server.stop)
            server.start()
        secret, encryption = new_secrets()
        ours = dict(environment) | {"ALMANAC_SECRET_KEY": secret, "ALMANAC_ENCRYPTION_KEYS": encryption}
        for name in AS_IN_PRODUCTION:
            ours.pop(name, None)
        ours["ALMANAC_FANOUT_DEADLINE"] = str(DEADLINE)
        for name, server in servers.items():
            ours[f"ALMANAC_{name.upper()}_URL"] = server.url
        # Two workers, so that one may fail.
        made = closing.enter_context(
            installed(
                ours, folder, web=web, workers=("worker1", "worker2"), beat=True, patience=PATIENCE, **changed
            )
        )
        yield _peopled(made, servers, sandbox, folder.name)


def _peopled(
    made: Installation, servers: dict[str, Server], sandbox: Sandbox, name: str
) -> FaultInstallation:
    people: dict[str, list[Period]] = {}
    accounts: dict[str, SandboxAccount] = {}
    for n in range(6):
        user, busy = f"{name}-{n}", [truth.at(hour) for hour in (8 + n % 3, 12, 14 + n)]
        events = [truth.body(period) for period in busy]
        accounts[user] = sandbox.account(PROVIDERS[n % 2], f"{user}@example.com", events=events)
        people[made.user(user, accounts[user])] = busy
    slug = made.call("POST", "/organizations", json={"slug": name, "name": None}).json()["data"]["slug"]
    joined = made.call("POST", f"/organizations/{slug}/members", json={"userIds": list(people)})
    assert joined.status_code == 201, joined.text
    questions = about(people, slug)
    return FaultInstallation(made, servers, sandbox, people, accounts, questions, slug)


@contextmanager
def server_folder(name: str) -> Iterator[Path]:
    """A folder that the server's user on this machine can reach."""
    folder = Path(tempfile.mkdtemp(prefix=f"almanac-{name}-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def state(pid: int) -> str:
    """The state of a process, in the letter of the system: S, R, and T for a stopped one."""
    # The process name comes before it, in brackets, and may hold any text.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def children(pid: int) -> list[int]:
    """The child processes of a process; of a web server, the ones that answer requests."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
