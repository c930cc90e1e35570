"""``almanac up``: starts all processes of an installation in order, watches them and stops them together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from types import FrameType, TracebackType
from typing import Self

import click

from app.server import commands, flower, local_http, ports
from store.config import embedded_redis
from store.config.data_folder import make_private
from store.config.settings import Settings
from store.stores import Stores
from workers.settings import read_settings

HOST = "127.0.0.1"

# Two of each, so that a computation in one process blocks neither the web tier nor the workers.
WEB_PROCESSES = 2
WORKER_PROCESSES = 2

# Addresses to listen on. The parts also call each other on 127.0.0.1.
HOSTS = (HOST, "localhost", "0.0.0.0")  # noqa: S104

# The order in which parts stop: a caller before the parts that it calls. Flower and beat stop with web.
STOPPED_LATER = {"worker": 1, "sandbox": 2, "redis": 3}

START_SECONDS = 60.0
# For each step of the order.
STOP_SECONDS = 10.0
# For one answer of a part that starts.
ANSWER_SECONDS = 5.0


class Supervisor:
    """Runs web, workers and beat; Redis unless its URL is set; sandbox and Flower if they have a port.

    A context manager: entering it returns when all parts are ready, leaving it stops them.
    """

    def __init__(
        self,
        port: int,
        sandbox_port: int | None,
        flower_port: int | None = None,
        report: Callable[[str], object] = click.echo,
        host: str = HOST,
        others: Mapping[str, int] | None = None,
    ) -> None:
        """``others`` are ports that the caller is going to listen on, by the names of their options."""
        self.url = f"http://{HOST}:{port}"
        self.sandbox_url = None if sandbox_port is None else f"http://{HOST}:{sandbox_port}"
        # Where web, sandbox and Flower listen.
        self._host = host
        self._port = port
        self._sandbox_port = sandbox_port
        self._flower_port = flower_port
        self._others = others or {}
        # The address of Flower and how to sign in, once it is started.
        self.flower: str | None = None
        self._report = report
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Under nohup, SIGHUP is ignored, and stays so.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _interrupt)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def wait(self) -> None:
        """Return on Ctrl-C, SIGTERM, and SIGHUP, which a terminal sends that is closed.

        :raise click.ClickException: when a part has ended on its own
        """
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                self._check()
                time.sleep(0.5)

    def stop(self) -> None:
        """Stop all parts; a part that takes too long is killed."""
        # A second Ctrl-C must not leave some of them running.
        with _signals_ignored():
            self._stop()

    def _stop(self) -> None:
        running, self._running = self._running, {}
        for _, names in groupby(sorted(running, key=_stop_order), _stop_order):
            parts = [running[name] for name in names]
            for part in parts:
                part.terminate()
            deadline = time.monotonic() + STOP_SECONDS
            for part in parts:
                _wait_or_kill(part, deadline)

    def _start(self) -> None:
        if self._host not in HOSTS:
            raise click.ClickException(
                f"--host must be {HOST} (this machine) or 0.0.0.0 (all addresses), because the parts call "
                f"each other on {HOST}. For another address, start the parts one by one, the web tier with "
                "`almanac serve --host`"
            )
        ports.require_free(self._host, self._ports())
        if self._sandbox_port is not None:
            use_sandbox(f"http://{HOST}:{self._sandbox_port}")
            # Receivers of a try-out run on this machine.
            os.environ.setdefault("ALMANAC_WEBHOOKS_ALLOW_PRIVATE", "true")
            # The sandbox sends notifications there. Real providers need an https address from the operator;
            # without one, OAuth redirects return to the host of the request.
            os.environ.setdefault("ALMANAC_PUBLIC_URL", self.url)
        settings = read_settings()
        # Beat keeps its schedule in this folder, too.
        make_private(settings.data_dir)
        if settings.embedded_redis:
            self._report("Starting Redis ...")
            self._running["redis"] = embedded_redis.start(settings.data_dir, settings.redis_socket)
        self._report("Bringing the database up to date ...")
        with Stores(settings) as stores:
            stores.database.upgrade()
        if self._sandbox_port is not None:
            self._report("Starting the provider sandbox ...")
            self._run("sandbox", commands.sandbox(self._host, self._sandbox_port))
        self._report("Starting web, workers and beat ...")
        for number in range(1, WORKER_PROCESSES + 1):
            self._run(f"worker {number}", commands.worker(settings, f"worker{number}"))
        self._run("beat", commands.beat(settings))
        self._run("web", commands.web(self._host, self._port, WEB_PROCESSES))
        urls = [f"{self.url}/readyz"]
        if self.sandbox_url is not None:
            urls.append(f"{self.sandbox_url}/sandbox/health")
        self._wait_until_ready(*urls)
        if self._flower_port is not None:
            # It asks the workers at once, and logs warnings about workers that do not answer yet.
            self._start_flower(settings, self._flower_port)
            self._wait_until_ready(f"http://{HOST}:{self._flower_port}/healthcheck")

    def _ports(self) -> dict[str, int]:
        """Every port that is to be listened on, by the name of its option."""
        own = {
            "--port": self._port,
            "--sandbox-port": self._sandbox_port,
            "--flower-port": self._flower_port,
        }
        return {option: port for option, port in own.items() if port is not None} | dict(self._others)

    def _start_flower(self, settings: Settings, port: int) -> None:
        credentials = flower.sign_in(settings, self._host)
        self.flower = flower.address_and_sign_in(credentials, HOST, port)
        self._run(
            "flower", commands.flower(self._host, port, ""), flower.environment(os.environ, credentials)
        )

    def _run(self, name: str, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        # In a session of its own: Ctrl-C reaches only the supervisor, which stops the parts in order.
        self._running[name] = subprocess.Popen(command, env=environment, start_new_session=True)

    def _wait_until_ready(self, *urls: str) -> None:
        give_up = time.monotonic() + START_SECONDS
        while any(local_http.fault(url, seconds=ANSWER_SECONDS) for url in urls):
            self._check()
            if time.monotonic() > give_up:
                raise click.ClickException(f"not ready after {START_SECONDS:.0f} seconds; the log is above")
            time.sleep(0.1)

    def _check(self) -> None:
        for name, part in self._running.items():
            if part.poll() is not None:
                raise click.ClickException(
                    f"{name} ended by itself (status {part.returncode}), so all parts were stopped. "
                    "If it gave a reason, it is in the log above."
                )


def sandbox_environment(url: str) -> dict[str, str]:
    """Settings that point at the sandbox instead of the real providers."""
    return {
        "ALMANAC_GOOGLE_API_URL": f"{url}/google/calendar/v3",
        "ALMANAC_GOOGLE_AUTH_URL": f"{url}/google/o/oauth2/v2/auth",
        "ALMANAC_GOOGLE_TOKEN_URL": f"{url}/google/token",
        "ALMANAC_GOOGLE_REVOKE_URL": f"{url}/google/revoke",
        "ALMANAC_GOOGLE_USERINFO_URL": f"{url}/google/userinfo",
        "ALMANAC_GOOGLE_DIRECTORY_URL": f"{url}/google/admin/directory/v1",
        "ALMANAC_MICROSOFT_GRAPH_URL": f"{url}/microsoft/v1.0",
        "ALMANAC_MICROSOFT_LOGIN_URL": f"{url}/microsoft",
        "ALMANAC_GOOGLE_CLIENT_ID": "sandbox",
        "ALMANAC_GOOGLE_CLIENT_SECRET": "sandbox",
        "ALMANAC_MICROSOFT_CLIENT_ID": "sandbox",
        "ALMANAC_MICROSOFT_CLIENT_SECRET": "sandbox",
    }


def use_sandbox(url: str) -> None:
    """Point the settings of this process, and of processes that it starts, at the sandbox."""
    for name, value in sandbox_environment(url).items():
        os.environ[name] = value
        # Both the variable and its file would be an error.
        os.environ.pop(f"{name}_FILE", None)


def _stop_order(name: str) -> int:
    return STOPPED_LATER.get(name.split()[0], 0)


def _wait_or_kill(part: subprocess.Popen[bytes], deadline: float) -> None:
    """Wait until a part has ended; kill it and its processes at ``deadline`` of the monotonic clock."""
    try:
        part.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        # Without its parent, a process of the web tier would keep the port open.
        os.killpg(part.pid, signal.SIGKILL)
        part.wait()


@contextlib.contextmanager
def _signals_ignored() -> Iterator[None]:
    """Ignore the signals that stop everything, within the block."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for each, handler in handlers.items():
            signal.signal(each, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
