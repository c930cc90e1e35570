"""What providers last said about the registrations."""

from __future__ import annotations

import pytest

from store.coordination import registration_checks
from store.coordination.registration_checks import KEY, RegistrationChecks


@pytest.fixture
def checks(stores):
    stores.redis.delete(KEY)
    yield RegistrationChecks(stores.redis)
    stores.redis.delete(KEY)


def test_nothing_is_known_until_a_provider_has_answered(checks):
    assert checks.read({"google": "ours"}) == {}
    assert checks.read({}) == {}

    checks.note("google", "ours", accepted=True)

    assert checks.read({"google": "ours", "microsoft": "ours"})["google"].accepted


def test_a_note_is_about_one_client(checks):
    checks.note("google", "before", accepted=False)

    assert checks.read({"google": "after"}) == {}


def test_a_change_is_noted_at_once_and_a_repetition_is_not(checks, stores, monkeypatch):
    checks.note("google", "ours", accepted=True)
    stores.redis.delete(KEY)
    checks.note("google", "ours", accepted=True)
    assert checks.read({"google": "ours"}) == {}

    checks.note("google", "ours", accepted=False, sentence="The secret has expired", advice="Make another")
    (check,) = checks.read({"google": "ours"}).values()
    assert (check.accepted, check.sentence, check.advice) == (False, "The secret has expired", "Make another")

    monkeypatch.setattr(registration_checks, "REPEAT_SECONDS", 0.0)
    stores.redis.delete(KEY)
    checks.note("google", "ours", accepted=False)
    assert checks.read({"google": "ours"})


def test_a_note_of_another_version_is_passed_over(checks, stores):
    stores.redis.hset(KEY, "google", b"{}")

    assert checks.read({"google": "ours"}) == {}


def test_what_is_forgotten_is_unknown(checks):
    checks.note("google", "ours", accepted=False)
    checks.forget("google")

    assert checks.read({"google": "ours"}) == {}
