"""Servers that a test owns and may stop: Redis, PostgreSQL and RabbitMQ, each on its own port."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import redis

from store.config import embedded_redis
from tests.installation.processes import STOP_SECONDS, free_port, listens, wait_until
from tests.services import Service

RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class Server:
    """A server at ``url``, which stays the same however often it is stopped and started."""

    url: str

    def __init__(self, folder: Path, command: list[str], environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.command = command
        self.environment = os.environ | (environment or {})
        self.user: str | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Run it; returns when it answers."""
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command, env=self.environment, stdout=log, stderr=log, cwd=self.folder, user=self.user
            )
        wait_until(self.answers, [self._process], output=(self.folder / "server.log").read_text)

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it, as a crash does unless another signal is given."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(timeout=STOP_SECONDS)
            self._process = None

    @contextmanager
    def still(self) -> Iterator[None]:
        """Stopped (SIGSTOP) inside the block."""
        pid = self.pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def pid(self) -> int:
        """The process that serves."""
        assert self._process is not None
        return self._process.pid

    def answers(self) -> bool:
        """Whether it accepts connections."""
        return listens(urlsplit(self.url).port or 0)


class Redis(Server):
    """Nothing is persisted: it restarts empty."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        command = [str(embedded_redis.binary()), "--save", "", "--appendonly", "no", "--port"]
        super().__init__(folder, [*command, str(self.port)])

    def answers(self) -> bool:
        try:
            return bool(self.order("PING"))
        except redis.RedisError:
            return False

    def order(self, *words: str | int) -> Any:
        """Its answer to a command, on a connection of its own."""
        with redis.Redis(port=self.port, socket_timeout=10) as client:
            return client.execute_command(*words)

    def move(self, port: int | None = None) -> None:
        """Listen elsewhere from the next start on; ``url`` stays, for a proxy that listens there instead."""
        self.port = port or free_port()
        self.command[-1] = str(self.port)


class PostgreSQL(Server):
    """A cluster of its own."""

    def __init__(self, folder: Path) -> None:
        programs = postgresql_programs()
        assert programs is not None
        port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        data = folder / "data"
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(port), "-k", ""]
        super().__init__(folder, [*command, "-c", "listen_addresses=127.0.0.1"])
        if os.geteuid() == 0:
            # It refuses to run as root.
            self.user = "postgres"
            shutil.chown(folder, "postgres")
        made = [str(programs / "initdb"), "--auth", "trust", "--username", "postgres", "--no-sync", str(data)]
        subprocess.run(made, check=True, capture_output=True, user=self.user, cwd=folder)

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.Error:
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it at once, as a crash does: its children go with it, the next start recovers."""
        super().stop(how)


class PgBouncer(Server):
    """A pooler in transaction mode with few connections to the database of another server."""

    CONNECTIONS = 4

    def __init__(self, folder: Path, database: PostgreSQL) -> None:
        port, behind = free_port(), urlsplit(database.url)
        self.url = f"postgresql://postgres@127.0.0.1:{port}{behind.path}?prepare_threshold=none"
        configuration = folder / "pgbouncer.ini"
        (folder / "users").write_text('"postgres" ""\n')
        configuration.write_text(
            "[databases]\n"
            f"* = host=127.0.0.1 port={behind.port} user=postgres\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {folder / 'users'}\n"
            f"pool_mode = transaction\ndefault_pool_size = {self.CONNECTIONS}\nmax_client_conn = 800\n"
        )
        super().__init__(folder, [str(shutil.which("pgbouncer")), str(configuration)])
        if os.geteuid() == 0:
            # It refuses to run as root.
            self.user = "postgres"


class RabbitMQ(Server):
    """A node of its own."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{port}//"
        (folder / "plugins").write_text("[].")
        environment = {
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"almanac-{port}@localhost",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
        }
        super().__init__(folder, [str(RABBITMQ)], environment)

    def pid(self) -> int:
        """The pid of the node: the started process is a script, which waits for it."""
        return int((self.folder / "pid").read_text())

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Shut it down cleanly, which keeps durable messages."""
        super().stop(how)


def postgresql_programs() -> Path | None:
    """Where the programs of the newest PostgreSQL are, its server among them."""
    on_path = shutil.which("initdb")
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda each: each.parts[4])
    found = Path(on_path) if on_path else packaged[-1] if packaged else None
    return found.parent if found else None


def postgresql() -> Service:
    """The server's programs, by their folder."""
    programs = postgresql_programs()
    return Service("PostgreSQL's server", str(programs) if programs else None)


def pgbouncer() -> Service:
    """The pooler, by its path."""
    return Service("PgBouncer", shutil.which("pgbouncer"))


def rabbitmq() -> Service:
    """The server, by its path."""
    return Service("RabbitMQ's server", str(RABBITMQ) if RABBITMQ.exists() else None)
