"""PostgreSQL that crashes and comes back: every connection has died, and none is answered with."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


def test_postgresql_is_gone_for_a_while(world, fault):
    database = world.servers["database"]
    with fault(
        world,
        "PostgreSQL crashes, and is started three seconds later",
        sees={"503"},
        may={"502", "names what it could not read"},
    ) as case:
        database.stop()
        case.look(3.0)
        case.until_seen()
        database.start()
        case.back()


def test_postgresql_is_restarted(world, fault):
    database = world.servers["database"]
    with fault(
        world,
        "PostgreSQL crashes and is started at once, twice",
        sees=set(),
        may={"502", "503", "names what it could not read"},
    ) as case:
        for _ in range(2):
            database.stop()
            database.start()
            case.look(2.0)
        case.back()
