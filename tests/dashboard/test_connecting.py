"""Connecting an account by a link from the dashboard, and disconnecting it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from app.dashboard import connecting
from store.sql.models import now
from store.sql.queries import users
from tests.app.consenting import BOTH, arrive, connected, consent, query_of
from tests.conftest import Api
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import Browser, words


def links(browser, user, provider, scope="write"):
    """The link for this browser, and the one to send."""
    page = browser.post(f"/users/{user}/connect/{provider}", {"scope": scope})
    assert page.status == 200, page.text
    return page.html.select_one(".shown-once a.button")["href"], page.html.find(id="to-send").get_text()


def come_back(browser, api, url):
    """Follow the provider's redirect in this browser: the callback, then a page of the dashboard."""
    answer = arrive(Api(browser.client, api.key), url)
    assert answer.status_code == 302
    page = browser.get(answer.headers["Location"])
    return browser.get(page.location)


@BOTH
def test_a_link_opened_here_leads_back_to_the_user(
    worker, signed_in, api, stores, sandbox, new_user, provider
):
    sandbox.account(provider, "ada@example.com")
    user = new_user()
    here, _ = links(signed_in, user, provider)

    page = come_back(signed_in, api, consent(here))

    assert page.heading == user
    assert page.notices == [
        f"ada@example.com is connected with {provider.title()}. Calendars and events: reading and writing."
    ]
    assert connected(api, user, provider)["alive"]
    assert [each[:2] for each in records(stores, f"{user}/{provider}")] == [
        ("administrator ada", "connect"),
        ("administrator ada", "makeLink"),
    ]


def test_a_link_that_was_sent_ends_on_the_page_of_the_service(worker, signed_in, api, sandbox, new_user):
    sandbox.account("google", "ada@example.com")
    user = new_user()
    _, elsewhere = links(signed_in, user, "google", scope="free-busy")

    answer = arrive(api, consent(elsewhere))

    assert answer.status_code == 200
    assert "Free and busy times only" in answer.text
    assert "/dashboard" not in answer.text
    assert connected(api, user, "google")["email"] == "ada@example.com"


def test_the_two_links_are_used_apart(worker, signed_in, api, sandbox, new_user):
    sandbox.account("google", "ada@example.com")
    here, elsewhere = links(signed_in, new_user(), "google")

    assert query_of(here)["state"] != query_of(elsewhere)["state"]
    assert arrive(api, consent(elsewhere)).status_code == 200
    assert arrive(Api(signed_in.client, api.key), consent(here)).status_code == 302


def test_a_link_for_this_browser_connects_nothing_in_another(worker, signed_in, api, sandbox, new_user):
    sandbox.account("google", "ada@example.com")
    user = new_user()
    first, _ = links(signed_in, user, "google")
    second, _ = links(signed_in, user, "google")
    cookies = [each for each in signed_in.page.headers.getlist("Set-Cookie") if "almanac-consent-" in each]
    assert len(cookies) == 1
    for part in ("HttpOnly", "SameSite=Lax", "Path=/v1/oauth", "Max-Age=600"):
        assert part in cookies[0]

    # The attacker's browser has a different cookie, for another link.
    other = Browser(signed_in.client.application.test_client())
    other.client.set_cookie(cookies[0].partition("=")[0], "guessed", path="/v1/oauth")
    answers = [arrive(Api(each.client, api.key), consent(first)) for each in (other, signed_in)]

    outcome = query_of(answers[0].headers["Location"])
    assert (outcome["connected"], outcome["refusal"]) == ("false", "otherBrowser")
    # Presenting a state uses it up.
    assert answers[1].status_code == 400
    assert api.get(f"/users/{user}/oauth").json["data"] == []
    notices = signed_in.get(signed_in.get(answers[0].headers["Location"]).location).notices
    assert notices[0].startswith("Google is not connected: This link was opened in another browser")
    # The link that was made later still works.
    assert (
        query_of(arrive(Api(signed_in.client, api.key), consent(second)).headers["Location"])["connected"]
        == "true"
    )


