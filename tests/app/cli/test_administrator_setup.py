"""Administrators created on the command line."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.dashboard.sign_in import passwords
from tests.app.cli.test_commands import almanac

PASSWORD = "seven quiet calendars"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with an empty database."""
    assert almanac("db", "upgrade", data=tmp_path).exit_code == 0
    return tmp_path


def create(data: Path, name: str, password: str = PASSWORD):
    return almanac("admins", "create", name, "--password", password, data=data)


def rows(data: Path, query: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(data / "almanac.db")) as database, database:
        return database.execute(query).fetchall()


def names(data: Path) -> list[str]:
    return [line.partition("  ")[0] for line in almanac("admins", "list", data=data).stdout.splitlines()]


def test_an_administrator_is_created_listed_and_removed(data):
    create(data, "grace")
    created = create(data, "ada")

    assert (created.exit_code, created.stdout) == (0, "ada can sign in now\n")
    listed = almanac("admins", "list", data=data).stdout.splitlines()[1]
    assert re.fullmatch(r"ada  administrator, since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", listed)
    removed = almanac("admins", "remove", "ada", data=data)
    assert (removed.exit_code, removed.stdout) == (
        0,
        "ada is removed, and open links and invitations of that person are withdrawn\n",
    )
    assert names(data) == ["grace"]
    again = almanac("admins", "remove", "ada", data=data)
    assert (again.exit_code, again.stderr) == (1, "Error: There is no administrator ada\n")
    deeds = rows(data, "SELECT actor, action, subject FROM audit_records ORDER BY id")
    assert deeds == [
        ("command line", "createAdministrator", "grace"),
        ("command line", "createAdministrator", "ada"),
        ("command line", "removeAdministrator", "ada"),
    ]


def test_the_password_is_prompted_twice_and_never_shown(data):
    result = almanac("admins", "create", "ada", data=data, typed=f"{PASSWORD}\n{PASSWORD}\n")

    assert result.exit_code == 0
    assert PASSWORD not in result.output
    ((stored,),) = rows(data, "SELECT password_hash FROM administrators")
    assert passwords.matches(PASSWORD, stored)


@pytest.mark.slow
def test_a_name_that_exists_gets_another_password_and_is_signed_out(data):
    create(data, "ada")
    with closing(sqlite3.connect(data / "almanac.db")) as database, database:
        database.execute(
            "INSERT INTO dashboard_sessions (id, digest, administrator_id, created_at, seen_at, expires_at,"
            " address, agent) SELECT 'x', 'x', id, created_at, created_at, '2199-01-01', '', ''"
            " FROM administrators"
        )

    changed = create(data, "ada", "eight louder calendars")

    assert changed.stdout == "ada has another password now\n"
    assert names(data) == ["ada"]
    ((stored,),) = rows(data, "SELECT password_hash FROM administrators")
    assert passwords.matches("eight louder calendars", stored)
    assert rows(data, "SELECT id FROM dashboard_sessions") == []


@pytest.mark.parametrize(
    ("name", "password", "message"),
    [
        ("ada", "short", "The password must have at least 12 characters"),
        ("ada", "ababababababab", "The password must have at least 5 different characters"),
        ("", PASSWORD, "The name must have 2 to 128 characters"),
        ("a" * 129, PASSWORD, "The name must have 2 to 128 characters"),
        ("a\nb", PASSWORD, "The name must not contain control characters"),
    ],
)
def test_invalid_name_or_password_creates_no_administrator(data, name, password, message):
    refused = create(data, name, password)

    assert refused.exit_code == 2
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr
    assert names(data) == []


@pytest.mark.parametrize(
    ("options", "settings", "where"),
    [
        ((), {}, "http://127.0.0.1:8080"),
        (("--url", "https://almanac.example"), {}, "https://almanac.example"),
        (("--url", "https://almanac.example/"), {}, "https://almanac.example"),
        ((), {"ALMANAC_PUBLIC_URL": "https://public.example"}, "https://public.example"),
        (
            ("--url", "https://asked.example"),
            {"ALMANAC_PUBLIC_URL": "https://public.example"},
            "https://asked.example",
        ),
    ],
)
def test_a_link_is_printed_alone_and_kept_as_a_hash(data, options, settings, where):
    printed = almanac("admins", "invite", *options, data=data, **settings)

    assert re.fullmatch(rf"{re.escape(where)}/dashboard/welcome/[\w-]{{43}}\n", printed.stdout)
    ((digest,),) = rows(data, "SELECT digest FROM invitations")
    assert digest not in printed.stdout
    assert printed.stdout.strip().rpartition("/")[2] not in str(rows(data, "SELECT * FROM audit_records"))


