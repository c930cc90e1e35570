"""Failures are cached for a few seconds, so that a repeated request does not call the provider again."""

from __future__ import annotations

import pytest

from tests.app.days import DAY, PROVIDERS, meeting, periods
from tests.conftest import Api, connect

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]


@pytest.fixture(params=PROVIDERS)
def account(request, sandbox):
    return sandbox.account(request.param, "ada@example.com", events=[meeting("09:00", "10:00")])


@pytest.fixture
def user(new_user, account):
    return new_user(account)


@pytest.fixture
def patient(new_app, api):
    """A client of an installation that caches failures for the longest time that settings allow."""
    return Api(new_app(failure_ttl_seconds=60.0).test_client(), api.key)


WELL = (200, [("09:00", "10:00")])


def ask(api, user, headers=None):
    """Status, and the busy periods or the error."""
    answer = api.get(f"/users/{user}/calendar/busy", headers, **DAY, primaryOnly="true")
    return answer.status_code, answer.json["error"] if answer.json["data"] is None else periods(answer)


@pytest.fixture
def failed(sandbox, patient, user):
    """The provider has refused a request, and works again."""
    sandbox.fault(status=403, reason="insufficientPermissions")
    found = ask(patient, user)
    assert found[0] == 403
    sandbox.clear_faults()
    sandbox.forget_requests()
    return found


def test_repeated_request_gets_cached_failure_without_a_call(sandbox, patient, user, failed):
    assert ask(patient, user) == failed
    assert sandbox.requests().total == 0


def test_a_no_cache_request_calls_the_provider(patient, user, failed):
    assert ask(patient, user, {"Cache-Control": "no-cache"}) == WELL
    # Later requests get the new answer: a cached answer takes precedence over a cached failure.
    assert ask(patient, user) == WELL


def test_a_failure_is_never_put_over_an_answer(sandbox, patient, user):
    assert ask(patient, user) == WELL
    sandbox.fault(status=403, reason="insufficientPermissions")
    assert ask(patient, user, {"Cache-Control": "no-cache"})[0] == 403
    assert ask(patient, user) == WELL


def test_a_reconnected_account_does_not_get_the_old_failure(patient, api, account, user, failed):
    connect(api, user, account)
    assert ask(patient, user) == WELL


def test_without_failure_caching_every_request_calls_the_provider(new_app, api, user, failed):
    asking = Api(new_app(failure_ttl_seconds=0.0).test_client(), api.key)
    assert ask(asking, user) == WELL
