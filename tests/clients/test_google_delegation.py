"""google-auth's service account credentials against the sandbox's domain-wide delegation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httplib2
import pytest
from google.api_core.client_options import ClientOptions
from google.auth.exceptions import RefreshError
from google.auth.transport.requests import Request
from google.oauth2.service_account import Credentials
from google_auth_httplib2 import AuthorizedHttp
from googleapiclient.discovery import build

from providers.sandbox.client import Sandbox, SandboxDomain
from tests.clients.discovery import check

pytestmark = pytest.mark.clients

DOMAIN = "acme.example"
ADA, BOB, EVE = (f"{name}@{DOMAIN}" for name in ("ada", "bob", "eve"))
MEETING = {"subject": "Design review", "start": "2026-12-03T09:00:00", "end": "2026-12-03T10:00:00"}
WINDOW = {"timeMin": "2026-12-03T00:00:00Z", "timeMax": "2026-12-04T00:00:00Z"}
SCOPES = ["https://www.googleapis.com/auth/calendar"]


@pytest.fixture
def acme(sandbox: Sandbox) -> SandboxDomain:
    members = [ADA, {"email": BOB, "events": [MEETING]}, {"email": EVE, "sharing": "none"}]
    return sandbox.domain("google", DOMAIN, members)


def credentials(domain: SandboxDomain, subject: str) -> Credentials:
    return Credentials.from_service_account_info(domain.service_account_key, scopes=SCOPES, subject=subject)


@contextmanager
def acting_as(sandbox: Sandbox, domain: SandboxDomain, subject: str) -> Iterator[Any]:
    """The official client with the credentials of a service account that acts as a member."""
    client = build(
        "calendar",
        "v3",
        http=AuthorizedHttp(credentials(domain, subject), http=httplib2.Http(timeout=10)),
        static_discovery=True,
        client_options=ClientOptions(api_endpoint=f"{sandbox.url}/google/calendar/v3/"),
    )
    try:
        yield client
    finally:
        client.close()


def refused(domain: SandboxDomain, subject: str) -> str:
    """The error word of a refused token."""
    with pytest.raises(RefreshError) as caught:
        credentials(domain, subject).refresh(Request())
    return str(caught.value.args[1]["error"])


def test_free_busy_of_colleagues_is_read_as_the_subject(sandbox: Sandbox, acme: SandboxDomain) -> None:
    with acting_as(sandbox, acme, acme.subject) as client:
        body = {**WINDOW, "items": [{"id": email} for email in (ADA, BOB, EVE)]}
        answer = client.freebusy().query(body=body).execute()
    check(answer, "FreeBusyResponse")
    assert answer["calendars"] == {
        ADA: {"busy": []},
        BOB: {"busy": [{"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}]},
        EVE: {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []},
    }


def test_events_are_read_as_the_member(sandbox: Sandbox, acme: SandboxDomain) -> None:
    with acting_as(sandbox, acme, BOB) as client:
        (event,) = client.events().list(calendarId="primary").execute()["items"]
    assert event["summary"] == "Design review"


def test_a_token_is_valid_for_an_hour(acme: SandboxDomain) -> None:
    made = credentials(acme, ADA)
    made.refresh(Request())
    assert made.valid
    assert made.token.startswith("ya29.")


def test_refusals_are_understood(sandbox: Sandbox, acme: SandboxDomain) -> None:
    assert refused(acme, f"nosuch@{DOMAIN}") == "invalid_grant"
    sandbox.change_domain(DOMAIN, members=[{"email": ADA, "suspended": True}])
    assert refused(acme, ADA) == "invalid_grant"
    sandbox.withdraw(DOMAIN)
    assert refused(acme, BOB) == "unauthorized_client"
