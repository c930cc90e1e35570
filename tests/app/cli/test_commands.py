"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import pytest
import requests
from alembic import command
from click.testing import CliRunner, Result
from sqlalchemy import text

from app.cli.main import main
from app.server.supervisor import sandbox_environment
from store.config.settings import new_secrets
from store.sql.database import Database, alembic_config
from tests import services
from tests.databases import opened, own_postgresql
from tests.installation.processes import free_port

pytestmark = pytest.mark.slow

ALMANAC = Path(sys.executable).parent / "almanac"


def clean_environment(**ours: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")} | ours


def almanac(*arguments: str, data: Path, typed: str | None = None, **settings: str) -> Result:
    """Run a command in this process, because starting another takes longer than the command."""
    unset = dict.fromkeys((name for name in os.environ if name.startswith("ALMANAC_")), None)
    environment = {**unset, "ALMANAC_DATA_DIR": str(data), **settings}
    logged = logging.getLogger().handlers[:]
    try:
        return CliRunner().invoke(main, list(arguments), input=typed, env=environment)
    finally:
        logging.getLogger().handlers[:] = logged


def test_doctor_without_installation_fails_and_creates_nothing(tmp_path: Path):
    folder = tmp_path / "elsewhere"

    found = almanac("doctor", data=folder)

    assert found.exit_code == 1
    assert f"There is no installation in {folder}" in found.stdout
    assert "or name its data folder: --data" in found.stdout
    assert not folder.exists()


@pytest.mark.parametrize(
    "words",
    [("keys", "create", "billing"), ("keys", "list"), ("keys", "revoke", "billing"), ("admins", "invite")],
    ids=" ".join,
)
def test_a_command_for_an_installation_that_was_never_started_says_so_and_creates_nothing(
    words: tuple[str, ...], tmp_path: Path
):
    folder = tmp_path / "elsewhere"

    refused = almanac(*words, data=folder)

    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"Error: There is no installation in {folder} yet: start almanac up")
    assert "--data" in refused.stderr
    assert not folder.exists()


def test_a_command_leaves_the_files_of_another_program_alone(tmp_path: Path):
    """The folder of an installation whose settings are elsewhere, as cron runs a command."""
    (tmp_path / "flower.db").touch()

    refused = almanac("grants", "import", "acme", "google", data=tmp_path)

    assert refused.stderr.startswith(f"Error: There is no installation in {tmp_path} yet")
    assert [each.name for each in tmp_path.iterdir()] == ["flower.db"]


def test_the_doctor_names_the_embedded_redis_that_has_ended(tmp_path: Path):
    assert almanac("db", "upgrade", data=tmp_path).exit_code == 0

    found = almanac("doctor", "--json", data=tmp_path)

    advice = {each["name"]: each["advice"] for each in json.loads(found.stdout)["checks"]}
    assert advice["redis"] == f"Start almanac up: the Redis in {tmp_path} does not run"


def test_a_key_is_printed_alone_listed_by_its_start_and_revoked(tmp_path: Path):
    assert almanac("db", "upgrade", data=tmp_path).exit_code == 0

    created = almanac("keys", "create", "billing", "--read-only", data=tmp_path)

    key = created.stdout.strip()
    assert re.fullmatch(r"alm_[A-Za-z0-9_-]{32}", key)
    assert created.stdout == f"{key}\n"
    listed = almanac("keys", "list", data=tmp_path).stdout
    assert key not in listed
    assert key[:12] in listed
    assert "billing" in listed
    assert "read-only" in listed
    assert "1 key revoked" in almanac("keys", "revoke", key, data=tmp_path).stdout
    assert "revoked" in almanac("keys", "list", data=tmp_path).stdout
    again = almanac("keys", "revoke", key, data=tmp_path)
    assert again.exit_code == 1
    assert "No key in force" in again.stderr