def test_browser_with_another_host_name_can_connect(
    worker, browser_of, administrator, new_app, api, sandbox, new_user
):
    sandbox.account("google", "ada@example.com")
    at = new_app(public_url="https://calendar.example.com")
    browser, user = browser_of(administrator, at=at), new_user()

    here, _ = links(browser, user, "google")

    assert not [each for each in browser.page.headers.getlist("Set-Cookie") if "almanac-consent-" in each]
    # The cookie would not be sent to the public address.
    assert arrive(Api(at.test_client(), api.key), consent(here)).status_code == 302
    assert connected(api, user, "google")["alive"]


@pytest.mark.parametrize(
    ("scope", "expected_scope"),
    [("write", "Calendars.ReadWrite"), ("read", "Calendars.Read"), ("free-busy", "Calendars.ReadBasic")],
)
def test_the_link_requests_the_chosen_access(signed_in, new_user, scope, expected_scope):
    for link in links(signed_in, new_user(), "microsoft", scope):
        assert expected_scope in query_of(link)["scope"].split()


@BOTH
def test_a_refusal_is_shown_by_a_known_sentence(signed_in, api, new_user, provider):
    user = new_user()
    here, _ = links(signed_in, user, provider)
    state, back = query_of(here)["state"], urlsplit(query_of(here)["redirect_uri"]).path

    page = come_back(signed_in, api, f"{back}?state={state}&error=access_denied&error_description=<b>boo</b>")

    assert page.heading == user
    assert page.notices == [
        f"{provider.title()} is not connected: Access was not granted. "
        "Accounts connected before are unchanged."
    ]


def test_the_query_of_the_redirect_is_not_trusted(signed_in, stores, new_user):
    user = new_user()
    with stores.database.reading() as session:
        number = users.ids(session, [user], organization_id=None)[user]

    for query in (
        {"connected": "true"},
        {"connected": "false", "error": "<b>Send your password to evil@example.com</b>"},
        {"connected": "false", "refusal": "<b>Send your password to evil@example.com</b>"},
        {},
    ):
        page = signed_in.get(signed_in.get(f"/connected/{number}/google", **query).location)
        assert page.notices == [
            "Google is not connected: it did not work this time; make a new link and try again. "
            "Accounts connected before are unchanged."
        ]


def test_an_older_connection_is_not_reported_as_new(signed_in, stores, sandbox, new_user, monkeypatch):
    user = new_user(sandbox.account("google", "ada@example.com"))
    with stores.database.reading() as session:
        number = users.ids(session, [user], organization_id=None)[user]

    def notice_after(later):
        monkeypatch.setattr(connecting, "now", lambda: now() + later)
        return signed_in.get(signed_in.get(f"/connected/{number}/google?connected=true").location).notices[0]

    assert notice_after(timedelta()).startswith("ada@example.com is connected with Google.")
    assert notice_after(connecting.JUST_NOW).startswith("Google is not connected: it did not work this time")


def test_a_user_renamed_or_deleted_meanwhile_is_found_or_reported(
    worker, signed_in, api, sandbox, new_user, unique
):
    sandbox.account("google", "ada@example.com")
    user, new_id = new_user(), unique("renamed")
    here, _ = links(signed_in, user, "google")
    late, _ = links(signed_in, user, "google")
    signed_in.do(f"/users/{user}/rename", {"id": new_id})

    assert come_back(signed_in, api, consent(here)).heading == new_id
    signed_in.do(f"/users/{new_id}/delete", {"confirm": new_id})
    assert come_back(signed_in, api, consent(late)).notices == ["That user was deleted meanwhile."]


def test_callers_of_the_api_cannot_send_browsers_to_the_dashboard(api, new_user):
    user = new_user()
    for address in ("/dashboard/connected/1/google", "http://localhost/dashboard/connected/1/google"):
        answer = api.post(f"/users/{user}/oauth/google/authorize", {"returnUrl": address})
        assert answer.status_code == 400
        assert "returnUrl is not an address" in answer.json["error"]
    answer = api.post(f"/users/{user}/oauth/google/authorize", {"back": "/dashboard"})
    assert answer.status_code == 200


