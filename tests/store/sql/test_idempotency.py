"""Idempotency keys in the database: claims, stored answers and lifetimes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import delete, select, update

from store.security.crypto import Undecipherable
from store.sql.models import ApiKey, IdempotencyKey, Organization, now
from store.sql.queries import api_keys, idempotency
from store.sql.queries.idempotency import LIFETIME, Claim, ClaimRefusal, StoredResponse

LATER = timedelta(minutes=1)


@pytest.fixture
def caller(fresh_database):
    """The id of an API key."""
    with fresh_database.writing() as session:
        organization = Organization(slug="acme", name=None)
        session.add(organization)
        session.flush()
        api_keys.create(session, prefix="alm_", name="ops", organization_id=organization.id)
    with fresh_database.reading() as session:
        return session.scalars(select(ApiKey.id)).one()


@pytest.fixture
def claim(fresh_database, keyring, caller):
    """Claim in a transaction of its own."""

    def make(fingerprint="same", *, digest="d", until=LATER, api_key_id=caller):
        with fresh_database.writing() as session:
            return idempotency.claim(
                session,
                keyring,
                api_key_id=api_key_id,
                digest=digest,
                fingerprint=fingerprint,
                until=now() + until,
            )

    return make


@pytest.fixture
def keep(fresh_database, keyring):
    def make(claim, answer="answer"):
        with fresh_database.writing() as session:
            return idempotency.keep(session, keyring, claim, answer)

    return make


@pytest.fixture
def release(fresh_database):
    def make(claim):
        with fresh_database.writing() as session:
            return idempotency.release(session, claim)

    return make


@pytest.fixture
def let_time_pass(fresh_database):
    """Make every key older."""

    def make(time):
        with fresh_database.writing() as session:
            for row in session.scalars(select(IdempotencyKey)):
                row.expires_at -= time
                row.claimed_until = row.claimed_until and row.claimed_until - time

    return make


def rows(database):
    with database.reading() as session:
        return session.scalars(select(IdempotencyKey)).all()


def test_of_many_at_once_one_may_work(claim):
    gate = threading.Barrier(8)

    def one(_):
        gate.wait(timeout=10)
        return claim()

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(one, range(8)))

    assert sum(isinstance(each, Claim) for each in found) == 1
    assert found.count(ClaimRefusal.UNDER_WAY) == 7


def test_expired_claim_can_be_taken_and_old_token_is_rejected(claim, keep, release):
    slow = claim(until=timedelta(seconds=-1))
    next_one = claim()
    assert isinstance(next_one, Claim)

    assert not release(slow)
    assert claim() is ClaimRefusal.UNDER_WAY
    assert not keep(slow, "too late")
    assert claim() is ClaimRefusal.UNDER_WAY
    assert keep(next_one, "in time")
    assert claim() == StoredResponse("in time")


def test_a_claim_holds_until_its_time_and_not_longer(claim, let_time_pass):
    claim(until=timedelta(seconds=60))
    let_time_pass(timedelta(seconds=50))
    assert claim() is ClaimRefusal.UNDER_WAY
    let_time_pass(timedelta(seconds=11))
    assert isinstance(claim(), Claim)


def test_after_its_time_a_key_is_new_for_any_request(claim, keep, let_time_pass):
    keep(claim())
    let_time_pass(LIFETIME - LATER)
    assert claim("other") is ClaimRefusal.OTHER_REQUEST
    assert claim() == StoredResponse("answer")
    let_time_pass(LATER)
    taken = claim("other")
    assert isinstance(taken, Claim)
    # Of the answer to the request before, nothing is left.
    assert claim("other") is ClaimRefusal.UNDER_WAY
    assert claim() is ClaimRefusal.OTHER_REQUEST


def test_a_key_lives_from_the_last_time_that_it_was_worked_on(claim, keep, release, let_time_pass):
    release(claim())
    let_time_pass(LIFETIME - LATER)
    keep(claim())
    let_time_pass(LIFETIME - LATER)
    assert claim() == StoredResponse("answer")


def test_callers_do_not_share_keys(claim, keep, fresh_database):
    with fresh_database.writing() as session:
        api_keys.create(session, prefix="alm_", name="second")
        other = session.scalars(select(ApiKey.id).where(ApiKey.name == "second")).one()
    keep(claim(), "mine")
    assert isinstance(claim(api_key_id=other), Claim)
    assert claim() == StoredResponse("mine")


def test_answers_are_sealed_for_their_row(claim, keep, fresh_database):
    keep(claim(digest="one"), "ada@example.com")
    keep(claim(digest="two"), "eve@example.com")
    (sealed,) = [row.sealed_answer for row in rows(fresh_database) if row.digest == "one"]
    assert b"ada" not in sealed
    assert "ada" not in repr(claim(digest="one"))

    with fresh_database.writing() as session:
        moved = update(IdempotencyKey).where(IdempotencyKey.digest == "two").values(sealed_answer=sealed)
        session.execute(moved)
    with pytest.raises(Undecipherable):
        claim(digest="two")


def test_keys_go_with_the_api_key(claim, keep, caller, fresh_database):
    working = claim()
    keep(claim(digest="kept"))
    with fresh_database.writing() as session:
        session.execute(delete(Organization))
    assert rows(fresh_database) == []
    assert not keep(working)


def test_purge_deletes_only_expired_keys_up_to_its_limit(claim, keep, fresh_database, let_time_pass):
    for n in range(5):
        keep(claim(digest=str(n)))
    let_time_pass(LIFETIME)
    claim(digest="young")

    def purge():
        with fresh_database.writing() as session:
            return idempotency.purge(session, limit=3)

    assert [purge(), purge(), purge()] == [3, 2, 0]
    assert [row.digest for row in rows(fresh_database)] == ["young"]


def test_purge_keeps_key_that_is_claimed_again(claim, keep, caller, keyring, fresh_database, let_time_pass):
    keep(claim())
    let_time_pass(LIFETIME)
    until = now() + LATER

    def purge():
        with fresh_database.writing() as session:
            return idempotency.purge(session, limit=10)

    with ThreadPoolExecutor(1) as thread:
        with fresh_database.writing() as session:
            again = idempotency.claim(
                session, keyring, api_key_id=caller, digest="d", fingerprint="other", until=until
            )
            purged = thread.submit(purge)
            # Long enough for it to have found the key and to wait for us.
            with pytest.raises(TimeoutError):
                purged.result(timeout=0.3)
        assert purged.result(timeout=10) == 0
    assert keep(again)
