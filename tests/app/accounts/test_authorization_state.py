"""State and code at the callback, and the scopes that the exchange grants."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
import requests

from store.security.one_time_secrets import STATE_SECONDS
from tests.app.answers import OF_ERROR, OF_PROVIDER, error
from tests.app.consenting import ADA, BOTH, OWN, arrive, connected, consent, link, nothing_connected, query_of
from tests.app.days import DAY, meeting, periods
from tests.conftest import Api

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

STALE = "state is unknown, expired or already used"
CODE_REFUSED = "The code is no longer valid; start again"
READ = {"google": "https://www.googleapis.com/auth/calendar.readonly", "microsoft": "Calendars.Read"}
FREE_BUSY = {
    "google": "https://www.googleapis.com/auth/calendar.freebusy",
    "microsoft": "Calendars.ReadBasic",
}


# --- state


@BOTH
def test_a_state_works_once(allowing, sandbox, new_user, provider):
    sandbox.account(provider, ADA)
    user = new_user()
    landed = consent(link(allowing, user, provider))
    assert arrive(allowing, landed).status_code == 200
    sandbox.forget_requests()

    again = arrive(allowing, landed)

    assert again.status_code == 400
    assert "used before" in again.text
    body = query_of(landed)
    verified = allowing.post(f"/users/oauth/{provider}/verify", body)
    assert error(verified, 400) == STALE
    assert sandbox.requests().total == 0


def test_a_state_ends_after_ten_minutes(api, sandbox, new_user, stores):
    sandbox.account("google", ADA)
    user = new_user()
    before = set(stores.redis.scan_iter("oauth-state:*"))
    landed = consent(link(api, user, "google"))
    (name,) = set(stores.redis.scan_iter("oauth-state:*")) - before
    assert STATE_SECONDS - 5 <= stores.redis.ttl(name) <= STATE_SECONDS == 600

    assert stores.redis.pexpire(name, 0)

    assert arrive(api, landed).status_code == 400
    assert nothing_connected(api, user)


@pytest.mark.parametrize("state", ["", "guessed", "x" * 400, "ä\u0000"])
def test_an_unknown_state_is_refused(api, sandbox, state):
    page = api.client.get("/v1/oauth/google/callback", query_string={"state": state, "code": "4/0A"})

    assert (page.status_code, page.mimetype) == (400, "text/html")
    assert sandbox.requests().total == 0


def test_a_state_for_another_provider_is_refused_and_used_up(allowing, sandbox, new_user):
    sandbox.account("google", ADA)
    user = new_user()
    body = query_of(consent(link(allowing, user, "google", redirectUrl=OWN)))

    assert error(allowing.post("/users/oauth/microsoft/verify", body), 400) == STALE
    assert error(allowing.post("/users/oauth/google/verify", body), 400) == STALE
    assert nothing_connected(allowing, user)


def test_our_callback_does_not_take_a_state_that_was_to_go_elsewhere(allowing, sandbox, new_user):
    sandbox.account("google", ADA)
    user = new_user()
    body = query_of(consent(link(allowing, user, "google", redirectUrl=OWN)))

    assert allowing.client.get("/v1/oauth/google/callback", query_string=body).status_code == 400
    assert nothing_connected(allowing, user)


def test_a_key_that_does_not_reach_the_user_uses_a_state_up(allowing, sandbox, new_user, new_api):
    sandbox.account("google", ADA)
    stranger_org = f"org-of-{new_user()}"
    allowing.post("/organizations", {"slug": stranger_org, "name": None})
    stranger = Api(allowing.client, new_api(stranger_org).key)
    user = new_user()
    body = query_of(consent(link(allowing, user, "google", redirectUrl=OWN)))

    assert error(stranger.post("/users/oauth/google/verify", body), 400) == STALE
    assert error(allowing.post("/users/oauth/google/verify", body), 400) == STALE
    assert nothing_connected(allowing, user)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"code": None}, "code is required"),
        ({"code": ""}, "code must have 1 to 8192 characters"),
        ({"state": ""}, "state must have 1 to 512 characters"),
        ({"state": 5}, "state must be a string"),
        ({"scope": 5}, "scope must be a string or an array of strings"),
        ({"scope": [5]}, "scope must be a string or an array of strings"),
    ],
)
def test_a_bad_verification_is_refused_before_anything_is_used_up(
    allowing, sandbox, new_user, changed, message
):
    sandbox.account("google", ADA)
    body = query_of(consent(link(allowing, new_user(), "google", redirectUrl=OWN)))

    assert error(allowing.post("/users/oauth/google/verify", body | changed), 400).startswith(message)
    assert allowing.post("/users/oauth/google/verify", body).status_code == 200


# --- the exchange


@BOTH
def test_a_code_that_the_provider_rejects_connects_no_account(allowing, sandbox, new_user, provider):
    sandbox.account(provider, ADA)
    user = new_user()
    first = query_of(consent(link(allowing, user, provider, redirectUrl=OWN)))
    second = query_of(consent(link(allowing, user, provider, redirectUrl=OWN)))
    assert allowing.post(f"/users/oauth/{provider}/verify", first).status_code == 200

    # Another state, and so another verifier: neither a used code nor a stolen one is worth anything.
    used = allowing.post(f"/users/oauth/{provider}/verify", second | {"code": first["code"]})
    third = query_of(consent(link(allowing, user, provider, redirectUrl=OWN)))
    stolen = allowing.post(f"/users/oauth/{provider}/verify", third | {"code": second["code"]})

    assert error(used, 400) == error(stolen, 400) == CODE_REFUSED


@BOTH
@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"status": 503}, "is not available just now"),
        ({"body": "truncated"}, ""),
        ({"body": "html"}, "gave an unreadable answer"),
        ({"latency_ms": 4000}, "did not answer in time"),
    ],
    ids=["503", "truncated", "html", "slow"],
)
def test_a_provider_that_fails_is_502_and_its_code_is_sent_once(
    api, sandbox, new_user, provider, fault, message
):
    sandbox.account(provider, ADA)
    user = new_user()
    landed = consent(link(api, user, provider))
    sandbox.fault(operation=f"{provider}.token", **fault)
    sandbox.forget_requests()

    page = arrive(api, landed)

    assert page.status_code == 502
    assert message in page.text
    assert "a few minutes" in page.text
    assert sandbox.requests().by_operation == {f"{provider}.token": 1}
    assert nothing_connected(api, user)


def test_a_user_deleted_meanwhile_is_404(allowing, sandbox, new_user):
    sandbox.account("google", ADA)
    gone, going = new_user(), new_user()
    landed = consent(link(allowing, gone, "google"))
    body = query_of(consent(link(allowing, going, "google", redirectUrl=OWN)))
    allowing.delete(f"/users/{gone}")
    allowing.delete(f"/users/{going}")

    page = arrive(allowing, landed)

    assert page.status_code == 404
    assert "User not found" in page.text
    # The error for a state of a deleted user is that of an unknown state.
    assert error(allowing.post("/users/oauth/google/verify", body), 400) == STALE


@BOTH
def test_the_granted_scope_counts_and_not_the_requested_one(api, sandbox, new_user, provider):
    sandbox.account(provider, ADA, events=[meeting("09:00", "10:00")])
    user = new_user()
    url = link(api, user, provider, scope="read")
    levels = {
        "google": "openid email calendar.freebusy calendar.calendarlist.readonly",
        "microsoft": "openid email profile offline_access Calendars.ReadBasic",
    }
    endpoint = url.replace(urlsplit(url).query, "")
    narrowed = query_of(url) | {"scope": levels[provider]}
    landed = requests.get(
        endpoint, params=narrowed | {"login_hint": ADA}, allow_redirects=False, timeout=10
    ).headers["Location"]

    page = arrive(api, landed)

    assert "Free and busy times only" in page.text
    assert any(scope.endswith(FREE_BUSY[provider]) for scope in connected(api, user, provider)["scope"])
    assert periods(api.get(f"/users/{user}/calendar/busy", **DAY, primaryOnly="true")) == [("09:00", "10:00")]
    refused = api.get(f"/users/{user}/calendar/events", **DAY)
    assert refused.status_code == 403
    assert refused.json.keys() == OF_ERROR | OF_PROVIDER | {"operation", "validScopes"}
    assert refused.json["operation"] == "calendar.events.list"
    assert any(scope.endswith(READ[provider]) for scope in refused.json["validScopes"])


@BOTH
def test_a_caller_may_choose_the_scopes(api, sandbox, new_user, provider):
    own = {
        "google": "https://www.googleapis.com/auth/calendar.events.readonly",
        "microsoft": "Calendars.Read",
    }[provider]
    naming = {"google": "openid email", "microsoft": "openid email profile offline_access"}[provider]
    user = new_user()

    by_body = query_of(link(api, user, provider, scope=[own]))["scope"]
    by_query = api.get(f"/users/{user}/oauth/{provider}/link", scope=own).json["data"]["link"]

    assert by_body == query_of(by_query)["scope"] == f"{own} {naming}"


@pytest.mark.parametrize(
    ("scope", "message"),
    [
        ("admin", "scope must be one of free-busy, read, write, edit"),
        ("", "scope must be one of"),
        ([], "scope must have 1 to 200 elements"),
        (["calendar"] * 201, "scope must have 1 to 200 elements"),
        (["openid email"], "scope[0] must be a scope"),
        (["openid", 5], "scope[1] must be a scope"),
        (5, "scope must be a string or an array"),
    ],
)
def test_a_scope_that_is_none_is_refused(api, new_user, scope, message):
    answer = api.post(f"/users/{new_user()}/oauth/google/authorize", {"scope": scope})

    assert error(answer, 400).startswith(message)


@pytest.mark.parametrize("level", ["write", "edit", "read", "free-busy", None])
def test_the_levels_are_taken_by_body_and_by_query(api, new_user, level):
    user = new_user()
    options = {} if level is None else {"scope": level}

    by_query = api.get(f"/users/{user}/oauth/google/link", **options)

    scope = query_of(link(api, user, "google", **options))["scope"]
    assert query_of(by_query.json["data"]["link"])["scope"] == scope
    assert ("auth/calendar openid" in scope) == (level in ("write", "edit", None))


def test_a_word_in_the_query_that_is_no_level_is_refused(api, new_user):
    answer = api.get(f"/users/{new_user()}/oauth/google/link", scope="admin")

    assert error(answer, 400).startswith("scope must be one of free-busy, read, write, edit")


def test_an_access_type_that_is_none_is_refused(api, new_user):
    answer = api.post(f"/users/{new_user()}/oauth/google/authorize", {"accessType": "sometimes"})

    assert error(answer, 400) == "accessType must be one of offline, online"


@BOTH
def test_online_access_comes_without_a_refresh_token(api, new_api, sandbox, new_user, provider):
    sandbox.account(provider, ADA)
    user = new_user()
    arrive(api, consent(link(api, user, provider, accessType="online")))

    teller = new_api(shows_tokens=True)
    shown = teller.get(f"/users/{user}/oauth/{provider}", showToken="true").json["data"]
    assert shown["accessToken"]
    assert shown["refreshToken"] is None
