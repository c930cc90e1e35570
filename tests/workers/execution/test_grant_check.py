"""The grant of an organization is checked once, and its secret does not leak."""

from __future__ import annotations

import json
import logging
import time
from datetime import timedelta

import pytest
import time_machine

from providers.errors import GrantRefused, Reason
from store.security.one_time_secrets import GrantTrial
from store.sql.models import now
from workers.execution.checks import LOST
from workers.execution.writes import perform
from workers.fanout.codec import pack_job, pack_reply, unpack_jobs, unpack_reply
from workers.jobs import CheckGrant, GrantCheck, Reply
from workers.runtime import Runtime

CALENDAR = "https://www.googleapis.com/auth/calendar"


@pytest.fixture
def google(sandbox) -> GrantTrial:
    domain = sandbox.domain("google", "acme.example")
    key_file = json.dumps(domain.service_account_key)
    return GrantTrial("google", domain.subject, None, None, key_file, (CALENDAR,))


@pytest.fixture
def microsoft(sandbox) -> GrantTrial:
    domain = sandbox.domain("microsoft", "acme.example", scope=["Calendars.Read"])
    return GrantTrial("microsoft", None, domain.tenant, domain.client_id, domain.client_secret, ())


@pytest.fixture
def check(runtime: Runtime):
    """Check a grant, as the writes queue does."""

    def checked(trial: GrantTrial, seconds: float = 5) -> Reply:
        job = CheckGrant(runtime.stores.grant_trials.put(trial))
        return perform(runtime, job, None, time.monotonic() + seconds)

    return checked


def test_a_grant_in_force_is_accepted_with_its_scope(check, google, microsoft):
    assert check(google).checked.refused is None
    assert check(microsoft).checked == GrantCheck(scope=("Calendars.Read",))


def test_a_clock_that_is_ten_minutes_off_is_named_with_what_to_do(check, google):
    for minutes in (-70, 10):
        # The assertion is for an hour, so a clock that is late makes one that has expired.
        with time_machine.travel(now() + timedelta(minutes=minutes), tick=True):
            checked = check(google).checked
        assert checked.refused == "grant"
        assert "correct its clock" in checked.message


def test_an_expired_trial_is_lost_and_not_refused(runtime, check):
    reply = perform(runtime, CheckGrant("gone"), None, time.monotonic() + 1)
    assert (reply.failed, reply.checked) == (LOST, None)


def test_a_provider_that_does_not_answer_is_a_failure_and_no_refusal(check, sandbox, google):
    sandbox.fault(operation="google.token", status=503, retry_after=60)
    reply = check(google)
    assert (reply.failed.reason, reply.checked) == (Reason.PROVIDER_ERROR, None)


def test_a_stored_key_that_cannot_be_read_refuses_the_grant(runtime):
    for text in ("no JSON", "{}"):
        trial = GrantTrial("google", "a@acme.example", None, None, text, (CALENDAR,))
        with pytest.raises(GrantRefused, match="cannot be read"):
            runtime.provider("google").grants.token(trial, trial.subject, deadline=0)


def test_installation_registration_is_the_default(runtime, sandbox):
    there = runtime.settings.providers
    ours = {"clientId": there.microsoft_client_id, "clientSecret": there.microsoft_client_secret}
    domain = sandbox.domain("microsoft", "acme.example", **ours)
    trial = GrantTrial("microsoft", None, domain.tenant, None, None, ())
    grants = runtime.provider("microsoft").grants
    assert grants.token(trial, None, deadline=time.monotonic() + 5).access_token


def test_the_secret_is_in_no_log_line_and_no_message(caplog, check, google):
    caplog.set_level(logging.DEBUG)
    reply = check(google)
    wrong = check(GrantTrial("google", "nobody@acme.example", None, None, google.secret, (CALENDAR,)))

    secret = json.loads(google.secret)["private_key"].splitlines()[3]
    job = CheckGrant("0123")
    told = f"{caplog.text}{reply!r}{wrong!r}{pack_reply(1, wrong)!r}{pack_job(1, job)!r}"
    assert secret not in told
    assert "nobody@" not in told
    assert unpack_jobs(pack_job(1, job))[0].job == job
    assert unpack_reply(pack_reply(3, wrong)) == (3, wrong)
