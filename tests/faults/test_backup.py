"""The commands of docs/operate/backup.md: a backup under writes, the loss of everything, and the way back."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import psycopg
import pytest

from tests.docs.fences import ROOT, blocks
from tests.faults.measured import AFTER_A_LOSS, BACK, Measured, keep, nothing_lost
from tests.services import Service

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

# The purpose of the document's blocks, as their ``reason`` gives it.
OPERATIONS = {
    block.info.get("reason", "").partition(": ")[2]: block
    for block in blocks(ROOT / "docs/operate/backup.md")
}


def run(what: str, folder: Path, **environment: str) -> None:
    """A block of the document, in a folder in which its files are."""
    ran = subprocess.run(
        ["bash", "-euc", OPERATIONS[what].text],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


def restored_after_a_loss(world, test, what, back_up, lose, restore):
    world.begin()
    installation = world.installation
    with world.witness(f"{world.slug}-kept") as witness:
        witness.run_for(2.0)
        before = [write for write in witness.writes if write.done]
        back_up()
        witness.run_for(1.0)
    assert len(before) > 3
    for part in list(installation.parts):
        installation.stop(part)
    installation.stores.close()

    lose()
    began = time.monotonic()
    restore()
    world.servers["redis"].order("FLUSHALL")
    installation.stores.database.upgrade()
    world.repair()
    with world.witness("after") as after:
        after.wait_for_recovery(BACK)
        back = time.monotonic() - began
    assert back < AFTER_A_LOSS
    assert not after.wrong, after.wrong

    # The key, the members, and the users whose creation was answered before the backup began.
    users = {each["id"] for each in installation.get("/users").json()["data"]}
    assert {write.body["id"] for write in before if "id" in write.body} <= users
    members = installation.get(f"/organizations/{world.slug}/members").json()["data"]
    assert {each["id"] for each in members} == set(world.people)
    assert all(each["oauthConnections"][0]["alive"] for each in members)
    # A repetition gets the earlier answer, and creates nothing.
    with after.session() as session:
        for write in before[:3]:
            assert after.send(write, session) == "201"
    # Nor does one that the restored database lacks: its event is at the provider already.
    after.repeat(witness.writes)
    nothing_lost(world, witness, witness.name)
    seen = dict(after.outcomes())
    lost = "what was written after the backup"
    keep(Measured(test, what, seen, round(after.slowest(), 1), round(back, 1), len(before), 0, lost))


def test_postgresql_is_restored(world, request, tmp_path):
    for program in ("pg_dump", "psql"):
        Service(program, shutil.which(program)).require()
    url = world.servers["database"].url
    addresses = {"ALMANAC_DATABASE_URL": url}

    def lose():
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")

    restored_after_a_loss(
        world,
        request.node.nodeid.removeprefix("tests/faults/"),
        "PostgreSQL is lost, and restored from a backup made under writes",
        lambda: run("backup of PostgreSQL", tmp_path, **addresses),
        lose,
        lambda: run("restoring PostgreSQL", tmp_path, **addresses),
    )


def test_sqlite_is_restored(small, request, tmp_path):
    Service("sqlite3", shutil.which("sqlite3")).require()
    folder = small.installation.folder
    # The document's folder.
    (tmp_path / ".almanac").symlink_to(folder)

    def lose():
        for file in folder.glob("almanac.db*"):
            file.write_bytes(b"lost")

    restored_after_a_loss(
        small,
        request.node.nodeid.removeprefix("tests/faults/"),
        "SQLite is lost, and restored from a backup made under writes",
        lambda: run("backup of SQLite", tmp_path),
        lose,
        lambda: run("restoring SQLite", tmp_path),
    )
