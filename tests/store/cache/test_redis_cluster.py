"""Redis Cluster is not supported, as docs/operate/scale.md says: commands touch keys of several slots."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError, ResponseError

from store.cache.busy_cache import CalendarKey
from store.config import embedded_redis
from store.stores import Stores
from tests.conftest import settings_of
from tests.installation.processes import free_port, running, wait_until

DAY = 86_400_000

# Lua scripts and commands are refused in different words.
SEVERAL_SLOTS = r"(?i)slot"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster of one node, which has all slots."""
    port = free_port()
    command = [str(embedded_redis.binary()), "--port", str(port), "--save", "", "--cluster-enabled", "yes"]
    # By default 10 000 above, which may be no port.
    command += ["--cluster-port", str(free_port())]
    with (
        running(command, {}, subprocess.DEVNULL, tmp_path) as process,
        Redis(port=port, socket_timeout=10) as client,
    ):
        wait_until(lambda: _answers(client.ping), [process])
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        wait_until(lambda: client.cluster("info")["cluster_state"] == "ok", [process])
        yield f"redis://127.0.0.1:{port}/0"


def _answers(ping: Callable[[], object]) -> bool:
    try:
        ping()
    except RedisError:
        return False
    return True


@pytest.mark.slow
def test_a_cluster_refuses_what_reads_several_accounts(cluster, environment):
    changed = {"ALMANAC_REDIS_URL": cluster, "ALMANAC_DATABASE_URL": "sqlite://"}
    secrets = {"ALMANAC_SECRET_KEY": "s" * 32, "ALMANAC_ENCRYPTION_KEYS": "A" * 43 + "="}
    keys = [CalendarKey(connection, "primary") for connection in ("one", "two")]
    with Stores(settings_of(environment | changed | secrets)) as stores:
        with pytest.raises(ResponseError, match=SEVERAL_SLOTS):
            stores.busy.begin_reads([key.connection for key in keys], {})
        with pytest.raises(RedisError, match=SEVERAL_SLOTS):
            stores.busy.load(keys, 0, DAY)
