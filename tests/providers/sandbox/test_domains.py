"""The controls of domains: ``/sandbox/domains``."""

from __future__ import annotations

import time
from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import (
    MEETING,
    acting_as,
    application,
    delegated_token,
    free_busy,
    google,
    reason,
)

DOMAIN = "acme.example"
ADA, BOB = (f"{name}@{DOMAIN}" for name in ("ada", "bob"))
STRANGER = "ada@elsewhere.example"
FORTNIGHT = {"timeMin": "2026-12-07T00:00:00Z", "timeMax": "2026-12-21T00:00:00Z"}
BULK = {
    "count": 1000,
    "emailPattern": f"p{{n}}@{DOMAIN}",
    "eventsPerAccount": 20,
    "start": "2026-12-07",
    "days": 14,
}


def post(sandbox: Sandbox, **body: Any) -> requests.Response:
    return requests.post(f"{sandbox.url}/sandbox/domains", json=body, timeout=10)


def test_a_google_domain_answers_with_a_key_file(sandbox: Sandbox) -> None:
    answer = post(sandbox, provider="google", domain=DOMAIN, members=[{"email": ADA}, {"email": BOB}])
    assert answer.status_code == 201
    found = answer.json()
    assert found.keys() == {"provider", "domain", "subject", "serviceAccountKey", "members"}
    assert (found["subject"], found["members"]) == (ADA, [{"email": ADA}, {"email": BOB}])
    key = found["serviceAccountKey"]
    assert key["type"] == "service_account"
    assert key["client_email"].endswith(".iam.gserviceaccount.com")
    assert key["private_key"].startswith("-----BEGIN PRIVATE KEY-----")
    assert key["token_uri"] == f"{sandbox.url}/google/token"


def test_a_microsoft_domain_answers_with_an_application(sandbox: Sandbox) -> None:
    found = post(sandbox, provider="microsoft", domain=DOMAIN, members=[{"email": ADA}]).json()
    assert found.keys() == {"provider", "domain", "tenant", "clientId", "clientSecret", "members"}
    assert found["members"] == [{"email": ADA}]


def test_the_application_and_the_subject_can_be_chosen(sandbox: Sandbox) -> None:
    own = sandbox.domain("microsoft", DOMAIN, clientId="sandbox", clientSecret="s3cret")
    assert (own.client_id, own.client_secret) == ("sandbox", "s3cret")
    assert application(sandbox, own)
    reader = f"reader@{DOMAIN}"
    domain = sandbox.domain("google", DOMAIN, [ADA], subject=reader)
    assert (domain.subject, domain.members) == (reader, [ADA, reader])


def test_the_subject_is_never_suspended_and_an_empty_domain_has_one(sandbox: Sandbox) -> None:
    domain = sandbox.domain("google", DOMAIN, [{"email": ADA, "suspended": True}, BOB])
    assert domain.subject == BOB
    empty = sandbox.domain("google", "empty.example")
    assert empty.subject == "admin@empty.example"
    assert delegated_token(empty, empty.subject).status_code == 200


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_a_thousand_members_with_meetings_take_about_a_second(sandbox: Sandbox, provider: str) -> None:
    began = time.monotonic()
    made = sandbox.domain(provider, DOMAIN, bulk=BULK)
    listed = sandbox.domain(provider, "listed.example", [f"p{n}@listed.example" for n in range(1000)])
    # A second each on a free processor.
    assert time.monotonic() - began < 10
    assert len(made.members) == len(listed.members) == 1000


def test_bulk_members_have_the_meetings_of_bulk_accounts(sandbox: Sandbox) -> None:
    shape = {"email_pattern": f"p{{n}}@{DOMAIN}", "events_per_account": 20, "start": "2026-12-07", "days": 14}
    first = sandbox.accounts_in_bulk("google", 3, **shape)
    expected = [free_busy(google(sandbox, a), "primary", **FORTNIGHT)["primary"] for a in first]
    domain = sandbox.domain("google", DOMAIN, bulk=BULK | {"count": 3})
    found = free_busy(acting_as(sandbox, domain, domain.subject), *domain.members, **FORTNIGHT)
    assert list(found.values()) == expected


