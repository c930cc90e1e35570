"""Registrations entered by an administrator: probed, saved, and used by web and worker without a restart."""

from __future__ import annotations

import base64
import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import delete, func, select

from providers import registry
from providers.oauth.registration_probe import ProbeVerdict
from store.config.settings import Settings
from store.sql.models import AuditRecord, ProviderClient
from store.sql.queries import provider_clients
from tests.app.answers import error
from tests.app.consenting import ADA, BOTH, arrive, connected, consent, link, query_of
from tests.app.days import DAY, meeting, periods
from tests.app.oauth_client_forms import (
    AUDITED,
    audited,
    caller_of,
    overview,
    put,
    remove,
    save,
    saved,
    services_of,
    watched,
)
from tests.conftest import Api, application, connect, settings_of
from tests.installation.processes import running_redis, running_worker

pytestmark = pytest.mark.slow

GOOGLE, MICROSOFT = "google", "microsoft"
TENANT = "contoso.onmicrosoft.com"
TOKEN = {"google": "google.token", "microsoft": "microsoft.token"}


@pytest.fixture(scope="module")
def bare(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of an installation without any registration; its Redis runs."""
    folder = tmp_path_factory.mktemp("bare")
    clients = {
        f"ALMANAC_{each.upper()}_CLIENT_{part}": ""
        for each in registry.with_consent()
        for part in ("ID", "SECRET")
    }
    ours = environment | clients | {"ALMANAC_DATA_DIR": str(folder), "ALMANAC_BUSY_TTL": "0"}
    settings = settings_of(ours)
    with running_redis(folder, settings.redis_socket):
        with application(settings) as made:
            services_of(made).stores.database.upgrade()
        yield ours


@pytest.fixture(scope="module")
def bare_settings(bare: dict[str, str]) -> Settings:
    return settings_of(bare)


@pytest.fixture(scope="module")
def worker_log(bare: dict[str, str], bare_settings: Settings) -> Iterator[Path]:
    """A real worker of this installation; yields its log."""
    log = bare_settings.data_dir / "worker.log"
    with log.open("wb") as output, running_worker(bare_settings, bare, "bare", output=output):
        yield log


@pytest.fixture
def new_process(bare_settings: Settings) -> Iterator[Callable[[], Flask]]:
    """Another web process of this installation, without a registration yet."""
    with application(bare_settings) as first, application(bare_settings) as second:
        with services_of(first).stores.database.writing() as session:
            session.execute(delete(ProviderClient))
            for each in (first, second):
                each.config[AUDITED] = session.scalar(select(func.max(AuditRecord.id)))
        processes = iter((first, second))
        yield lambda: next(processes)


@pytest.fixture
def web(new_process: Callable[[], Flask]) -> Flask:
    return new_process()


@pytest.fixture
def caller(web: Flask) -> Api:
    return caller_of(web)


def new_user(api: Api, unique: Callable[[str], str]) -> str:
    user = unique("user")
    assert api.post("/users", {"id": user}).status_code == 201
    return user


# --- saved, and used


@BOTH
@pytest.mark.usefixtures("worker_log")
def test_saved_registration_is_used_by_every_process_at_once(
    web, new_process, caller, sandbox, unique, provider
):
    sandbox.account(provider, ADA, events=[meeting("09:00", "10:00")])
    user = new_user(caller, unique)
    elsewhere = Api(new_process().test_client(), caller.key)
    # Both have looked, and found nothing.
    for api in (caller, elsewhere):
        assert error(api.post(f"/users/{user}/oauth/{provider}/authorize", {}), 404)

    found = save(web, provider, "saved-id", "planted", TENANT if provider == "microsoft" else None)
    url = link(elsewhere, user, provider)
    page = arrive(elsewhere, consent(url))

    assert found.verdict is ProbeVerdict.RIGHT
    assert query_of(url)["client_id"] == "saved-id"
    assert page.status_code == 200, page.text
    assert connected(caller, user, provider)["email"] == ADA
    assert periods(caller.get(f"/users/{user}/calendar/busy", **DAY)) == [("09:00", "10:00")]


@BOTH
@pytest.mark.usefixtures("worker_log")
def test_refreshes_follow_what_is_saved_changed_and_removed(web, caller, sandbox, unique, provider):
    user = new_user(caller, unique)
    account = sandbox.account(provider, ADA, events=[meeting("09:00", "10:00")])
    ended = {"expiresAt": "2026-01-01T00:00:00Z"}

    def read() -> int:
        connect(caller, user, account, **ended)
        return caller.get(f"/users/{user}/calendar/busy", **DAY).status_code

    # Longer than a worker caches the registrations of an earlier test.
    time.sleep(1.1)
    statuses = [read()]
    for change in (
        lambda: save(web, provider),
        # A secret that has expired since: saving does not probe for that.
        lambda: put(web, provider, "expired"),
        lambda: save(web, provider),
        lambda: remove(web, provider),
    ):
        change()
        time.sleep(1.1)
        statuses.append(read())

    assert statuses == [404, 200, 502, 200, 404]
    assert connected(caller, user, provider)["alive"]


# --- tried before


@pytest.mark.usefixtures("worker_log")
@pytest.mark.parametrize(
    ("provider", "entered", "message"),
    [
        ("google", {"secret": "wrong"}, "Google does not accept this client id with this secret"),
        ("google", {"client_id": "wrong"}, "Google does not accept this client id with this secret"),
        ("microsoft", {"secret": "expired", "tenant": TENANT}, "The secret has expired"),
        ("microsoft", {"tenant": "wrong.example.com"}, "Microsoft knows no such tenant"),
    ],
)
def test_refused_registration_leaves_the_saved_one(web, sandbox, provider, entered, message):
    save(web, provider, "before")
    kept = saved(web), audited(web)

    found = save(web, provider, **entered)

    assert (found.verdict, found.sentence) == (ProbeVerdict.WRONG, message)
    assert found.advice
    assert (saved(web), audited(web)) == kept


@pytest.mark.usefixtures("worker_log")
def test_microsofts_many_tenants_leave_the_secret_open(web, sandbox):
    checks = services_of(web).stores.registration_checks
    checks.note("microsoft", "planted-id", accepted=True)

    found = save(web, "microsoft", "planted-id", tenant="common")

    assert found.verdict is ProbeVerdict.UNKNOWN
    # The stored verdict was about the former secret.
    assert checks.read({"microsoft": "planted-id"}) == {}
    assert list(saved(web)) == ["microsoft"]


def test_without_a_worker_it_is_saved_with_a_warning(new_app, settings, sandbox, tmp_path):
    app = new_app(
        database_url=f"sqlite:///{tmp_path / 'alone.db'}",
        broker_url="memory://",
        fanout_deadline_seconds=0.3,
        providers=replace(settings.providers, google_client_id=""),
    )
    services_of(app).stores.database.upgrade()

    found = save(app, "google")

    assert found.verdict is ProbeVerdict.UNKNOWN
    assert list(saved(app)) == ["google"]


# --- what is entered


@pytest.mark.usefixtures("worker_log")
def test_blanks_around_what_was_copied_do_not_matter(web, sandbox):
    found = save(web, "microsoft", " the-id\n", "\tplanted ", f" {TENANT} ")

    assert found.verdict is ProbeVerdict.RIGHT
    row = saved(web)["microsoft"]
    client = provider_clients.open_client(row, services_of(web).stores.keyring)
    assert client == provider_clients.StoredClient("the-id", "planted", TENANT)


# --- secrets


def test_a_secret_passes_redis_and_broker_sealed_and_is_in_no_log(web, sandbox, worker_log, caplog):
    caplog.set_level(logging.DEBUG)
    secret = "planted-to-be-looked-for"
    redis = services_of(web).stores.redis
    with watched(redis) as seen:
        found = save(web, "google", "the-id", secret)
        assert save(web, "google", "wrong", secret).verdict is ProbeVerdict.WRONG
        shown = overview(web)

    commands = "\n".join(seen)
    messages = [base64.b64decode(each) for each in re.findall(r"body\W+([A-Za-z0-9+/=]{20,})", commands)]
    # The handover and the broker are on this Redis: there was something to see.
    assert "registration:" in commands
    assert any(b'"fanout"' in each for each in messages)
    assert secret not in f"{commands} {messages} {found!r} {shown!r} {caplog.text} {worker_log.read_text()}"
    assert list(redis.scan_iter("registration:*")) == []
