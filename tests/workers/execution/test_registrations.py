"""The registration in force: the environment's, else the one in the database, soon after it is saved."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace

import pytest
from sqlalchemy import delete, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from providers import registry
from providers.definition import Provider
from store.cache.versioned_cache import VERSION_KEY
from store.sql.models import ProviderClient, User
from store.sql.queries import provider_clients
from store.sql.queries.provider_clients import StoredClient
from workers.execution import registrations
from workers.runtime import Runtime

GOOGLE, MICROSOFT = "google", "microsoft"
NOBODY = {f"{each}_client_{part}": "" for each in registry.with_consent() for part in ("id", "secret")}
ADA = StoredClient("ada's", "planted-secret", None)
BOB = StoredClient("bob's", "planted-other", None)


@pytest.fixture(autouse=True)
def nothing_stays(runtime: Runtime) -> Iterator[None]:
    """Delete the registration from the database after the test."""
    yield
    with runtime.stores.database.writing() as session:
        session.execute(delete(ProviderClient))


@pytest.fixture
def new_runtime(runtime: Runtime) -> Iterator[Callable[..., Runtime]]:
    """Another process of an installation with these provider settings, or without a registration."""
    made: list[Runtime] = []

    def make(**changed: str) -> Runtime:
        there = replace(runtime.settings.providers, **(NOBODY | changed))
        made.append(Runtime(replace(runtime.settings, providers=there)))
        return made[-1]

    yield make
    for each in made:
        each.stores.close()


@pytest.fixture
def save(runtime: Runtime) -> Callable[[str, StoredClient], None]:
    """Save a registration in another process."""

    def put(provider: str, client: StoredClient) -> None:
        with runtime.stores.database.writing() as session:
            provider_clients.save(session, runtime.stores.keyring, provider, client)

    return put


def forget(runtime: Runtime, provider: str) -> None:
    with runtime.stores.database.writing() as session:
        provider_clients.remove(session, provider)


def statements(runtime: Runtime) -> list[str]:
    """The statements that its database gets from now on."""
    asked: list[str] = []

    @event.listens_for(runtime.stores.database.engine, "before_cursor_execute")
    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith("BEGIN"):
            asked.append(statement)

    return asked


def test_registrations_in_the_environment_need_no_database(runtime, save):
    save("google", ADA)
    asked = statements(runtime)
    before = runtime.stores.redis.info("stats")["total_commands_processed"]

    found = [runtime.registrations.current(GOOGLE), runtime.provider(GOOGLE)]

    # INFO itself counts as one.
    assert runtime.stores.redis.info("stats")["total_commands_processed"] - before == 1
    assert asked == []
    assert [each.oauth.client_id for each in found] == ["sandbox", "sandbox"]
    assert all(runtime.registrations.set_by_environment(each) for each in registry.with_consent())


@pytest.mark.parametrize("alone", ["google_client_id", "google_client_secret"])
def test_half_a_registration_of_the_environment_is_none(new_runtime, save, alone):
    save("google", ADA)
    process = new_runtime(**{alone: "half"})

    assert not process.registrations.set_by_environment(GOOGLE)
    assert process.provider(GOOGLE).oauth.client_id == ADA.client_id


def test_each_provider_is_set_by_the_environment_for_itself(new_runtime, save):
    process = new_runtime(google_client_id="own", google_client_secret="own")
    save("google", ADA)
    save("microsoft", BOB)

    found = {name: process.registrations.current(name) for name in registry.with_consent()}

    ids = {name: each.oauth.client_id for name, each in found.items()}
    assert ids == {GOOGLE: "own", MICROSOFT: "bob's"}
    assert found[GOOGLE].configured
    assert found[MICROSOFT].configured


def test_changes_by_other_processes_apply_to_the_next_request(new_runtime, save, runtime):
    process = new_runtime()
    seen = []
    for change in (lambda: None, lambda: save("google", ADA), lambda: save("google", BOB)):
        change()
        seen.append(process.registrations.current(GOOGLE))
    forget(runtime, "google")
    seen.append(process.registrations.current(GOOGLE))

    assert [each.oauth.client_id for each in seen] == ["", "ada's", "bob's", ""]
    assert [each.configured for each in seen] == [False, True, True, False]


def test_reads_see_saved_registration_with_one_query_per_second(new_runtime, save):
    process = new_runtime()
    assert not process.provider(GOOGLE).configured
    asked = statements(process)
    save("google", ADA)
    saved = time.monotonic()

    while not process.provider(GOOGLE).configured:
        assert time.monotonic() < saved + 3
        time.sleep(0.001)

    assert len(asked) == 1


def test_an_unrelated_change_rebuilds_no_provider(new_runtime, save, runtime, unique):
    process = new_runtime()
    save("google", ADA)
    before = process.registrations.current(GOOGLE)
    asked = statements(process)
    process.registrations.current(GOOGLE)
    assert asked == []

    with runtime.stores.database.writing() as session:
        session.add(User(custom_id=unique("user")))
    after = process.registrations.current(GOOGLE)

    assert len(asked) == 1
    assert after is before


def test_new_registration_keeps_other_provider_and_calendars(new_runtime, save):
    process = new_runtime()
    save("microsoft", ADA)
    google, microsoft = (process.registrations.current(name) for name in (GOOGLE, MICROSOFT))

    save("google", BOB)
    after = process.registrations.current(GOOGLE)

    assert process.registrations.current(MICROSOFT) is microsoft
    assert after.calendars is google.calendars
    assert after.channels is google.channels


@pytest.mark.parametrize(("tenant", "asked"), [(None, "of-the-settings"), ("contoso.com", "contoso.com")])
def test_microsoft_token_url_has_saved_or_configured_tenant(new_runtime, save, tenant, asked):
    process = new_runtime(microsoft_tenant="of-the-settings", microsoft_login_url="http://login")
    save("microsoft", replace(ADA, tenant=tenant))

    oauth = process.provider(MICROSOFT).oauth

    assert oauth._token_url == f"http://login/{asked}/oauth2/v2.0/token"


def test_undecipherable_secret_is_unconfigured_and_logged_once(new_runtime, save, runtime, caplog):
    process = new_runtime()
    save("google", ADA)
    lost = (secrets.token_bytes(32),)
    process.stores.settings = replace(process.settings, encryption_keys=lost)

    for _ in range(3):
        assert not process.registrations.current(GOOGLE).configured
        # Another change makes the process load the registration again.
        runtime.stores.versioned_cache.bump_version()
    save("microsoft", BOB)
    process.registrations.current(GOOGLE)

    errors = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert len([each for each in errors if "with Google" in each]) == 1
    assert "planted" not in caplog.text


def test_a_database_that_is_down_leaves_reads_what_they_knew(new_runtime, save, monkeypatch, caplog):
    monkeypatch.setattr(registrations, "REFRESH_SECONDS", 0.0)
    process = new_runtime()
    save("google", ADA)
    assert process.provider(GOOGLE).configured
    down = OperationalError("SELECT", {}, Exception("down"))

    def fail(_: object) -> None:
        raise down

    monkeypatch.setattr(provider_clients, "load", fail)
    process.stores.versioned_cache.bump_version()

    assert process.provider(GOOGLE).configured
    assert "provider registrations could not be refreshed" in caplog.text
    with pytest.raises(OperationalError):
        process.registrations.current(GOOGLE)


def test_a_registration_that_cannot_be_bound_leaves_other_providers(new_runtime, save, monkeypatch, caplog):
    process = new_runtime()
    known = registry.definition(GOOGLE)

    def refuse(own: Mapping[str, object]) -> Provider:
        if own["client_id"] == ADA.client_id:
            raise ValueError("no such client")
        return known.bind(own)

    monkeypatch.setitem(registry._DEFINITIONS, GOOGLE, replace(known, bind=refuse))
    save("google", ADA)
    save("microsoft", BOB)

    assert [process.registrations.current(name).configured for name in (GOOGLE, MICROSOFT)] == [False, True]
    assert "the registration with Google cannot be used: save another" in caplog.text
    save("google", BOB)
    assert process.registrations.current(GOOGLE).configured


def test_an_older_state_never_replaces_a_newer_one(new_runtime, save, monkeypatch):
    """One thread has loaded the rows of before and stands still, and another asks for the provider now."""
    process = new_runtime()
    save("google", ADA)
    loads, may_end, has_loaded = provider_clients.load, threading.Event(), threading.Event()

    def slowly(session: Session) -> object:
        found = loads(session)
        if not has_loaded.is_set():
            has_loaded.set()
            may_end.wait(10)
        return found

    monkeypatch.setattr(provider_clients, "load", slowly)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(process.registrations.current, GOOGLE)
        assert has_loaded.wait(10)
        save("google", BOB)
        second = threads.submit(process.registrations.current, GOOGLE)
        wait([second], timeout=0.3)
        may_end.set()

        assert first.result(10).oauth.client_id == ADA.client_id
        assert second.result(10).oauth.client_id == BOB.client_id
    assert process.registrations.current(GOOGLE).oauth.client_id == BOB.client_id


def test_emptied_redis_does_not_keep_the_old_registration(new_runtime, save, runtime):
    process = new_runtime()
    save("google", ADA)
    assert process.registrations.current(GOOGLE).oauth.client_id == "ada's"

    runtime.stores.redis.delete(VERSION_KEY)
    save("google", BOB)

    assert process.registrations.current(GOOGLE).oauth.client_id == "bob's"


def test_nothing_that_can_be_printed_shows_a_secret(new_runtime, save):
    process = new_runtime()
    save("google", ADA)

    found = process.registrations.current(GOOGLE)

    assert "planted" not in f"{found!r} {process.registrations!r} {vars(process.registrations)!r}"
