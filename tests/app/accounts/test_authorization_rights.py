"""Access rights: beginning a consent, finishing it, and reading its tokens; and secrets that stay secret."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import select

from store.sql.models import AuditRecord
from store.sql.queries import api_keys
from tests.app.answers import error
from tests.app.consenting import ADA, BOTH, arrive, connected, consent, link
from tests.app.days import DAY, meeting, periods
from tests.conftest import Api, connect

pytestmark = pytest.mark.usefixtures("worker")


# --- who may


def test_a_provider_that_is_not_configured_has_no_links(new_app, settings, api, new_user):
    providers = replace(settings.providers, google_client_id="")
    without_google = Api(new_app(providers=providers).test_client(), api.key)
    user = new_user()

    for answer in (
        without_google.post(f"/users/{user}/oauth/google/authorize", {}),
        without_google.get(f"/users/{user}/oauth/google/link"),
    ):
        assert error(answer, 404) == "Google is not configured: this installation is not registered there"
    listed = without_google.get(f"/users/{user}/oauth/links").json["data"]
    assert [each["provider"] for each in listed] == ["microsoft"]


def test_a_read_only_key_makes_no_link_and_calls_no_provider(new_api, sandbox, new_user):
    reader, user = new_api(read_only=True), new_user(sandbox.account("google", ADA))
    sandbox.forget_requests()

    for answer in (
        reader.get(f"/users/{user}/oauth/google/link"),
        reader.get(f"/users/{user}/oauth/links"),
        reader.post(f"/users/{user}/oauth/google/authorize", {}),
        reader.post(f"/users/{user}/calendar/events/google/primary", meeting("09:00", "10:00")),
        reader.delete(f"/users/{user}/oauth/google"),
    ):
        assert error(answer, 403) == "This API key is read-only"
    assert sandbox.requests().total == 0


# --- tokens


@BOTH
def test_a_token_is_shown_as_it_is_while_it_is_in_force(new_api, sandbox, new_user, stores, provider):
    account = sandbox.account(provider, ADA)
    user = new_user(account)
    sandbox.forget_requests()
    teller = new_api(shows_tokens=True)

    answer = teller.get(f"/users/{user}/oauth/{provider}/token")

    assert (answer.status_code, answer.json) == (200, {"data": {"accessToken": account.access_token}})
    assert sandbox.requests().total == 0
    query = select(AuditRecord).where(AuditRecord.subject == f"{user}/{provider}")
    with stores.database.reading() as session:
        assert [(each.action, each.actor) for each in session.scalars(query)] == [
            ("showToken", teller.key[:12])
        ]


@BOTH
@pytest.mark.parametrize("seconds", [0, 45])
def test_a_token_that_ends_within_a_minute_is_refreshed_first(new_api, sandbox, new_user, provider, seconds):
    account = sandbox.account(provider, ADA, expires_in=seconds)
    user = new_user(account)

    token = (
        new_api(shows_tokens=True).get(f"/users/{user}/oauth/{provider}/token").json["data"]["accessToken"]
    )

    assert token != account.access_token
    assert sandbox.requests().by_operation == {f"{provider}.token": 1}


@BOTH
def test_a_token_of_a_grant_that_is_gone_is_401(new_api, sandbox, new_user, provider, stores):
    user = new_user(sandbox.account(provider, ADA, expires_in=0))
    sandbox.revoke(ADA)
    teller = new_api(shows_tokens=True)

    for _ in range(2):
        answer = teller.get(f"/users/{user}/oauth/{provider}/token")
        assert error(answer, 401) == f"{provider.title()} says that this connection has ended"
    assert sandbox.requests().by_operation == {f"{provider}.token": 1}
    assert not connected(teller, user, provider)["alive"]
    query = select(AuditRecord).where(AuditRecord.subject == f"{user}/{provider}")
    with stores.database.reading() as session:
        assert session.scalars(query).all() == []


def test_expired_token_without_refresh_token_is_401(new_api, sandbox, new_user, api):
    user = new_user()
    connect(api, user, sandbox.account("google", ADA, expires_in=0), refreshToken=None)

    answer = new_api(shows_tokens=True).get(f"/users/{user}/oauth/google/token")

    assert error(answer, 401) == "The account's access has ended; connect it again"
    assert connected(api, user, "google")["alive"]


def test_temporary_refresh_failure_is_502_and_keeps_connection(new_api, sandbox, new_user):
    user = new_user(sandbox.account("google", ADA, expires_in=0))
    sandbox.fault(operation="google.token", status=503)
    teller = new_api(shows_tokens=True)

    assert error(teller.get(f"/users/{user}/oauth/google/token"), 502) == "Google is not available just now"
    assert connected(teller, user, "google")["alive"]


def test_a_token_of_an_unknown_user_is_404(new_api, new_user):
    teller, user = new_api(shows_tokens=True), new_user()

    assert error(teller.get(f"/users/{user}/oauth/google/token"), 404) == "OAuth connection not found"
    assert error(teller.get("/users/nobody/oauth/google/token"), 404) == "User not found"


# --- the operator's fault


@BOTH
def test_refused_registration_is_502_and_keeps_connection(api, sandbox, new_user, provider):
    user = new_user(sandbox.account(provider, ADA, expires_in=0))
    landed = consent(link(api, user, provider))
    sandbox.fault(operation=f"{provider}.token", status=401, reason="invalid_client")
    message = f"{provider.title()} refuses the registration of this installation"

    page = arrive(api, landed)
    read = api.get(f"/users/{user}/calendar/busy", **DAY)

    assert page.status_code == 502
    assert message in page.text
    assert error(read, 502) == message
    assert connected(api, user, provider)["alive"]
    sandbox.clear_faults()
    assert periods(api.get(f"/users/{user}/calendar/busy", **DAY)) == []


# --- secrets


def test_a_host_that_is_not_this_machine_is_not_believed(new_app, stores, new_user):
    """Otherwise a client could have codes sent to any ``Host``."""
    app = new_app(public_url="")
    with stores.database.writing() as session:
        key = api_keys.create(session, prefix="alm_", name="host")
    api, user = Api(app.test_client(), key), new_user()
    options = {"headers": {"Host": "evil.example"}}
    refused = api.get(f"/users/{user}/oauth/google/link", **options)
    assert refused.status_code == 400
    assert "ALMANAC_PUBLIC_URL" in refused.json["error"]
    assert api.get(f"/users/{user}/oauth/google/link").status_code == 200


def test_a_caller_with_an_address_of_its_own_needs_none_of_ours(new_app, stores, new_user):
    address = "https://app.example.com/cb"
    app = new_app(public_url="", redirect_urls=(address,))
    with stores.database.writing() as session:
        key = api_keys.create(session, prefix="alm_", name="host")
    api, user = Api(app.test_client(), key), new_user()
    answer = api.get(
        f"/users/{user}/oauth/google/link", headers={"Host": "almanac:8000"}, redirectUrl=address
    )
    assert answer.status_code == 200, answer.text
    assert parse_qs(urlsplit(answer.json["data"]["link"]).query)["redirect_uri"] == [address]


def test_answers_that_may_show_tokens_are_not_cached(new_api, new_user, sandbox):
    user = new_user(sandbox.account("google", "ada@example.com"))
    api = new_api(shows_tokens=True)
    for path in ("", "/google", "/google/token"):
        answer = api.get(f"/users/{user}/oauth{path}", showToken="true")
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store"), path