def test_a_database_that_a_later_version_has_migrated_stays_as_it_is(tmp_path: Path):
    """A supervisor that starts a process of the old version again migrates first, during an upgrade too."""
    almanac("db", "upgrade", data=tmp_path)
    with closing(sqlite3.connect(tmp_path / "almanac.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")

    again = almanac("db", "upgrade", data=tmp_path)

    assert (again.exit_code, again.stdout) == (
        0,
        "A later version has migrated the database, so no migration is missing\n",
    )


def test_key_list_shows_rights_expiry_and_last_use(tmp_path: Path):
    almanac("db", "upgrade", data=tmp_path)
    almanac("keys", "create", "plain", data=tmp_path)
    almanac("keys", "create", "audit", "--show-tokens", "--expires", "2199-01-01", data=tmp_path)
    almanac("keys", "create", "guest", "--read-only", "--expires", "2199-01-01T02:00:00+02:00", data=tmp_path)
    with closing(sqlite3.connect(tmp_path / "almanac.db")) as database, database:
        database.execute("UPDATE api_keys SET expires_at = '2020-01-01 00:00:00' WHERE name = 'guest'")
        database.execute("UPDATE api_keys SET last_used_at = '2026-11-20 09:30:59' WHERE name = 'audit'")

    listed = almanac("keys", "list", data=tmp_path).stdout.splitlines()

    assert [line.split("  ")[1:] for line in listed] == [
        ["plain", "everything", "full", "in force", "never used"],
        [
            "audit",
            "everything",
            "full, shows tokens",
            "in force until 2199-01-01T00:00:00Z",
            "last used 2026-11-20T09:30Z",
        ],
        ["guest", "everything", "read-only", "expired", "never used"],
    ]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2199-01-01", "2199-01-01T00:00:00Z"),
        ("2199-01-01T09:30:00", "2199-01-01T09:30:00Z"),
        ("2199-01-01T09:30:00+02:00", "2199-01-01T07:30:00Z"),
    ],
)
def test_a_key_may_expire(tmp_path: Path, written: str, kept: str):
    almanac("db", "upgrade", data=tmp_path)

    assert almanac("keys", "create", "guest", "--expires", written, data=tmp_path).exit_code == 0
    assert f"in force until {kept}" in almanac("keys", "list", data=tmp_path).stdout


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("2020-01-01", "must lie in the future"),
        ("tomorrow", "must be an ISO 8601 date"),
        ("2027-02-30", "does not exist"),
    ],
)
def test_a_key_that_expires_at_no_time_or_in_the_past_is_not_made(tmp_path: Path, written: str, message: str):
    almanac("db", "upgrade", data=tmp_path)

    refused = almanac("keys", "create", "guest", "--expires", written, data=tmp_path)

    assert refused.exit_code == 2
    assert message in refused.stderr
    assert almanac("keys", "list", data=tmp_path).stdout == ""


def test_a_whole_key_is_revoked_after_the_prefix_has_changed(tmp_path: Path):
    almanac("db", "upgrade", data=tmp_path)
    key = almanac("keys", "create", "billing", data=tmp_path).stdout.strip()

    revoked = almanac("keys", "revoke", key, data=tmp_path, ALMANAC_API_KEY_PREFIX="acme_live_")

    assert revoked.stdout == "1 key revoked\n"


def test_a_key_for_an_unknown_organization_is_refused_in_one_line(tmp_path: Path):
    almanac("db", "upgrade", data=tmp_path)

    refused = almanac("keys", "create", "billing", "--organization", "nobody", data=tmp_path)

    assert refused.exit_code == 1
    assert refused.stderr == "Error: There is no organization nobody\n"


def test_missing_production_secret_is_an_error_with_advice(tmp_path: Path):
    refused = almanac("db", "upgrade", data=tmp_path, ALMANAC_REDIS_URL="redis://127.0.0.1:1/0")

    assert refused.exit_code == 1
    assert "ALMANAC_SECRET_KEY and ALMANAC_ENCRYPTION_KEYS must be set" in refused.stderr
    assert "almanac keys secrets" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_database_without_tables_is_a_one_line_error_with_advice(tmp_path: Path):
    (tmp_path / "almanac.db").touch()
    refused = almanac("keys", "list", data=tmp_path)

    assert refused.exit_code == 1
    assert "run `almanac db upgrade`" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_a_migration_of_a_table_that_is_never_free_is_a_one_line_error_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    services.postgresql().require()
    monkeypatch.setitem(Database.upgrade.__kwdefaults__, "patience", 0.0)
    with own_postgresql() as url, opened(url) as database:
        with database.migrating() as connection:
            command.upgrade(alembic_config(connection), "0010")
        with database.engine.connect() as request:
            request.execute(text("SELECT count(*) FROM oauth_connections"))

            secret, encryption = new_secrets()
            result = almanac(
                "db",
                "upgrade",
                data=tmp_path,
                ALMANAC_DATABASE_URL=url,
                ALMANAC_SECRET_KEY=secret,
                ALMANAC_ENCRYPTION_KEYS=encryption,
            )

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "Look for it in pg_stat_activity, end it, and run the upgrade again" in result.stderr


def test_printed_secrets_are_taken_as_settings(tmp_path: Path):
    printed = almanac("keys", "secrets", data=tmp_path).stdout
    secrets = dict(line.split("=", 1) for line in printed.splitlines())
    database = f"sqlite:///{tmp_path / 'own.db'}"

    migrated = almanac("db", "upgrade", data=tmp_path, ALMANAC_DATABASE_URL=database, **secrets)

    assert migrated.exit_code == 0, migrated.stderr
    assert (tmp_path / "own.db").exists()