def test_accounts_of_the_domain_are_members_whenever_they_were_made(sandbox: Sandbox) -> None:
    before = sandbox.account("google", ADA, events=[MEETING])
    domain = sandbox.domain("google", DOMAIN)
    assert (domain.members, domain.subject) == ([ADA], ADA)
    sandbox.account("google", BOB)
    assert delegated_token(domain, BOB).status_code == 200
    assert free_busy(google(sandbox, before), BOB) == {BOB: {"busy": []}}


def test_a_domain_again_replaces_the_application(sandbox: Sandbox) -> None:
    first = sandbox.domain("google", DOMAIN, [ADA])
    call = acting_as(sandbox, first, ADA)
    second = sandbox.domain("google", DOMAIN)
    assert delegated_token(first, ADA).status_code == 400
    assert reason(call("GET", "users/me/calendarList")) == (401, "authError")
    assert delegated_token(second, ADA).status_code == 200


def test_replacing_a_members_account_ends_its_delegated_tokens(sandbox: Sandbox) -> None:
    call = acting_as(sandbox, sandbox.domain("google", DOMAIN, [ADA]), ADA)
    sandbox.account("google", ADA)
    assert reason(call("GET", "users/me/calendarList")) == (401, "authError")


def test_a_withdrawn_grant_can_be_given_again(sandbox: Sandbox) -> None:
    domain = sandbox.domain("google", DOMAIN, [ADA])
    sandbox.withdraw(DOMAIN)
    assert delegated_token(domain, ADA).status_code == 401
    sandbox.change_domain(DOMAIN, withdrawn=False)
    assert delegated_token(domain, ADA).status_code == 200


def test_a_change_may_concern_one_provider(sandbox: Sandbox) -> None:
    both = [sandbox.domain(provider, DOMAIN, [ADA]) for provider in ("google", "microsoft")]
    url = f"{sandbox.url}/sandbox/domains/{DOMAIN}"
    assert requests.delete(url, params={"provider": "microsoft"}, timeout=10).status_code == 204
    assert delegated_token(both[0], ADA).status_code == 200
    assert requests.delete(url, timeout=10).status_code == 204
    assert delegated_token(both[0], ADA).status_code == 401


def test_permissions_change_with_the_next_token(sandbox: Sandbox) -> None:
    domain = sandbox.domain("microsoft", DOMAIN, [ADA])
    sandbox.change_domain(DOMAIN, scope=["MailboxSettings.Read"])
    assert application(sandbox, domain)("GET", f"users/{ADA}/calendars").status_code == 403


def test_forgetting_everything_forgets_domains(sandbox: Sandbox) -> None:
    domain = sandbox.domain("google", DOMAIN, [ADA])
    sandbox.reset()
    assert delegated_token(domain, ADA).json()["error_description"] == "Invalid grant: account not found"


def test_an_unknown_domain_is_a_404(sandbox: Sandbox) -> None:
    with pytest.raises(requests.HTTPError, match="404"):
        sandbox.withdraw("nosuch.example")
    with pytest.raises(requests.HTTPError, match="404"):
        sandbox.change_domain("nosuch.example", sharing="none")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"provider": "yahoo"}, "provider is google or microsoft"),
        ({"domain": None}, "domain is missing"),
        ({"sharing": "some"}, "sharing is domain or none"),
        ({"members": [{}]}, "email is missing"),
        ({"members": [{"email": ADA, "sharing": "some"}]}, "sharing is domain or none"),
        ({"members": [{"email": ADA, "suspended": "yes"}]}, "members[0].suspended is not true or false"),
        (
            {"members": [{"email": STRANGER}]},
            f"members: {STRANGER} is not in {DOMAIN}",
        ),
        ({"subject": STRANGER}, f"subject: {STRANGER} is not in {DOMAIN}"),
        ({"bulk": BULK | {"emailPattern": "p@acme.example"}}, "emailPattern needs {n}"),
        ({"scope": 5}, "scope is a list of names, or a text with spaces between them"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused(
    sandbox: Sandbox, body: dict[str, Any], problem: str
) -> None:
    answer = post(sandbox, **({"provider": "google", "domain": DOMAIN} | body))
    assert (answer.status_code, answer.json()) == (400, {"error": problem})


def test_a_change_of_an_unknown_member_is_refused(sandbox: Sandbox) -> None:
    sandbox.domain("google", DOMAIN, [ADA])
    with pytest.raises(requests.HTTPError, match=f"members: no account {BOB}"):
        sandbox.change_domain(DOMAIN, members=[{"email": BOB, "suspended": True}])