def test_unconfigured_provider_links_to_its_settings(browser_of, administrator, new_app, new_user, settings):
    bare = new_app(providers=replace(settings.providers, google_client_id=""))
    browser, user = browser_of(administrator, at=bare), new_user()

    page = browser.get(f"/users/{user}")
    refused = browser.do(f"/users/{user}/connect/google", {"scope": "write"})

    google = page.html.select_one(".connection")
    assert "Google is not set up yet" in words(google)
    assert google.find("a", href="/dashboard/settings")
    assert google.find("select") is None
    assert refused.notices == ["Google is not set up yet: enter its client id and secret first."]


def test_connecting_without_public_url_is_refused_with_advice(browser_of, administrator, new_app, new_user):
    at, user = new_app(public_url=""), new_user()
    browser = browser_of(administrator, at=at)
    token = browser.get("/account").token
    # A browser that uses another host name for the service.
    elsewhere = {"HTTP_HOST": "almanac.example.com", "HTTP_COOKIE": f"almanac={browser.cookie}"}

    client = at.test_client(use_cookies=False)
    answer = client.post(
        f"/dashboard/users/{user}/connect/google",
        data={"scope": "write", "csrf_token": token},
        environ_overrides=elsewhere,
    )

    assert answer.status_code == 303
    cookie = answer.headers["Set-Cookie"].partition(";")[0]
    response = client.get(answer.headers["Location"], environ_overrides=elsewhere | {"HTTP_COOKIE": cookie})
    assert "set ALMANAC_PUBLIC_URL" in response.get_data(as_text=True)


def test_unknown_scope_or_provider_is_refused(signed_in, new_user):
    user = new_user()

    page = signed_in.do(f"/users/{user}/connect/google", {"scope": "everything"})

    assert page.notices == ["Choose the access to request."]
    assert signed_in.post(f"/users/{user}/connect/yahoo", {"scope": "write"}).status in (404, 405)


def test_an_account_is_disconnected_as_the_api_does(
    worker, signed_in, api, stores, sandbox, new_user, unique
):
    user = new_user(sandbox.account("google", f"{unique('ada')}@example.com"), obtained=True)
    form = signed_in.get(f"/users/{user}").html.find(
        "form", action=re.compile(f"^/dashboard/users/{user}/disconnect/")
    )
    assert "Disconnect Google from" in form["data-confirm"]
    sandbox.forget_requests()

    page = signed_in.do(form["action"])

    assert page.notices == ["Google is disconnected: its tokens and cached data are deleted."]
    assert api.get(f"/users/{user}/oauth").json["data"] == []
    assert sandbox.requests().by_operation["google.revoke"] == 1
    assert records(stores, user)[0] == ("administrator ada", "deleteConnection", f"{user}/google")
    assert signed_in.do(form["action"]).notices == ["The account was already disconnected."]


def test_links_are_never_listed_or_cached(signed_in, new_user, caplog):
    user = new_user()
    here, elsewhere = links(signed_in, user, "google")

    assert signed_in.page.headers["Cache-Control"] == "no-store"
    assert signed_in.page.headers["Referrer-Policy"] == "same-origin"
    for link in (here, elsewhere):
        assert query_of(link)["state"] not in signed_in.get(f"/users/{user}").text
        assert query_of(link)["state"] not in caplog.text


@BOTH
def test_reopened_links_page_redirects_to_the_user(signed_in, new_user, provider):
    user = new_user()

    page = signed_in.do(f"/users/{user}/connect/{provider}", {"scope": "write"})
    again = signed_in.get(f"/users/{user}/connect/{provider}")

    assert page.status == 200
    assert (again.status, again.location) == (303, f"/dashboard/users/{user}")
    sentence = f"Links to connect {provider.title()} are shown once. Make new ones here."
    assert signed_in.get(again.location).notices == [sentence]
