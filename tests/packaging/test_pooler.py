"""PostgreSQL behind a pooler in transaction mode, as docs/operate/scale.md describes it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import ProgrammingError

from providers.sandbox.client import Sandbox
from store.config import service_urls
from tests.databases import opened
from tests.faults import servers
from tests.faults.installation import broken, server_folder
from tests.faults.measured import nothing_lost
from tests.faults.questions import Verdict
from tests.faults.servers import PgBouncer, PostgreSQL

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def pooled() -> Iterator[tuple[PostgreSQL, PgBouncer]]:
    """A PostgreSQL and a pooler in front of it; neither is started."""
    servers.postgresql().require()
    servers.pgbouncer().require()
    with ExitStack() as closing:
        database = PostgreSQL(closing.enter_context(server_folder("postgresql")))
        folder = closing.enter_context(server_folder("pgbouncer"))
        folder.chmod(0o755)
        yield database, PgBouncer(folder, database)


def test_an_installation_works_behind_a_pooler(pooled, environment, sandbox_process, tmp_path):
    """All its processes together use the few connections of the pooler."""
    database, pooler = pooled
    redis = servers.Redis(tmp_path)
    own = {"beyond": database, "database": pooler, "redis": redis}
    folder = tmp_path / "pooled"
    folder.mkdir()
    with broken(environment, Sandbox(sandbox_process), folder, own) as world:
        world.begin()
        witness = world.witness("pooled")
        witness.wait_for_recovery(60)
        with witness:
            witness.run_for(10)
        with psycopg.connect(database.url) as there:
            used = there.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            ).fetchone()
        assert not witness.wrong
        assert set(witness.outcomes()) == {Verdict.RIGHT}
        nothing_lost(world, witness, "pooled")
        # This connection is none of the pooler's.
        assert used is not None
        assert 1 < used[0] <= PgBouncer.CONNECTIONS + 1


@pytest.mark.parametrize(
    ("parameter", "fails"), [("prepare_threshold=none", False), ("prepare_threshold=5", True)]
)
def test_prepared_statements_need_a_connection_of_their_own(pooled, parameter, fails):
    database, pooler = pooled
    with ExitStack() as closing:
        for server in (database, pooler):
            closing.callback(server.stop)
            server.start()
        url = make_url(service_urls.database(pooler.url)).update_query_string(parameter)
        with opened(url.render_as_string()) as behind:

            def work(number: int) -> int:
                errors = 0
                for _ in range(50):
                    try:
                        # A session that reads rolls back, and psycopg then forgets its prepared statements.
                        with behind.writing() as session:
                            query = text("SELECT CAST(:number AS integer)")
                            assert session.execute(query, {"number": number}).scalar() == number
                    except ProgrammingError:
                        # A prepared statement exists already, or does not exist.
                        errors += 1
                return errors

            with ThreadPoolExecutor(20) as threads:
                errors = sum(threads.map(work, range(20)))
    assert (errors > 0) == fails
