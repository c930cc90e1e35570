"""PostgreSQL that crashes and restarts: no request is answered over a dead connection."""

from __future__ import annotations

import psycopg
import pytest

from tests.faults.measured import AT_ONCE, BACK
from tests.faults.questions import Verdict
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


def connections(database):
    """When the server was started, and the processes in it that serve the installation."""
    with psycopg.connect(database.url) as connection:
        (started,) = connection.execute("SELECT pg_postmaster_start_time()").fetchone()
        clients = "backend_type = 'client backend' AND pid <> pg_backend_pid()"
        found = connection.execute(f"SELECT pid FROM pg_stat_activity WHERE {clients}")
        return started, {pid for (pid,) in found}


def test_postgresql_is_restarted(world, fault):
    database = world.servers["database"]
    with fault(
        world,
        "PostgreSQL crashes and is started at once, twice",
        sees=set(),
        may={"502", "503", Verdict.PARTIAL},
    ) as case:
        starts = set()
        for _ in range(2):
            started, serving = until(lambda: (found := connections(database))[1] and found, BACK)
            starts.add(started)
            database.stop()
            database.start()
            # No server process from before is left.
            assert not serving & connections(database)[1]
            case.run_for(2.0)
        case.wait_for_recovery(within=AT_ONCE)
        assert len(starts | {connections(database)[0]}) == 3
