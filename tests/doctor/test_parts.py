"""`almanac doctor` names each broken part, with advice."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace

import psycopg
import pytest
from sqlalchemy import text

from app.cli.doctor import CheckState, Diagnosis, storage
from app.cli.doctor.diagnosis import Check, Examination
from app.cli.doctor.report import report
from store.cache.last_reads import LastRead
from store.coordination import heartbeats
from store.coordination.provider_limits import Access, BreakerLimits, Circuit, ProviderLimits, record_key
from store.sql.database import MOST_CONNECTIONS
from store.sql.models import Organization, User
from store.sql.queries import connections, organization_grants, organizations, provider_clients, webhooks
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.organization_grants import NewGrant
from store.sql.queries.provider_clients import StoredClient
from tests import services
from tests.app.cli.test_commands import almanac
from tests.certificates import issue
from tests.conftest import settings_of
from tests.databases import own_postgresql
from tests.doctor.installation import Installation, answering, check_with, production, run_check
from tests.installation.processes import free_port, running_worker
from tests.openid_issuer import CLIENT_ID, SECRET, issuing
from workers.queues import Queue

# Starts a whole installation, which is too slow for the default run.
pytestmark = pytest.mark.long


def test_each_line_is_there_when_its_check_is_done(installation, monkeypatch):
    lines: list[str] = []
    heard_by: dict[str, int] = {}
    monkeypatch.setattr(
        "app.cli.doctor.CHECKS",
        tuple(
            Check(
                name,
                lambda _, name=name: (heard_by.update({name: len(lines)}), (CheckState.OK, "Fine", ""))[1],
            )
            for name in ("one", "two")
        ),
    )

    folder = installation.settings.data_dir
    assert report(lambda: installation.settings, lines.append, as_json=False, data_dir=folder)
    # The lines of the version and of the settings were printed before the first check.
    assert heard_by == {"one": 2, "two": 3}


def test_a_missing_setting_is_the_only_line(tmp_path):
    refused = almanac("doctor", data=tmp_path, ALMANAC_REDIS_URL="redis://127.0.0.1:1/0")

    assert refused.exit_code == 1
    version, settings, *_ = refused.stdout.splitlines()
    assert version.startswith("ok       version")
    assert settings.startswith("wrong    settings")
    assert "ALMANAC_SECRET_KEY and ALMANAC_ENCRYPTION_KEYS must be set" in refused.stdout
    assert "-> docs/reference/settings.md" in refused.stdout
    assert "database" not in refused.stdout.replace("ALMANAC_DATABASE_URL", "")


def test_a_redis_that_is_down_hides_what_needs_it(installation, stores):
    found = installation.found(REDIS_URL=f"redis://:planted@127.0.0.1:{free_port()}/0", **production())

    assert found["redis"]["state"] == "wrong"
    assert "ALMANAC_REDIS_URL" in found["redis"]["advice"]
    assert found["beat"] == {
        "name": "beat",
        "state": "unknown",
        "sentence": "Not checked, because of: redis",
        "advice": "",
    }
    assert "planted" not in json.dumps(found)


def test_a_broker_that_is_down_is_distinguished_from_redis(installation, stores):
    found = installation.found(BROKER_URL=f"amqp://planted:planted@127.0.0.1:{free_port()}//")

    assert (found["redis"]["state"], found["broker"]["state"]) == ("ok", "wrong")
    assert "ALMANAC_BROKER_URL" in found["broker"]["advice"]
    assert found["workers"]["state"] == found["google"]["state"] == "unknown"
    assert "planted" not in json.dumps(found)


def test_without_a_worker_the_provider_checks_are_skipped(installation, stores):
    found = installation.found()

    assert found["workers"]["state"] == "wrong"
    assert found["workers"]["advice"] == "Start one with almanac worker"
    assert found["google"]["sentence"] == "Not checked, because of: workers"


def test_accounts_that_cannot_be_read_and_open_breakers_are_counted(examination, stores):
    assert run_check(examination, "accounts").state is CheckState.OK
    with stores.redis.pipeline() as pipe:
        read = LastRead(1_000, "providerError", "It is down", provider="google")
        stores.last_reads.note(pipe, [("a connection", read), ("another", read)])
        pipe.execute()
    limits = ProviderLimits(stores.redis, {}, {}, BreakerLimits(accounts=1, failures=0, pause=60))
    limits.failed(Circuit("google", Access.READS), "an account", given_up=True)

    diagnosis = run_check(examination, "accounts")

    assert diagnosis.state is CheckState.WARNING
    assert "cannot be booked: 2 (Google providerError 2)" in diagnosis.sentence
    assert "Google fails, and its reads are refused for some seconds" in diagnosis.sentence
    stores.last_reads.forget(["a connection", "another"])
    stores.redis.delete(record_key(Circuit("google", Access.READS)))


def test_a_queue_without_a_worker_is_named(installation, examination):
    with installation.worker(Queue.READS, Queue.WRITES, Queue.WEBHOOKS):
        diagnosis = run_check(examination, "workers")

    assert (diagnosis.state, diagnosis.sentence) == (CheckState.WRONG, "No worker takes the queue upkeep")


def test_a_database_that_is_down_is_wrong_within_seconds(installation, stores):
    began = time.monotonic()
    url = f"postgresql://almanac:planted@127.0.0.1:{free_port()}/almanac"
    found = installation.found(DATABASE_URL=url, **production())

    assert found["database"]["state"] == "wrong"
    assert "ALMANAC_DATABASE_URL" in found["database"]["advice"]
    assert found["encryption keys"]["state"] == "unknown"
    assert "planted" not in json.dumps(found)
    assert time.monotonic() - began < 60


def test_missing_migrations_are_reported(installation, stores, tmp_path):
    found = installation.found(DATABASE_URL=f"sqlite:///{tmp_path}/empty.db", **production())

    assert found["database"]["sentence"] == "SQLite answers, but migrations are missing"
    assert found["database"]["advice"] == "Run almanac db upgrade"


def test_a_database_of_a_later_version_is_not_to_be_migrated(installation, examination, tmp_path):
    settings = replace(installation.settings, database_url=f"sqlite:///{tmp_path}/later.db")
    with Examination(settings) as examination:
        database = examination.services.stores.database
        database.upgrade()
        with database.engine.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = 'of tomorrow'"))

        diagnosis = run_check(examination, "database")

    assert diagnosis.state is CheckState.WRONG
    assert "later version" in diagnosis.sentence


@pytest.mark.parametrize(("version", "state"), [("5.0.14", "wrong"), ("6.2.0", "ok"), ("8.2.1", "ok")])
def test_a_redis_without_the_commands_that_are_used_is_too_old(examination, version, state):
    examination.services.stores.__dict__["redis"] = Old(version)

    diagnosis = run_check(examination, "redis")

    assert diagnosis.state == state
    assert version in diagnosis.sentence


def test_valkey_is_shown_with_its_own_version(examination):
    assert re.search(r"^Valkey 9\.\d+\.\d+ answers within", run_check(examination, "redis").sentence)


class Old:
    """A Redis client that reports another version."""

    def __init__(self, version: str) -> None:
        self._version = version

    def info(self, section: str) -> dict[str, str]:
        assert section == "server"
        return {"redis_version": self._version}

    def close(self) -> None:
        pass


def test_an_identity_provider_that_has_died_is_unavailable_though_its_metadata_are_kept(installation, stores):
    with issuing() as issuer:
        values = {"oidc_issuer": issuer.url, "oidc_client_id": CLIENT_ID, "oidc_client_secret": SECRET}
        openid = {f"ALMANAC_{name.upper()}": value for name, value in values.items()}
        openid["ALMANAC_OIDC_ROLES"] = "admins=administrator"
        whole = installation.whole | openid
        settings = settings_of(whole)
        with running_worker(settings, whole, "openid"):
            alive = check_with(settings, "identity provider")
            issuer.faults["/.well-known/openid-configuration"] = (503, b"")
            dead = check_with(settings, "identity provider")

    assert alive.state is CheckState.OK
    assert alive.sentence.startswith(f"{issuer.url} has answered a worker just now")
    assert (dead.state, dead.sentence) == (CheckState.WRONG, "The identity provider did not answer")


def test_workers_that_may_open_more_connections_than_postgresql_allows_are_a_warning(examination, stores):
    assert run_check(examination, "database connections").sentence == "SQLite needs none"
    services.postgresql().require()
    with own_postgresql() as url:
        settings = replace(examination.settings, database_url=url)
        with Examination(settings) as guest:
            assert run_check(guest, "database connections").state is CheckState.OK
            with psycopg.connect(services.POSTGRESQL) as admin:
                (allowed,) = admin.execute("SHOW max_connections").fetchone()
            names = [f"worker{number}" for number in range(int(allowed) // MOST_CONNECTIONS + 1)]
            for name in names:
                stores.heartbeats.record_worker(name, used=0, places=64)
            diagnosis = run_check(guest, "database connections")
            pooled = replace(settings, database_url=f"{url}?prepare_threshold=none")
            with Examination(pooled) as behind_a_pooler:
                assert run_check(behind_a_pooler, "database connections").state is CheckState.OK
    for name in names:
        stores.heartbeats.record_worker_exit(name)

    assert diagnosis.state is CheckState.WARNING
    assert f"PostgreSQL allows {allowed}; {len(names)} workers" in diagnosis.sentence
    assert "max_connections" in diagnosis.advice


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_redis_that_drops_keys_is_wrong_once_it_has_a_limit(examination, stores, policy):
    stores.redis.config_set("maxmemory-policy", policy)
    assert run_check(examination, "redis memory").state is CheckState.OK

    stores.redis.config_set("maxmemory", 64 * 2**20)

    diagnosis = run_check(examination, "redis memory")
    assert diagnosis.state is CheckState.WRONG
    assert policy in diagnosis.sentence
    assert diagnosis.advice == "Set maxmemory-policy noeviction in Redis"


def test_a_redis_that_is_nearly_full_is_a_warning(examination, stores):
    stores.redis.config_set("maxmemory", int(stores.redis.info("memory")["used_memory"] * 1.1))

    assert run_check(examination, "redis memory").state is CheckState.WARNING


def test_redis_with_snapshots_is_a_warning(examination, stores):
    assert run_check(examination, "redis persistence").state is CheckState.OK
    stores.redis.config_set("save", "60 1")

    diagnosis = run_check(examination, "redis persistence")

    assert diagnosis.state is CheckState.WARNING
    assert "(save)" in diagnosis.sentence


def test_redis_without_config_permission_is_a_warning(examination, stores):
    stores.redis.acl_setuser(
        "careful", enabled=True, nopass=True, keys=["*"], categories=["+@all"], commands=["-config"]
    )
    url = examination.settings.redis_url.replace("unix://", "unix://careful:any@")
    with Examination(replace(examination.settings, redis_url=url)) as guest:
        diagnosis = run_check(guest, "redis persistence")

    assert diagnosis.state is CheckState.WARNING
    assert "does not say" in diagnosis.sentence


def test_keys_that_no_longer_open_what_is_stored_are_wrong(installation, stores):
    with stores.database.writing() as session:
        provider_clients.save(session, stores.keyring, "google", StoredClient("ours", "planted", None))
        webhooks.create(
            session,
            stores.keyring,
            url="https://example.com",
            events=["calendar.changed"],
            organization_id=None,
        )
        user = User(custom_id="ada")
        session.add(user)
        session.flush()
        connections.replace(
            session,
            stores.keyring,
            user_id=user.id,
            provider="google",
            email="ada@example.com",
            scope=[],
            tokens=Tokens("planted-access", "planted-refresh", None),
        )
    assert check_with(installation.settings, "encryption keys").state is CheckState.OK

    other = replace(installation.settings, encryption_keys=(bytes(32),))
    diagnosis = check_with(other, "encryption keys")

    assert diagnosis.state is CheckState.WRONG
    lost = "1 of 1 connections and 1 of 1 webhooks and the registration with google"
    assert lost in diagnosis.sentence
    assert "ALMANAC_ENCRYPTION_KEYS" in diagnosis.advice
    both = replace(installation.settings, encryption_keys=(bytes(32), *installation.settings.encryption_keys))
    assert check_with(both, "encryption keys").state is CheckState.OK


@pytest.mark.parametrize(
    ("off", "state"), [(-60, CheckState.WRONG), (60, CheckState.WRONG), (0.5, CheckState.OK)]
)
def test_a_clock_that_is_off_is_wrong(examination, monkeypatch, off, state):
    _ = examination.services.stores.database, examination.services.stores.redis
    real = time.time
    monkeypatch.setattr(storage.time, "time", lambda: real() + off)

    diagnosis = run_check(examination, "clock")

    assert diagnosis.state is state
    assert "Redis" in diagnosis.sentence


def test_the_clock_of_postgresql_is_checked_too(installation, stores):
    services.postgresql().require()
    with own_postgresql() as url:
        diagnosis = check_with(replace(installation.settings, database_url=url), "clock")

    assert diagnosis.state is CheckState.OK
    assert "Redis and PostgreSQL" in diagnosis.sentence


def test_a_beat_that_never_was_or_has_stopped_is_wrong(examination, stores):
    assert run_check(examination, "beat").state is CheckState.OK
    stores.redis.set(heartbeats.BEAT, stores.redis.time()[0] - 120)
    assert re.fullmatch(r"Beat has not ticked for 12\d seconds", run_check(examination, "beat").sentence)
    stores.redis.delete(heartbeats.BEAT)

    diagnosis = run_check(examination, "beat")

    assert diagnosis.state is CheckState.WRONG
    assert "almanac beat" in diagnosis.advice


def test_ended_grants_of_organizations_are_named_with_their_reason(examination, stores):
    grant = NewGrant("google", "admin@acme.example", "robot@acme.example", None, None, "planted", ["read"])
    assert run_check(examination, "grants").sentence == "There are none"
    with stores.database.writing() as session:
        acme, borealis = Organization(slug="acme"), Organization(slug="borealis")
        session.add_all([acme, borealis])
        session.flush()
        saved = [
            organization_grants.save(session, stores.keyring, each.id, grant) for each in (acme, borealis)
        ]
    assert run_check(examination, "grants").sentence == "2 grants of organizations, none has ended"
    with stores.database.writing() as session:
        organization_grants.mark_dead(session, saved[0].id, "The delegation was withdrawn")

    diagnosis = run_check(examination, "grants")

    assert diagnosis.state is CheckState.WARNING
    assert diagnosis.sentence == (
        "1 of 2 grants of organizations has ended, and members cannot be read. "
        "acme at Google Calendar: The delegation was withdrawn"
    )
    with stores.database.writing() as session:
        organizations.remove(session, acme.id)
        organizations.remove(session, borealis.id)


def at(installation: Installation, url: str) -> Diagnosis:
    return check_with(replace(installation.settings, public_url=url), "public URL")


def test_a_missing_public_url_is_a_warning(installation):
    assert at(installation, "").state is CheckState.WARNING


def test_a_registration_is_checked_without_a_public_url(installation, stores):
    alone = replace(installation.settings, public_url="", fanout_deadline_seconds=0.5)

    # No worker takes the check, which needs a redirect URI all the same.
    assert check_with(alone, "google").state is CheckState.WARNING


def test_an_address_for_others_that_is_not_https_is_wrong(installation):
    diagnosis = at(installation, "http://calendar.example.com")

    assert diagnosis.state is CheckState.WRONG
    assert "is not https" in diagnosis.sentence


def test_a_public_url_without_a_server_is_wrong(installation):
    diagnosis = at(installation, f"http://127.0.0.1:{free_port()}")

    assert diagnosis.state is CheckState.WRONG
    assert "cannot be reached from here" in diagnosis.sentence


@pytest.mark.parametrize(("body", "status"), [(b"<html>", 200), (b'{"status":"ok"}', 502), (b"[]", 200)])
def test_an_address_of_something_else_is_wrong(installation, body, status):
    with answering(body, status) as url:
        diagnosis = at(installation, url)

    assert diagnosis.state is CheckState.WRONG
    assert "leads to something else" in diagnosis.sentence


def test_a_certificate_that_is_not_trusted_is_named(installation, tmp_path):
    _, context = issue(tmp_path, "127.0.0.1")
    with answering(tls=context) as url:
        diagnosis = at(installation, url)

    assert diagnosis.state is CheckState.WRONG
    assert "no certificate that is trusted here" in diagnosis.sentence


def test_a_worker_that_cannot_reach_a_provider_is_named(examination, stores):
    stores.heartbeats.record_worker("worker1@a", used=0, places=64)
    assert run_check(examination, "provider access").state is CheckState.OK
    stores.heartbeats.record_worker("worker1@a", used=0, places=64, unreachable=["google", "microsoft"])

    diagnosis = run_check(examination, "provider access")

    assert diagnosis.state is CheckState.WRONG
    assert diagnosis.sentence == "worker1@a cannot reach Google Calendar and Microsoft 365"
    assert "DNS" in diagnosis.advice
    stores.heartbeats.record_worker_exit("worker1@a")
