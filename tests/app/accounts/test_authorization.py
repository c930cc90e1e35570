"""Connecting accounts by consent: from the link to a connection that works, and what the browser shows."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from store.sql.models import AuditRecord
from tests.app.answers import connections_of, error
from tests.app.consenting import ADA, BOTH, OWN, arrive, connected, consent, link, nothing_connected, query_of
from tests.app.days import DAY, meeting, periods
from tests.conftest import Api

pytestmark = pytest.mark.usefixtures("worker")

WRITE = {"google": "https://www.googleapis.com/auth/calendar", "microsoft": "Calendars.ReadWrite"}


# --- the loop


@BOTH
def test_consent_connects_account_and_makes_it_readable(api, sandbox, new_user, provider):
    sandbox.account(provider, ADA, events=[meeting("09:00", "10:00")])
    user = new_user()

    page = arrive(api, consent(link(api, user, provider)))

    assert (page.status_code, page.mimetype) == (200, "text/html")
    assert ADA in page.text
    assert "reading and writing" in page.text
    made = connected(api, user, provider)
    assert (made["alive"], made["email"]) == (True, ADA)
    assert any(scope.endswith(WRITE[provider]) for scope in made["scope"])
    assert periods(api.get(f"/users/{user}/calendar/busy", **DAY)) == [("09:00", "10:00")]


@BOTH
def test_caller_that_receives_the_redirect_verifies_it(allowing, sandbox, new_user, provider):
    sandbox.account(provider, ADA)
    user = new_user()
    landed = consent(link(allowing, user, provider, redirectUrl=OWN))
    assert landed.startswith(f"{OWN}?")
    came = query_of(landed)

    body = {"code": came["code"], "state": came["state"], "scope": came.get("scope", "")}
    answer = allowing.post(f"/users/oauth/{provider}/verify", body)

    assert (answer.status_code, answer.json) == (200, {"data": {"success": True}})
    assert connected(allowing, user, provider)["alive"]


@BOTH
def test_the_three_ways_to_a_link_are_one(api, sandbox, new_user, provider):
    user = new_user()
    by_query = api.get(f"/users/{user}/oauth/{provider}/link", scope="read", accessType="online")
    by_body = link(api, user, provider, scope="read", accessType="online")
    listed = api.get(f"/users/{user}/oauth/links", scope="read", accessType="online").json["data"]

    found = [by_query.json["data"]["link"], by_body, dict_of(listed)[provider]]
    changing = {"state", "code_challenge"}
    parameters = [
        {name: value for name, value in query_of(each).items() if name not in changing} for each in found
    ]
    assert parameters[0] == parameters[1] == parameters[2]
    assert len({query_of(each)["state"] for each in found}) == 3


def dict_of(links) -> dict[str, str]:
    return {each["provider"]: each["link"] for each in links}


def test_a_link_names_the_requested_access_and_hides_the_verifier(api, new_user, environment):
    user = new_user()
    google = query_of(link(api, user, "google"))
    assert google.pop("state")
    assert len(google.pop("code_challenge")) == 43
    assert google == {
        "response_type": "code",
        "client_id": "sandbox",
        "redirect_uri": "http://localhost/v1/oauth/google/callback",
        "scope": "https://www.googleapis.com/auth/calendar openid email",
        "code_challenge_method": "S256",
        "access_type": "offline",
        "prompt": "consent",
    }
    url = link(api, user, "microsoft", accessType="online", scope="free-busy")
    assert url.startswith(f"{environment['ALMANAC_MICROSOFT_LOGIN_URL']}/common/oauth2/v2.0/authorize?")
    microsoft = query_of(url)
    assert microsoft["scope"] == "Calendars.ReadBasic openid email profile User.Read MailboxSettings.Read"
    assert (microsoft["response_mode"], microsoft["prompt"]) == ("query", "select_account")


def test_the_callback_is_at_the_public_address_when_there_is_one(new_app, api, new_user):
    behind_a_proxy = Api(new_app(public_url="https://calendar.example.com").test_client(), api.key)

    query = query_of(link(behind_a_proxy, new_user(), "google"))

    assert query["redirect_uri"] == "https://calendar.example.com/v1/oauth/google/callback"


@BOTH
def test_reconnecting_suggests_account_and_replaces_connection(api, sandbox, new_user, stores, provider):
    account = sandbox.account(provider, ADA)
    user = new_user(account)
    with stores.database.reading() as session:
        before = session.scalars(connections_of(user)).one().id
    url = link(api, user, provider)
    assert query_of(url)["login_hint"] == ADA

    assert arrive(api, consent(url)).status_code == 200

    with stores.database.reading() as session:
        after = session.scalars(connections_of(user)).one()
    assert after.id != before
    assert after.alive


@BOTH
def test_a_dead_connection_comes_back_to_life(api, sandbox, new_user, provider):
    user = new_user(sandbox.account(provider, ADA, expires_in=0))
    sandbox.revoke(ADA)
    api.get(f"/users/{user}/calendar/busy", **DAY)
    assert not connected(api, user, provider)["alive"]

    arrive(api, consent(link(api, user, provider)))

    assert connected(api, user, provider)["alive"]
    assert periods(api.get(f"/users/{user}/calendar/busy", **DAY)) == []


def test_a_user_renamed_meanwhile_is_connected_all_the_same(api, sandbox, new_user, unique):
    sandbox.account("google", ADA)
    user, other = new_user(), unique("renamed")
    landed = consent(link(api, user, "google"))
    api.put(f"/users/{user}", {"userId": other})

    assert arrive(api, landed).status_code == 200
    assert connected(api, other, "google")["alive"]


def test_the_requester_of_a_connection_is_audited(api, sandbox, new_user, stores):
    sandbox.account("google", ADA)
    user = new_user()
    arrive(api, consent(link(api, user, "google")))

    query = select(AuditRecord).where(AuditRecord.subject == f"{user}/google")
    with stores.database.reading() as session:
        found = [(each.action, each.actor) for each in session.scalars(query)]
    assert found == [("connect", api.key[:12])]


# --- where the browser goes in the end


@BOTH
def test_the_browser_is_sent_on_to_the_return_url(allowing, sandbox, new_user, provider):
    sandbox.account(provider, ADA)
    target = "https://app.example.com/in/settings?tab=calendars"
    landed = consent(link(allowing, new_user(), provider, returnUrl=target))

    answer = arrive(allowing, landed)

    assert answer.status_code == 302
    assert answer.headers["Location"] == f"{target}&provider={provider}&connected=true"


def test_the_return_url_learns_of_a_refusal(allowing, sandbox, new_user):
    user = new_user()
    landed = consent(link(allowing, user, "google", returnUrl=OWN), email="nobody@example.com")

    answer = arrive(allowing, landed)

    assert answer.status_code == 302
    assert query_of(answer.headers["Location"]) == {
        "provider": "google",
        "connected": "false",
        "error": "Access was not granted",
    }
    assert nothing_connected(allowing, user)


@pytest.mark.parametrize("field", ["redirectUrl", "returnUrl"])
@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example.com/connected",
        "https://app.example.com/connected/more",
        "https://app.example.com/in/../connected/more",
        "javascript:alert(1)",
        "",
    ],
)
def test_an_address_that_is_not_on_the_list_is_refused(allowing, new_user, field, url):
    user = new_user()
    for answer in (
        allowing.post(f"/users/{user}/oauth/google/authorize", {field: url}),
        allowing.get(f"/users/{user}/oauth/google/link", **{field: url}),
        allowing.get(f"/users/{user}/oauth/links", **{field: url}),
    ):
        assert error(answer, 400) == f"{field} is not an address that ALMANAC_REDIRECT_URLS allows"


def test_without_a_list_only_our_own_callback_is_allowed(api, new_user):
    user = new_user()
    own = "http://localhost/v1/oauth/google/callback"

    refused = api.post(f"/users/{user}/oauth/google/authorize", {"redirectUrl": OWN})

    assert error(refused, 400).startswith("redirectUrl ")
    assert query_of(link(api, user, "google", redirectUrl=own))["redirect_uri"] == own


def test_a_return_url_has_no_use_beside_a_redirect_url(allowing, new_user):
    answer = allowing.post(
        f"/users/{new_user()}/oauth/google/authorize", {"redirectUrl": OWN, "returnUrl": OWN}
    )

    assert error(answer, 400).startswith("returnUrl cannot be combined with redirectUrl")


# --- the page


def test_the_page_calls_no_other_host_and_runs_no_script(api, sandbox, new_user):
    sandbox.account("google", ADA)
    page = arrive(api, consent(link(api, new_user(), "google")))

    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'nonce-")
    nonce = policy.split("nonce-")[1].split("'")[0]
    assert f'<style nonce="{nonce}">' in page.text
    for outside in ("http:", "https:", "<script", "src=", "href=", "url("):
        assert outside not in page.text
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["Referrer-Policy"] == "no-referrer"


def test_nothing_of_the_query_is_repeated(api, new_user):
    state = query_of(link(api, new_user(), "google"))["state"]
    planted = "<script>alert(1)</script>"

    page = api.client.get(
        "/v1/oauth/google/callback",
        query_string={"state": state, "error": planted, "error_description": planted},
    )

    assert page.status_code == 400
    assert "alert(1)" not in page.text
    assert "Google refused" in page.text


@pytest.mark.parametrize(
    ("word", "status", "message"),
    [
        ("access_denied", 400, "Access was not granted."),
        ("admin_policy_enforced", 400, "The administrator of this account does not allow it."),
        ("interaction_required", 400, "Microsoft needs another sign-in."),
        ("temporarily_unavailable", 502, "Microsoft is not available just now."),
        ("unauthorized_client", 502, "Microsoft refuses the registration of this installation."),
        ("invalid_scope", 502, "Microsoft refuses the registration of this installation."),
        ("something_new", 400, "Microsoft refused."),
    ],
)
def test_a_provider_error_in_place_of_a_code_is_shown_on_the_page(api, new_user, word, status, message):
    user = new_user()
    state = query_of(link(api, user, "microsoft"))["state"]

    page = api.client.get("/v1/oauth/microsoft/callback", query_string={"state": state, "error": word})

    assert (page.status_code, page.mimetype) == (status, "text/html")
    assert f'<p role="alert">{message}</p>' in page.text
    assert nothing_connected(api, user)


def test_a_callback_without_code_or_error_is_refused(api, new_user):
    state = query_of(link(api, new_user(), "google"))["state"]

    page = api.client.get("/v1/oauth/google/callback", query_string={"state": state})

    assert page.status_code == 400
    assert "sent no code" in page.text
