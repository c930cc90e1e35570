"""The Redis that comes along."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from redis import Redis

from store import embedded_redis
from store.embedded_redis import NoRedis


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


def test_one_that_cannot_start_says_where_to_look(tmp_path: Path):
    with pytest.raises(NoRedis, match=r"redis\.log"):
        embedded_redis.start(tmp_path, tmp_path / "no-such-folder" / "redis.sock")