def test_no_link_is_made_while_passwords_are_turned_off(data):
    off = {
        "ALMANAC_PASSWORD_SIGN_IN": "false",
        "ALMANAC_OIDC_ISSUER": "https://login.example.com",
        "ALMANAC_OIDC_CLIENT_ID": "almanac",
        "ALMANAC_OIDC_CLIENT_SECRET": "planted-openid-secret",
        "ALMANAC_OIDC_ROLES": "admins=administrator",
    }

    refused = almanac("admins", "invite", data=data, **off)
    created = almanac("admins", "create", "ada", "--password", PASSWORD, data=data, **off)

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "give the person a group that ALMANAC_OIDC_ROLES names" in refused.stderr
    assert rows(data, "SELECT digest FROM invitations") == []
    assert created.stdout == "ada can sign in once ALMANAC_PASSWORD_SIGN_IN=true\n"


def test_removing_an_administrator_withdraws_open_invitations_of_the_command_line(data):
    create(data, "grace")
    create(data, "ada")
    almanac("admins", "invite", data=data)
    almanac("admins", "invite", data=data)
    assert len(rows(data, "SELECT digest FROM invitations")) == 2

    almanac("admins", "remove", "ada", data=data)

    assert rows(data, "SELECT digest FROM invitations") == []


@pytest.mark.slow
def test_a_person_is_created_and_invited_with_a_role_and_gets_another(data):
    create(data, "ada")
    made = almanac("admins", "create", "bob", "--password", PASSWORD, "--role", "viewer", data=data)
    almanac("admins", "invite", "--role", "operator", data=data)

    assert (made.exit_code, rows(data, "SELECT role FROM invitations")) == (0, [("operator",)])
    changed = almanac("admins", "role", "bob", "operator", data=data)

    assert (changed.exit_code, changed.stdout) == (0, "bob has the role operator now\n")
    assert rows(data, "SELECT name, role FROM administrators ORDER BY id") == [
        ("ada", "administrator"),
        ("bob", "operator"),
    ]
    # A promotion withdraws nothing.
    assert rows(data, "SELECT role FROM invitations") == [("operator",)]
    (change,) = rows(data, "SELECT changes FROM audit_records WHERE action = 'changeRole'")
    assert json.loads(change[0]) == {"role": ["viewer", "operator"]}
    # Another password keeps the role.
    create(data, "bob", "eight louder calendars")
    assert rows(data, "SELECT role FROM administrators WHERE name = 'bob'") == [("operator",)]
    assert almanac("admins", "role", "bob", "root", data=data).exit_code == 2
    assert almanac("admins", "role", "nobody", "viewer", data=data).exit_code == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("remove", "ada"),
        ("role", "ada", "operator"),
        ("create", "ada", "--password", PASSWORD, "--role", "viewer"),
    ],
)
def test_last_administrator_cannot_be_removed_or_demoted(data, words):
    create(data, "ada")
    almanac("admins", "create", "bob", "--password", PASSWORD, "--role", "operator", data=data)

    refused = almanac("admins", *words, data=data)

    assert refused.exit_code == 1
    assert refused.stderr == "Error: ada is the last administrator: make another one first\n"
    assert rows(data, "SELECT role FROM administrators WHERE name = 'ada'") == [("administrator",)]


def test_a_second_factor_is_reset(data):
    create(data, "ada")
    without = almanac("admins", "reset-second-factor", "ada", data=data)
    assert (without.exit_code, without.stderr) == (1, "Error: ada has no second factor\n")
    with closing(sqlite3.connect(data / "almanac.db")) as database, database:
        database.execute("UPDATE administrators SET sealed_totp_secret = x'01', last_totp_step = 7")
        database.execute("INSERT INTO recovery_codes SELECT id, 'x' FROM administrators")
    assert "ada  administrator, second factor, since" in almanac("admins", "list", data=data).stdout

    reset = almanac("admins", "reset-second-factor", "ada", data=data)

    assert (reset.exit_code, reset.stdout) == (0, "ada signs in with the password alone now\n")
    assert rows(data, "SELECT sealed_totp_secret, last_totp_step FROM administrators") == [(None, None)]
    assert rows(data, "SELECT * FROM recovery_codes") == []
    assert rows(data, "SELECT actor, action, subject FROM audit_records")[-1] == (
        "command line",
        "resetSecondFactor",
        "ada",
    )
