"""A stored registration is tested once, and its secret does not leak."""

from __future__ import annotations

import logging
import time

import pytest

from providers.oauth.registration_probe import ProbeVerdict
from store.security.one_time_secrets import RegistrationTrial
from workers.execution.writes import perform
from workers.fanout.codec import pack_job, pack_reply, unpack_jobs, unpack_reply
from workers.jobs import CheckRegistration, Reply
from workers.runtime import Runtime

REDIRECT = "https://almanac.example.com/v1/oauth/callback"
TENANT = "contoso.onmicrosoft.com"


@pytest.fixture
def try_out(runtime: Runtime):
    """Check a registration, as the writes queue does."""

    def tried(
        provider: str, client_id: str = "id", secret: str = "planted", tenant: str | None = None
    ) -> Reply:
        trial = RegistrationTrial(provider, client_id, secret, tenant, REDIRECT)
        job = CheckRegistration(runtime.stores.registration_trials.put(trial))
        return perform(runtime, job, None, time.monotonic() + 5)

    return tried


@pytest.mark.parametrize(
    ("provider", "entered", "verdict"),
    [
        ("google", {}, ProbeVerdict.RIGHT),
        ("google", {"client_id": "wrong"}, ProbeVerdict.WRONG),
        ("google", {"secret": "wrong"}, ProbeVerdict.WRONG),
        ("microsoft", {"tenant": TENANT}, ProbeVerdict.RIGHT),
        ("microsoft", {"tenant": TENANT, "secret": "expired"}, ProbeVerdict.WRONG),
        ("microsoft", {"tenant": "wrong.example.com"}, ProbeVerdict.WRONG),
        # The tenant of the settings: common.
        ("microsoft", {"secret": "wrong"}, ProbeVerdict.UNKNOWN),
    ],
)
def test_what_waits_is_tried_and_not_what_is_in_force(sandbox, try_out, provider, entered, verdict):
    reply = try_out(provider, **entered)

    assert reply.failed is None
    assert reply.finding.verdict is verdict


def test_a_finding_survives_the_way_back(sandbox, try_out):
    reply = try_out("google", secret="wrong")

    assert unpack_reply(pack_reply(3, reply)) == (3, reply)
    assert unpack_reply(pack_reply(4, Reply())) == (4, Reply())


def test_a_provider_that_hangs_leaves_it_open_in_time(sandbox, runtime):
    sandbox.fault(operation="google.token", latency_ms=3000)
    name = runtime.stores.registration_trials.put(
        RegistrationTrial("google", "id", "planted", None, REDIRECT)
    )
    began = time.monotonic()

    reply = perform(runtime, CheckRegistration(name), None, began + 0.5)

    assert reply.finding.verdict is ProbeVerdict.UNKNOWN
    assert time.monotonic() - began < 2


def test_what_was_taken_or_has_ended_is_not_tried(sandbox, runtime):
    reply = perform(runtime, CheckRegistration("unknown"), None, time.monotonic() + 5)

    assert reply == Reply()
    assert sandbox.requests().total == 0


def test_job_reply_and_log_do_not_contain_the_secret(sandbox, runtime, caplog):
    caplog.set_level(logging.DEBUG)
    trial = RegistrationTrial("google", "id", "planted-secret", None, REDIRECT)
    job = CheckRegistration(runtime.stores.registration_trials.put(trial))

    reply = perform(runtime, job, None, time.monotonic() + 5)

    assert unpack_jobs(pack_job(0, job))[0].job == job
    assert "planted" not in f"{pack_job(0, job)} {job!r} {reply!r} {pack_reply(0, reply)} {caplog.text}"
    assert "registration checked: google is right" in caplog.text
