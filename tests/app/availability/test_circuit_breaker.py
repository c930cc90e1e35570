"""An open circuit breaker: immediate failures in every route, no calls to the provider, no leftover jobs."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from store.coordination.provider_limits import Access
from store.sql.models import OAuthConnection, User
from tests.app.answers import error
from tests.app.days import DAY, MORNING, PROVIDERS, meeting, starts
from tests.app.two_accounts import Both
from tests.observability.scraping import parse

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
OTHER = {"google": "microsoft", "microsoft": "google"}
SENTENCE = {
    "google": "Google Calendar has not been answering; try again in a moment",
    "microsoft": "Microsoft 365 has not been answering; try again in a moment",
}
BUSY = [meeting("09:00", "10:00")]


@BOTH
def test_its_members_are_named_and_the_others_answered_without_a_call(
    api, sandbox, new_user, new_organization, open_breaker, provider
):
    slug = new_organization()
    accounts = [sandbox.account(each, f"{each}@example.com", events=BUSY) for each in PROVIDERS]
    users = {each.provider: new_user(each, slugs=(slug,)) for each in accounts}
    sandbox.forget_requests()
    open_breaker(provider)

    answer = api.get(f"/organizations/{slug}/scheduling", **MORNING)

    assert starts(answer) == ["10:00", "11:00"]
    assert {slot["userId"] for slot in answer.json["data"]["availableSlots"]} == {users[OTHER[provider]]}
    (named,) = answer.json["failedUsers"]
    assert (named["customId"], named["reason"], named["message"]) == (
        users[provider],
        "providerError",
        SENTENCE[provider],
    )
    assert set(sandbox.requests().by_operation) & {"google.freebusy.query", "microsoft.batch"} == {
        {"google": "google.freebusy.query", "microsoft": "microsoft.batch"}[OTHER[provider]]
    }


@BOTH
def test_one_user_is_answered_502_with_when_to_come_back(api, sandbox, new_user, open_breaker, provider):
    user = new_user(sandbox.account(provider, "ada@example.com"))
    sandbox.forget_requests()
    open_breaker(provider)
    for path in (f"/users/{user}/scheduling", f"/users/{user}/calendar/busy"):
        answer = api.get(path, **DAY)
        assert error(answer, 502) == SENTENCE[provider]
        assert answer.json["reason"] == "providerError"
        assert 50 < int(answer.headers["Retry-After"]) <= 60
    assert sandbox.requests().total == 0


def test_cached_answers_still_work(api, sandbox, new_user, open_breaker):
    user = new_user(sandbox.account("google", "ada@example.com", events=BUSY))
    assert starts(api.get(f"/users/{user}/scheduling", **MORNING)) == ["10:00", "11:00"]
    open_breaker("google")
    assert starts(api.get(f"/users/{user}/scheduling", **MORNING)) == ["10:00", "11:00"]


@BOTH
def test_an_event_is_not_written(api, sandbox, new_user, open_breaker, provider):
    user = new_user(sandbox.account(provider, "ada@example.com"))
    sandbox.forget_requests()
    open_breaker(provider, access=Access.WRITES)
    answer = api.post(f"/users/{user}/calendar/events/{provider}/primary", {"subject": "x", **BUSY[0]})
    assert (answer.status_code, answer.json["error"]) == (502, SENTENCE[provider])
    assert 50 < int(answer.headers["Retry-After"]) <= 60
    assert sandbox.requests().total == 0


@BOTH
def test_unified_event_behind_open_breaker_leaves_no_copy(api, sandbox, new_user, open_breaker, provider):
    both = Both.connected(api, sandbox, new_user)
    open_breaker(provider, access=Access.WRITES)
    answer = both.create(metaId="m-1", subject="Half")
    assert answer.status_code == 502
    assert answer.json["error"] == f"{SENTENCE[provider]}. The copies of this request were deleted again"


def test_an_account_alone_is_left_alone(api, sandbox, new_user, open_breaker, stores):
    user = new_user(sandbox.account("google", "ada@example.com"))
    other = new_user(sandbox.account("google", "bob@example.com"))
    with stores.database.reading() as session:
        (row,) = session.scalars(select(OAuthConnection).join(User).where(User.custom_id == user))
    open_breaker("google", row.id)
    assert api.get(f"/users/{user}/scheduling", **DAY).status_code == 502
    assert api.get(f"/users/{other}/scheduling", **DAY).status_code == 200
    # The connection stays alive: the user need not connect again.
    assert api.get(f"/users/{user}/oauth").json["data"][0]["alive"]


def test_an_open_breaker_is_in_the_metrics_but_not_in_readiness(api, open_breaker, stores):
    open_breaker("google")
    ends = (stores.redis.time()[0] + 60) * 1000
    stores.redis.zadd("open-accounts:microsoft:reads", {"a": ends, "b": ends, "gone": 1})
    found = parse(api.client.get("/metrics").text)
    assert found("almanac_breaker_open", provider="google", calls="reads") == 1
    assert found("almanac_breaker_open", provider="google", calls="writes") == 0
    assert found.sum("almanac_breaker_open") == 1
    assert found("almanac_breaker_accounts_open", provider="microsoft", calls="reads") == 2
    assert found.sum("almanac_breaker_accounts_open") == 2
    assert api.client.get("/readyz").status_code == 200
