"""Delegated connections: tokens that all workers share, and every kind of job with them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import delete

from providers.base import Token
from providers.errors import (
    GRANT_ENDED,
    AuthorizationInvalid,
    GrantRefused,
    Misconfigured,
    SubjectRefused,
    Unavailable,
)
from providers.events import Changes, Draft, Moment
from store.cache.busy_cache import CalendarKey
from store.coordination.locks import hold
from store.security.crypto import Keyring
from store.security.grant_tokens import GrantTokens, TokenOwner
from store.sql.models import OrganizationGrant
from store.sql.queries import organization_grants
from tests.workers.conftest import put_work, replies, run_drain
from tests.workers.delegated import END, MEETING, NINE, START, TEN, Delegated, delegate, periods
from workers.execution import reads, writes
from workers.execution.organization_tokens import OrganizationTokens
from workers.jobs import (
    CreateEvent,
    DeleteEvent,
    FreshToken,
    GetEvent,
    ListCalendars,
    ReadBusy,
    ReadEvents,
    ShowCalendars,
    StopChannels,
    UpdateEvent,
)
from workers.upkeep import channel_opening, renewals

BOTH = pytest.mark.parametrize("provider", ["google", "microsoft"])
DOMAINS = {"google": "example.com", "microsoft": "contoso.com"}
WHEN = Moment(1_796_288_400_000, "UTC")
LATER = Moment(1_796_292_000_000, "UTC")
DRAFT = Draft(Changes(subject="New", start=WHEN, end=LATER), "0" * 64, "0" * 64)


@pytest.fixture
def delegated(sandbox: Any, runtime: Any, unique: Any) -> Any:
    """A domain with one member and a delegated connection to it."""

    def make(provider: str, **more: Any) -> Delegated:
        name = DOMAINS[provider]
        described = [{"email": f"reader@{name}"}, {"email": f"ada@{name}", "events": [MEETING]}]
        domain = sandbox.domain(provider, name, described)
        return delegate(runtime, domain, [f"ada@{name}"], unique("org"), **more)

    return make


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def tokens(runtime: Any, of: Delegated, subject: str | None = None) -> OrganizationTokens:
    return OrganizationTokens(runtime, of.grant.id, subject)


def requested(sandbox: Any, provider: str) -> int:
    return sandbox.requests().by_operation.get(f"{provider}.token", 0)


# --- tokens


@BOTH
def test_a_token_is_requested_once_and_cached_encrypted(sandbox, runtime, delegated, provider):
    of = delegated(provider)
    token = tokens(runtime, of).access_token(deadline=soon())
    assert tokens(runtime, of).access_token(deadline=soon()) == token
    assert requested(sandbox, provider) == 1
    redis = runtime.stores.redis
    kept = [redis.dump(key) for key in redis.keys("grant-token*")]
    assert kept
    assert token.reveal.encode() not in b"".join(kept)
    assert not any(b"@" in key for key in redis.keys("*grant*"))


@BOTH
def test_a_token_is_cached_until_a_minute_before_its_end(runtime, delegated, provider):
    of = delegated(provider)
    tokens(runtime, of).access_token(deadline=soon())
    (key,) = runtime.stores.redis.keys("grant-token:*")
    assert 3400 < runtime.stores.redis.ttl(key) <= 3540


def test_a_token_is_bound_to_its_grant_and_account(runtime):
    redis, keyring = runtime.stores.redis, runtime.stores.keyring
    cache = GrantTokens(redis, keyring)
    cache.save(TokenOwner("g", "ada@example.com"), "secret", 3600)
    assert cache.load(TokenOwner("g", "Ada@example.com")).token == "secret"
    other = TokenOwner("g", "eve@example.com")
    redis.rename("grant-token:" + TokenOwner("g", "ada@example.com").name, "grant-token:" + other.name)
    assert cache.load(other).token is None
    assert GrantTokens(redis, Keyring([b"k" * 32])).load(other).token is None
    cache.save(other, "secret", 60)
    assert not redis.exists("grant-token:soon")


def test_tokens_of_a_grant_are_dropped_together(runtime):
    cache = runtime.stores.grant_tokens
    for subject in (None, "ada@example.com"):
        cache.save(TokenOwner("g", subject), "secret", 3600)
    cache.refuse(TokenOwner("g", "eve@example.com"), "refused")
    cache.save(TokenOwner("other"), "secret", 3600)
    cache.forget("g")
    assert not [key for key in runtime.stores.redis.keys("grant-*") if b":g" in key]
    assert cache.load(TokenOwner("other")).token == "secret"


def test_ten_workers_request_one_token(sandbox, runtime, delegated):
    of = delegated("google")
    sandbox.fault(operation="google.token", latency_ms=200)
    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(lambda _: tokens(runtime, of).access_token(deadline=soon()), range(10)))
    assert len(set(found)) == 1
    assert requested(sandbox, "google") == 1


def test_each_account_has_a_token_of_its_own(sandbox, runtime, delegated):
    of = delegated("google")
    one = tokens(runtime, of).access_token(deadline=soon())
    two = tokens(runtime, of, "ada@example.com").access_token(deadline=soon())
    assert one != two
    assert requested(sandbox, "google") == 2


@BOTH
def test_a_rejected_token_is_replaced_for_all_workers(sandbox, runtime, delegated, provider):
    of = delegated(provider)
    first = tokens(runtime, of).access_token(deadline=soon())
    second = tokens(runtime, of).renewed(first, deadline=soon())
    assert second != first
    # Another worker had the old one, too, and does not request a third.
    assert tokens(runtime, of).renewed(first, deadline=soon()) == second
    assert tokens(runtime, of).access_token(deadline=soon()) == second
    assert requested(sandbox, provider) == 2


def test_a_grant_that_has_ended_or_was_removed_is_not_used(sandbox, runtime, delegated):
    of = delegated("google")
    with runtime.stores.database.writing() as session:
        organization_grants.mark_dead(session, of.grant.id, "planted")
    with pytest.raises(AuthorizationInvalid, match=GRANT_ENDED):
        tokens(runtime, of).access_token(deadline=soon())
    with runtime.stores.database.writing() as session:
        session.execute(delete(OrganizationGrant).where(OrganizationGrant.id == of.grant.id))
    with pytest.raises(AuthorizationInvalid):
        tokens(runtime, of).access_token(deadline=soon())
    assert requested(sandbox, "google") == 0


def test_slow_token_is_unavailable_and_keeps_the_grant(sandbox, runtime, delegated):
    of = delegated("google")
    owner = TokenOwner(of.grant.id)
    with hold(runtime.stores.redis, f"refresh:{owner.name}", deadline=soon()), pytest.raises(Unavailable):
        tokens(runtime, of).access_token(deadline=soon(0.2))
    sandbox.fault(operation="google.token", status=503)
    with pytest.raises(Unavailable):
        tokens(runtime, of).access_token(deadline=soon(0.5))
    with runtime.stores.database.reading() as session:
        assert organization_grants.sealed(session, [of.grant.id])[of.grant.id].alive


def test_a_secret_that_expires_ends_the_grant(sandbox, runtime, delegated):
    of = delegated("microsoft")
    sandbox.change_domain("contoso.com", secretExpired=True)
    with pytest.raises(GrantRefused, match="expired"):
        tokens(runtime, of).access_token(deadline=soon())
    with runtime.stores.database.reading() as session:
        assert not organization_grants.sealed(session, [of.grant.id])[of.grant.id].alive


def test_the_installations_secret_ends_no_grant(sandbox, runtime, unique, caplog):
    ours = runtime.provider("microsoft").oauth.client
    domain = sandbox.domain("microsoft", "contoso.com", clientId=ours.id, clientSecret="another")
    of = delegate(runtime, domain, ["ada@contoso.com"], unique("org"), client_id=None, secret=None)
    with pytest.raises(Misconfigured):
        tokens(runtime, of).access_token(deadline=soon())
    assert "ALMANAC_MICROSOFT_CLIENT_SECRET" in caplog.text
    with runtime.stores.database.reading() as session:
        assert organization_grants.sealed(session, [of.grant.id])[of.grant.id].alive


def test_wrong_worker_clock_does_not_end_the_grant(sandbox, runtime, delegated, monkeypatch, caplog):
    of = delegated("google")
    slow = SimpleNamespace(time=lambda: time.time() - 1200)
    monkeypatch.setattr("providers.google.organization_grants.time", slow)
    with pytest.raises(GrantRefused, match="clock"):
        tokens(runtime, of).access_token(deadline=soon())
    assert "clock" in caplog.text
    with runtime.stores.database.reading() as session:
        assert organization_grants.sealed(session, [of.grant.id])[of.grant.id].alive


def test_a_withdrawn_grant_is_found_out_although_its_own_token_is_cached(sandbox, runtime, delegated):
    """The cached token was requested before, and says nothing about the grant now."""
    of = delegated("google")
    tokens(runtime, of).access_token(deadline=soon())
    sandbox.withdraw(DOMAINS["google"])

    with pytest.raises(AuthorizationInvalid):
        tokens(runtime, of, f"ada@{DOMAINS['google']}").access_token(deadline=soon())

    with runtime.stores.database.reading() as session:
        assert not organization_grants.sealed(session, [of.grant.id])[of.grant.id].alive


def test_a_withdrawn_grant_is_found_out_through_one_account_too(sandbox, runtime, delegated):
    of = delegated("google")
    sandbox.withdraw("example.com")
    with pytest.raises(GrantRefused):
        tokens(runtime, of, "ada@example.com").access_token(deadline=soon())
    with runtime.stores.database.reading() as session:
        assert not organization_grants.sealed(session, [of.grant.id])[of.grant.id].alive


def test_an_account_outside_the_domain_is_refused_alone(sandbox, runtime, delegated):
    of = delegated("google")
    sandbox.account("google", "eve@elsewhere.org")
    for _ in range(2):
        with pytest.raises(SubjectRefused):
            tokens(runtime, of, "eve@elsewhere.org").access_token(deadline=soon())
    # The account, then the one that reads for the grant.
    assert requested(sandbox, "google") == 2
    assert tokens(runtime, of).access_token(deadline=soon()) != Token("")


# --- jobs


@pytest.fixture
def perform(runtime: Any) -> Any:
    """Perform one job of either queue."""

    def done(job: Any, by: Any = reads.perform) -> Any:
        runtime.stores.redis.delete("fanout:f:replies")
        put_work(runtime, "f", [job])
        run_drain(runtime, "f", by)
        ((_, reply),) = replies(runtime, "f")
        return reply

    return done


@BOTH
def test_every_read_of_a_delegated_connection(sandbox, delegated, perform, provider):
    of = delegated(provider)
    (connection,) = of.connections.values()
    assert periods(perform(ReadBusy(connection, ("primary",), START, END))) == [(NINE, TEN)]
    listed = perform(ListCalendars(connection)).listed
    assert [each.primary for each in listed] == [True]
    (calendar,) = perform(ShowCalendars(connection)).calendars
    assert calendar.primary
    every = perform(ReadBusy(connection, None, START, END))
    assert [each.busy.pairs() for each in every.outcomes.values()] == [[(NINE, TEN)]]
    ((event,),) = perform(ReadEvents(connection, ("primary",), START, END)).events.values()
    assert perform(GetEvent(connection, "primary", event.id)).events["primary"][0].id == event.id


@BOTH
def test_every_write_of_a_delegated_connection(sandbox, delegated, perform, provider):
    of = delegated(provider)
    (connection,) = of.connections.values()
    created = perform(CreateEvent(connection, "primary", DRAFT), writes.perform)
    assert created.failed is None
    ((event,),) = created.events.values()
    updated = perform(UpdateEvent(connection, "primary", event.id, Changes(subject="Other")), writes.perform)
    assert updated.events["primary"][0].subject == "Other"
    assert perform(DeleteEvent(connection, "primary", event.id), writes.perform).failed is None
    assert perform(FreshToken(connection), writes.perform).failed is None


@BOTH
def test_a_channel_of_a_delegated_connection(reached, sandbox, delegated, perform, provider):
    of = delegated(provider)
    (connection,) = of.connections.values()
    assert channel_opening.open_one(reached, CalendarKey(connection, "primary"))
    assert perform(StopChannels(connection), writes.perform).failed is None


@BOTH
def test_a_delegated_connection_never_ends_by_itself(sandbox, runtime, delegated, perform, row, provider):
    of = delegated(provider)
    (connection,) = of.connections.values()
    operation = "google.freebusy.query" if provider == "google" else "microsoft.batch"
    sandbox.fault(operation=operation, status=401)
    reply = perform(ReadBusy(connection, ("primary",), START, END))
    assert reply.failed.reason == "authorizationInvalid"
    assert row(connection).alive


def test_upkeep_refreshes_no_delegated_connection(sandbox, runtime, delegated, monkeypatch):
    delegated("google")
    before = requested(sandbox, "google")
    monkeypatch.setattr(renewals, "RENEW_AHEAD", timedelta(1))
    renewals.renew_tokens(runtime, deadline=soon())
    assert requested(sandbox, "google") == before
