"""Connections and their tokens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from store.security.crypto import Keyring, Undecipherable
from store.sql.database import Database
from store.sql.models import OAuthConnection, User, now
from store.sql.queries import connection_rows, connections, users
from store.sql.queries.connection_rows import Tokens

SOON = datetime(2026, 11, 20, tzinfo=UTC)
TOKENS = Tokens("planted-access", "planted-refresh", SOON)


@pytest.fixture
def user_id(fresh_database: Database) -> int:
    with fresh_database.writing() as session:
        user = User(custom_id="ada")
        session.add(user)
    return user.id


def put(
    database: Database, keyring: Keyring, user_id: int, tokens: Tokens = TOKENS
) -> tuple[str, str | None]:
    with database.writing() as session:
        row, replaced = connections.replace(
            session,
            keyring,
            user_id=user_id,
            provider="google",
            email="ada@example.com",
            scope=["calendar"],
            tokens=tokens,
        )
    return row.id, replaced[0].id if replaced else None


def test_tokens_are_sealed_in_the_database(fresh_database, keyring, user_id):
    put(fresh_database, keyring, user_id)

    with fresh_database.engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM oauth_connections")).one()
    stored = b"".join(bytes(value) for value in row if isinstance(value, bytes | memoryview))
    assert len(stored) > len("planted-access" + "planted-refresh")
    assert b"planted" not in stored
    assert "planted" not in str(row)


def test_credentials_open_what_was_stored_and_show_nothing(fresh_database, keyring, user_id):
    connection_id, _ = put(fresh_database, keyring, user_id)

    with fresh_database.reading() as session:
        row = connection_rows.sealed(session, [connection_id])[connection_id]
    credentials = connection_rows.open_credentials(row, keyring)

    assert credentials.tokens == TOKENS
    assert "planted" not in repr(credentials)


def test_tokens_copied_to_another_row_do_not_open(fresh_database, keyring, user_id):
    put(fresh_database, keyring, user_id)
    with fresh_database.writing() as session:
        session.execute(text("UPDATE oauth_connections SET id = 'other'"))

    with fresh_database.reading() as session:
        row = connection_rows.sealed(session, ["other"])["other"]
    with pytest.raises(Undecipherable):
        connection_rows.open_credentials(row, keyring)


def test_posting_again_replaces_under_a_new_id(fresh_database, keyring, user_id):
    first, replaced_at_first = put(fresh_database, keyring, user_id)
    second, replaced = put(fresh_database, keyring, user_id, Tokens("newer", None, None))

    assert replaced_at_first is None
    assert replaced == first != second
    with fresh_database.reading() as session:
        assert list(connection_rows.sealed(session, [first, second])) == [second]


def test_renewing_revives_and_a_removed_connection_stays_removed(fresh_database, keyring, user_id):
    connection_id, _ = put(fresh_database, keyring, user_id)
    with fresh_database.writing() as session:
        connections.mark_dead(session, connection_id, "the grant has ended")
    with fresh_database.reading() as session:
        assert connection_rows.of_user(session, "ada", organization_id=None)[0].alive is False

    with fresh_database.writing() as session:
        connections.renew(session, keyring, connection_id, Tokens("newer", "rotated", SOON))
    with fresh_database.reading() as session:
        ref = connection_rows.of_user(session, "ada", organization_id=None)[0]
        assert ref.alive is True

    with fresh_database.writing() as session:
        connections.remove(session, [connection_id])
    with fresh_database.writing() as session:
        connections.renew(session, keyring, connection_id, TOKENS)
    with fresh_database.reading() as session:
        assert connection_rows.of_user(session, "ada", organization_id=None) == []


def ended(database, connection_id):
    with database.reading() as session:
        row = session.get_one(OAuthConnection, connection_id)
    return row.alive, row.ended_at, row.ended_because


def test_end_time_and_reason_are_kept_until_connection_is_revived(fresh_database, keyring, user_id):
    connection_id, _ = put(fresh_database, keyring, user_id)
    assert ended(fresh_database, connection_id) == (True, None, None)
    before = now()
    for because in ("Google says so", "Google says so again"):
        with fresh_database.writing() as session:
            connections.mark_dead(session, connection_id, because)

    alive, ended_at, ended_because = ended(fresh_database, connection_id)
    assert (alive, ended_because) == (False, "Google says so")
    assert before <= ended_at <= now()

    with fresh_database.writing() as session:
        connections.renew(session, keyring, connection_id, TOKENS)
    assert ended(fresh_database, connection_id) == (True, None, None)


def test_a_connection_in_the_place_of_a_dead_one_has_not_ended(fresh_database, keyring, user_id):
    connection_id, _ = put(fresh_database, keyring, user_id)
    with fresh_database.writing() as session:
        connections.mark_dead(session, connection_id, "Google says so")

    another, _ = put(fresh_database, keyring, user_id)

    assert ended(fresh_database, another) == (True, None, None)


def test_a_reason_of_any_length_fits(fresh_database, keyring, user_id):
    connection_id, _ = put(fresh_database, keyring, user_id)
    with fresh_database.writing() as session:
        connections.mark_dead(session, connection_id, "because " * 100)

    assert ended(fresh_database, connection_id)[2] == ("because " * 100)[:300]


def test_unknown_user_differs_from_user_without_connections(fresh_database, user_id):
    with fresh_database.reading() as session:
        assert connection_rows.of_user(session, "ada", organization_id=None) == []
        assert connection_rows.of_user(session, "nobody", organization_id=None) is None


@pytest.fixture
def expiring(fresh_database):
    """The ids of what expires between two moments."""

    def find(after: datetime, before: datetime, providers=("google",), limit=10) -> list[str]:
        with fresh_database.reading() as session:
            rows = connections.expiring(session, after=after, before=before, providers=providers, limit=limit)
        return [row.id for row in rows]

    return find


def test_expiring_finds_living_connections_that_can_be_refreshed(fresh_database, keyring, user_id, expiring):
    connection_id, _ = put(fresh_database, keyring, user_id)
    second, day = timedelta(seconds=1), timedelta(days=1)

    assert expiring(SOON - day, SOON) == expiring(SOON, SOON + day) == []
    assert expiring(SOON - second, SOON + second) == [connection_id]
    assert expiring(SOON - day, SOON + day, providers=["microsoft"]) == []
    assert expiring(SOON - day, SOON + day, providers=[]) == []
    with fresh_database.writing() as session:
        connections.mark_dead(session, connection_id, "the grant has ended")
    assert expiring(SOON - day, SOON + day) == []
    put(fresh_database, keyring, user_id, Tokens("access", None, SOON))
    assert expiring(SOON - day, SOON + day) == []


def test_of_what_expires_the_latest_comes_first(fresh_database, keyring, expiring):
    ids = []
    for minutes in (1, 3, 2):
        with fresh_database.writing() as session:
            user = User(custom_id=f"user-{minutes}")
            session.add(user)
        tokens = Tokens("access", "refresh", SOON + timedelta(minutes=minutes))
        ids.append(put(fresh_database, keyring, user.id, tokens)[0])

    assert expiring(SOON, SOON + timedelta(hours=1), limit=2) == [ids[1], ids[2]]


def test_ids_outside_an_organization_are_unknown_to_its_key(fresh_database, user_id):
    with fresh_database.reading() as session:
        assert users.ids(session, ["ada"], organization_id=None) == {"ada": user_id}
        assert users.ids(session, ["ada"], organization_id=12345) == {}


def test_a_connection_has_the_zone_that_its_first_read_has_stored(fresh_database, keyring, user_id):
    def zones():
        with fresh_database.reading() as session:
            return [each.time_zone for each in connection_rows.of_user(session, "ada", organization_id=None)]

    with fresh_database.writing() as session:
        _, microsoft = (
            connections.replace(
                session, keyring, user_id=user_id, provider=each, email=None, scope=[], tokens=TOKENS
            )[0].id
            for each in ("google", "microsoft")
        )
    assert zones() == [None, None]
    with fresh_database.writing() as session:
        connections.identify(
            session, microsoft, main_calendar_id="AAMk", mailbox=None, time_zone="Asia/Tokyo"
        )
    assert zones() == [None, "Asia/Tokyo"]