def test_the_settings_of_a_sandbox_that_runs_by_itself_are_printed_as_lines(tmp_path: Path):
    printed = almanac("sandbox", "--port", "18090", "--settings", data=tmp_path)

    assert printed.exit_code == 0, printed.output
    lines = dict(line.split("=", 1) for line in printed.stdout.splitlines())
    assert lines == sandbox_environment("http://127.0.0.1:18090")
    other = almanac("sandbox", "--host", "10.0.0.5", "--settings", data=tmp_path).stdout
    assert "ALMANAC_MICROSOFT_LOGIN_URL=http://10.0.0.5:8090/microsoft\n" in other


def test_the_version_is_printed(tmp_path: Path):
    assert almanac("--version", data=tmp_path).stdout == f"main {version('almanac')}\n"


def test_an_address_at_which_parts_cannot_call_each_other_is_refused(tmp_path: Path):
    refused = almanac("up", "--host", "192.0.2.1", data=tmp_path)

    assert refused.exit_code == 1
    assert "--host must be 127.0.0.1 (this machine) or 0.0.0.0 (all addresses)" in refused.stderr
    assert "almanac serve --host" in refused.stderr


class Demo:
    """The output of a running `almanac demo`."""

    def __init__(self) -> None:
        self.port = free_port()
        others = ["--sandbox-port", str(free_port()), "--booking-port", str(free_port())]
        self.process = subprocess.Popen(
            [str(ALMANAC), "demo", "--port", str(self.port), *others],
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.printed = ""

    def interrupt(self) -> None:
        """Send what Ctrl-C sends: SIGINT to the whole process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def read_until(self, text: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.printed += line
            if text in line:
                return
        assert self.process.stderr is not None
        pytest.fail(f"the demo ended: {self.process.stderr.read()}")


@pytest.mark.long
def test_demo_answers_its_printed_curl_line_and_cleans_up():
    demo = Demo()
    try:
        demo.read_until("Ctrl-C ends the demo")
        for step in ("Starting Redis", "Starting the provider sandbox", "Starting web", "Creating 10 people"):
            assert step in demo.printed
        line = re.search(r"curl .*?json\.tool\n", demo.printed, re.DOTALL)
        assert line is not None

        printed = subprocess.run(line[0], shell=True, capture_output=True, text=True, timeout=30, check=True)

        assert max(map(len, printed.stdout.splitlines())) < 100
        answer = json.loads(printed.stdout)
        ada, hana = answer["data"]
        assert len(ada["availableSlots"]) == 1
        assert (hana["userId"], hana["reason"]) == ("hana", "authorizationInvalid")
        ready = requests.get(f"http://127.0.0.1:{demo.port}/readyz", timeout=5).json()
        assert ready == {
            **dict.fromkeys(("status", "database", "redis", "worker", "beat"), "ok"),
            "reasons": {},
        }
        docs = requests.get(f"http://127.0.0.1:{demo.port}/v1/docs", timeout=5)
        assert docs.status_code == 200
        page = re.search(r"Booking page +(\S+)", demo.printed)
        assert page is not None
        assert "<h1" in requests.get(page[1], timeout=5).text
        key = re.search(r"API key +(\S+)", demo.printed)
        assert key is not None
        # One with two accounts, one at a CalDAV server, and one whose feed is gone.
        for user, providers, failed in (
            ("gabriel", ["google", "google"], []),
            ("noah", ["caldav"], []),
            ("liv", ["ics"], ["notFound"]),
        ):
            about = f"http://127.0.0.1:{demo.port}/v1/users/{user}"
            signed = {"Authorization": f"Bearer {key[1]}"}
            found = requests.get(f"{about}/connections", headers=signed, timeout=30).json()["data"]
            assert [each["provider"] for each in found] == providers
            day = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}"
            query = {"start": f"{day}T00:00:00Z", "end": f"{day}T23:00:00Z", "slotDuration": 30}
            slots = requests.get(f"{about}/scheduling", query, headers=signed, timeout=30).json()
            assert [each["reason"] for each in slots.get("failedCalendars", [])] == failed, slots
        event = {"subject": "Call", "start": "2036-11-25T09:00:00Z", "end": "2036-11-25T10:00:00Z"}
        requests.post(
            f"http://127.0.0.1:{demo.port}/v1/users/ada/calendar/events/google/primary",
            json=event,
            headers={"Authorization": f"Bearer {key[1]}"},
            timeout=30,
        ).raise_for_status()
        demo.read_until("webhook calendar.changed userId=ada provider=google")
    finally:
        demo.interrupt()
        time.sleep(0.3)
        # A second Ctrl-C leaves no process behind either.
        demo.interrupt()
        _, errors = demo.process.communicate(timeout=30)
    assert demo.process.returncode == 0, errors
    assert "Traceback" not in errors
    # Each part ends before the parts that it calls, so none reports that they are gone.
    assert "provider unreachable" not in errors
    assert "Connection" not in errors
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", demo.port)) != 0


@pytest.mark.long
@pytest.mark.parametrize("broker", ["redis", "rabbitmq"])
def test_everything_runs_on_services_of_the_machine(broker: str, tmp_path: Path):
    """Settings with PostgreSQL and Redis, and with Redis or RabbitMQ as the broker."""
    services.postgresql().require()
    services.redis_server().require()
    if broker == "rabbitmq":
        services.rabbitmq().require()
    printed = almanac("keys", "secrets", data=tmp_path).stdout
    with own_postgresql() as database:
        settings = dict(line.split("=", 1) for line in printed.splitlines()) | {
            "ALMANAC_DATABASE_URL": database,
            "ALMANAC_REDIS_URL": services.REDIS,
            "ALMANAC_BROKER_URL": services.RABBITMQ if broker == "rabbitmq" else services.REDIS,
        }
        port, sandbox_port = free_port(), free_port()
        command = [str(ALMANAC), "up", "--port", str(port), "--sandbox", "--sandbox-port", str(sandbox_port)]
        with subprocess.Popen(
            command,
            env=clean_environment(ALMANAC_DATA_DIR=str(tmp_path), **settings),
            stdout=subprocess.PIPE,
            text=True,
        ) as everything:
            try:
                assert everything.stdout is not None
                assert any("is ready" in line for line in everything.stdout)
                url = f"http://127.0.0.1:{sandbox_port}"
                seeded = almanac("seed", "demo", "--sandbox-url", url, data=tmp_path, **settings)
                assert seeded.exit_code == 0, seeded.stderr
                key = almanac("keys", "create", "test", data=tmp_path, **settings).stdout.strip()

                answer = requests.get(
                    f"http://127.0.0.1:{port}/v1/organizations/demo/scheduling",
                    params={"start": "2026-11-23", "end": "2026-11-24"},
                    headers={"Authorization": f"Bearer {key}"},
                    timeout=20,
                )

                assert answer.status_code == 200, answer.text
                assert answer.json()["data"]["availableSlots"]
                assert [failed["customId"] for failed in answer.json()["failedUsers"]] == ["hana"]
            finally:
                # RabbitMQ's run ends as when a terminal is closed.
                everything.send_signal(signal.SIGHUP if broker == "rabbitmq" else signal.SIGTERM)
                assert everything.wait(timeout=30) == 0
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize(("level", "then"), [("", "info"), ("error", "info"), ("debug", "debug")])
def test_verbose_is_inherited_and_never_raises_the_log_level(tmp_path, level, then):
    program = "import os, sys, app.cli.main; "
    program += "os.execve = lambda *_: print('level', os.environ['ALMANAC_LOG_LEVEL']); "
    program += "sys.argv = ['almanac', '--verbose', 'serve', '--port', '0']; app.cli.main.main()"

    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], "ALMANAC_DATA_DIR": str(tmp_path), "ALMANAC_LOG_LEVEL": level},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert ran.stdout == f"level {then}\n"


def test_verbose_replaces_a_level_that_is_kept_in_a_file(tmp_path):
    (tmp_path / "level").write_text("error\n")
    program = "import os, sys, app.cli.main; os.execve = lambda *_: print(os.environ['ALMANAC_LOG_LEVEL'], "
    program += "'ALMANAC_LOG_LEVEL_FILE' in os.environ); "
    program += "sys.argv = ['almanac', '--verbose', 'serve', '--port', '0']; app.cli.main.main()"
    given = {"ALMANAC_DATA_DIR": str(tmp_path), "ALMANAC_LOG_LEVEL_FILE": str(tmp_path / "level")}

    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": os.environ["PATH"], **given},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert ran.stdout == "info False\n"


def test_a_log_setting_that_is_no_word_of_ours_is_one_line(tmp_path):
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, app.cli.main; sys.argv = ['almanac', 'serve']; app.cli.main.main()",
        ],
        env={"PATH": os.environ["PATH"], "ALMANAC_DATA_DIR": str(tmp_path), "ALMANAC_LOG_FORMAT": "xml"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (ran.returncode, ran.stderr) == (1, "Error: ALMANAC_LOG_FORMAT must be one of text, json\n")


def test_seed_demo_without_sandbox_fails_with_advice(tmp_path: Path):
    assert almanac("db", "upgrade", data=tmp_path).exit_code == 0
    url = f"http://127.0.0.1:{free_port()}"

    seeded = almanac("seed", "demo", "--sandbox-url", url, data=tmp_path)

    assert seeded.exit_code == 1
    assert seeded.stderr.startswith(
        f"Error: No sandbox answers at {url}. Start one with almanac up --sandbox"
    )
    assert "Traceback" not in seeded.stderr
