"""``almanac db copy``: a service that starts on the copy reads every token."""

from __future__ import annotations

import secrets

import pytest
from click.testing import CliRunner

from app.cli.main import main
from store.coordination.heartbeats import Heartbeats, LiveProcesses
from store.stores import Stores
from tests.conftest import Api, settings_of
from tests.databases import new_database


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_service_on_the_copy_reads_every_token(tmp_path, kind: str, new_app, settings, monkeypatch):
    ours = {"ALMANAC_DATA_DIR": str(tmp_path / "data")}
    before = settings_of(ours)
    with Stores(before) as stores:
        stores.database.upgrade()
    here = new_app(database_url=before.database_url, encryption_keys=before.encryption_keys)
    runner = CliRunner()
    monkeypatch.setenv("ALMANAC_DATA_DIR", ours["ALMANAC_DATA_DIR"])
    key = runner.invoke(main, ["keys", "create", "all", "--show-tokens"]).stdout.strip()
    api = Api(here.test_client(), key)
    tokens = {}
    for number in range(30):
        user = f"user-{number}"
        tokens[user] = {"accessToken": secrets.token_hex(40), "refreshToken": secrets.token_hex(20)}
        assert api.post("/users", {"id": user}).status_code == 201
        stored = api.post(f"/users/{user}/oauth/google", {**tokens[user], "scope": ["openid"]})
        assert stored.status_code == 201, stored.text

    with new_database(kind, tmp_path) as url:
        copied = runner.invoke(main, ["db", "copy", "--to", url])
        assert copied.exit_code == 0, copied.output
        assert "rows are copied and compared" in copied.stdout
        again = runner.invoke(main, ["db", "copy", "--to", url])
        assert again.exit_code == 1
        assert "has rows in" in again.output

        there = new_app(database_url=url, encryption_keys=before.encryption_keys)
        moved = Api(there.test_client(), key)
        for user, wanted in tokens.items():
            found = moved.get(f"/users/{user}/oauth/google", showToken="true").json["data"]
            assert {name: found[name] for name in wanted} == wanted
        assert moved.post("/users", {"id": "new"}).status_code == 201
        there.extensions["almanac"].stores.close()


def test_a_copy_is_refused_while_a_worker_runs(tmp_path, settings, environment, monkeypatch):
    target = tmp_path / "copy.db"
    with Stores(settings) as stores:
        stores.database.upgrade()

    def copy(*workers):
        alive = LiveProcesses(dict.fromkeys(workers, (0, 64)), None)
        monkeypatch.setattr(Heartbeats, "live_processes", lambda _: alive)
        return CliRunner().invoke(main, ["db", "copy", "--to", f"sqlite:///{target}"], env=environment)

    refused = copy("celery@worker1")
    assert refused.exit_code == 1
    assert "The service runs (celery@worker1)" in refused.output
    assert not target.exists()

    copied = copy()
    assert copied.exit_code == 0, copied.output
    assert "keep ALMANAC_SECRET_KEY and ALMANAC_ENCRYPTION_KEYS" in copied.stdout
