"""Everything on one machine: started in order, watched, and ended together."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, TracebackType
from typing import Self

import click
import requests

from app.server import commands, flower
from store.config import embedded_redis
from store.config.settings import Settings, make_data_dir, read_settings
from store.stores import Stores

HOST = "127.0.0.1"

# Two processes of each: the web tier answers while one computes, the workers read on both cores.
WEB_PROCESSES = 2
WORKER_PROCESSES = 2

START_SECONDS = 60.0
STOP_SECONDS = 10.0


class Everything:
    """Web, workers and beat, Redis unless its URL is set, sandbox and Flower when asked for. A context."""

    def __init__(
        self,
        port: int,
        sandbox_port: int | None,
        flower_port: int | None = None,
        report: Callable[[str], object] = click.echo,
    ) -> None:
        self.url = f"http://{HOST}:{port}"
        self.sandbox_url = None if sandbox_port is None else f"http://{HOST}:{sandbox_port}"
        self._port = port
        self._sandbox_port = sandbox_port
        self._flower_port = flower_port
        # Where Flower is, and how to sign in to it.
        self.flower: str | None = None
        self._report = report
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        signal.signal(signal.SIGTERM, _interrupt)
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
        """Until Ctrl-C, or until a part ends by itself, which ends the others too."""
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                self._check()
                time.sleep(0.5)

    def stop(self) -> None:
        """End every part, the last started first; those that do not listen are killed."""
        # Who asks twice is not to leave half of them behind.
        with _deaf():
            self._stop()

    def _stop(self) -> None:
        give_up = time.monotonic() + STOP_SECONDS
        parts = [part for _, part in reversed(self._running.items())]
        self._running.clear()
        # Redis goes last: the others say goodbye to it.
        for part in parts[:-1]:
            part.terminate()
        for part in parts:
            try:
                if part is parts[-1]:
                    part.terminate()
                part.wait(max(0.1, give_up - time.monotonic()))
            except subprocess.TimeoutExpired:
                part.kill()
                part.wait()

    def _start(self) -> None:
        _require_free(self._port, "--port")
        if self._sandbox_port is not None:
            _require_free(self._sandbox_port, "--sandbox-port")
            use_sandbox(f"http://{HOST}:{self._sandbox_port}")
            # Where the sandbox sends notifications. Real providers send them to an https address alone, which
            # the operator sets; without one, people are sent back to the host by which they came.
            os.environ.setdefault("ALMANAC_PUBLIC_URL", self.url)
        if self._flower_port is not None:
            _require_free(self._flower_port, "--flower-port")
        settings = read_settings()
        # Its beat writes down there what it has started.
        make_data_dir(settings.data_dir)
        if settings.embedded_redis:
            self._report("Starting Redis ...")
            self._running["redis"] = embedded_redis.start(settings.data_dir, settings.redis_socket)
        self._report("Bringing the database up to date ...")
        with Stores(settings) as stores:
            stores.database.upgrade()
        if self._sandbox_port is not None:
            self._report("Starting the provider sandbox ...")
            self._run("sandbox", commands.sandbox(self._sandbox_port))
        self._report("Starting web, workers and beat ...")
        for number in range(1, WORKER_PROCESSES + 1):
            self._run(f"worker {number}", commands.worker(settings, f"worker{number}"))
        self._run("beat", commands.beat(settings))
        self._run("web", commands.web(HOST, self._port, WEB_PROCESSES))
        if self._flower_port is not None:
            self._start_flower(settings, self._flower_port)
        self._wait_until_ready()

    def _start_flower(self, settings: Settings, port: int) -> None:
        who = flower.sign_in(settings, HOST)
        self.flower = flower.invitation(who, HOST, port)
        self._run("flower", commands.flower(HOST, port, ""), flower.environment(os.environ, who))

    def _run(self, name: str, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        # A session of its own: Ctrl-C reaches us alone, and we end the parts in order.
        self._running[name] = subprocess.Popen(command, env=environment, start_new_session=True)

    def _wait_until_ready(self) -> None:
        give_up = time.monotonic() + START_SECONDS
        urls = [f"{self.url}/readyz"]
        if self.sandbox_url is not None:
            urls.append(f"{self.sandbox_url}/sandbox/health")
        if self._flower_port is not None:
            urls.append(f"http://{HOST}:{self._flower_port}/healthcheck")
        while not all(_answers(url) for url in urls):
            self._check()
            if time.monotonic() > give_up:
                raise click.ClickException(f"not ready after {START_SECONDS:.0f} seconds; the log is above")
            time.sleep(0.1)

    def _check(self) -> None:
        for name, part in self._running.items():
            if part.poll() is not None:
                raise click.ClickException(f"{name} ended by itself (status {part.returncode}); see above")


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except requests.RequestException:
        return False


def _require_free(port: int, option: str) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise click.ClickException(f"Port {port} is in use; choose another with {option}") from error


def sandbox_environment(url: str) -> dict[str, str]:
    """Settings that point at the sandbox instead of the real providers."""
    return {
        "ALMANAC_GOOGLE_API_URL": f"{url}/google/calendar/v3",
        "ALMANAC_GOOGLE_AUTH_URL": f"{url}/google/o/oauth2/v2/auth",
        "ALMANAC_GOOGLE_TOKEN_URL": f"{url}/google/token",
        "ALMANAC_GOOGLE_REVOKE_URL": f"{url}/google/revoke",
        "ALMANAC_GOOGLE_USERINFO_URL": f"{url}/google/userinfo",
        "ALMANAC_MICROSOFT_GRAPH_URL": f"{url}/microsoft/v1.0",
        "ALMANAC_MICROSOFT_LOGIN_URL": f"{url}/microsoft",
        "ALMANAC_GOOGLE_CLIENT_ID": "sandbox",
        "ALMANAC_GOOGLE_CLIENT_SECRET": "sandbox",
        "ALMANAC_MICROSOFT_CLIENT_ID": "sandbox",
        "ALMANAC_MICROSOFT_CLIENT_SECRET": "sandbox",
    }


def use_sandbox(url: str) -> None:
    """Point the settings of this process, and of those that it starts, at the sandbox."""
    for name, value in sandbox_environment(url).items():
        os.environ[name] = value
        # A file would compete with it.
        os.environ.pop(f"{name}_FILE", None)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Nobody interrupts this block."""
    heard = {each: signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in heard.items():
            signal.signal(each, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
