"""Plain HTTP calls to the sandbox's providers."""

from __future__ import annotations

import time
from typing import Any

import requests
from joserfc import jwt
from joserfc.jwk import RSAKey

from providers.sandbox.client import Sandbox, SandboxAccount, SandboxDomain

DAY = {"timeMin": "2026-12-03T00:00:00Z", "timeMax": "2026-12-04T00:00:00Z"}
MEETING = {"subject": "Design review", "start": "2026-12-03T09:00:00", "end": "2026-12-03T10:00:00"}
VIEW = {"startDateTime": "2026-12-03T00:00:00Z", "endDateTime": "2026-12-04T00:00:00Z"}
CALENDAR_SCOPE = "https://www.googleapis.com/auth/calendar"
JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class Caller:
    """Calls one provider with one token."""

    def __init__(self, base: str, token: str) -> None:
        self.base = base
        self.token = token
        # Seconds to wait for an answer.
        self.patience = 10.0

    def __call__(self, method: str, path: str, **more: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}"} | more.pop("headers", {})
        return requests.request(method, f"{self.base}/{path}", headers=headers, timeout=self.patience, **more)

    def get(self, path: str, **query: Any) -> Any:
        """The body of a GET that must succeed."""
        answer = self("GET", path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


def google(sandbox: Sandbox, account: SandboxAccount) -> Caller:
    return Caller(f"{sandbox.url}/google/calendar/v3", account.access_token)


def graph(sandbox: Sandbox, account: SandboxAccount) -> Caller:
    return Caller(f"{sandbox.url}/microsoft/v1.0", account.access_token)


def free_busy(call: Caller, *ids: str, **more: Any) -> Any:
    """The calendars of a freeBusy answer."""
    answer = call("POST", "freeBusy", json={**DAY, "items": [{"id": i} for i in ids], **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["calendars"]


def reason(answer: requests.Response) -> tuple[int, str]:
    """Status and word of a Google error."""
    return answer.status_code, answer.json()["error"]["errors"][0]["reason"]


def code(answer: requests.Response) -> tuple[int, str]:
    """Status and word of a Graph error."""
    return answer.status_code, answer.json()["error"]["code"]


def token_call(sandbox: Sandbox, provider: str, **form: str) -> requests.Response:
    """A call to a token endpoint."""
    path = "google/token" if provider == "google" else "microsoft/common/oauth2/v2.0/token"
    client = {"client_id": "almanac", "client_secret": "s3cret"}
    return requests.post(f"{sandbox.url}/{path}", data=client | form, timeout=10)


def assertion(domain: SandboxDomain, subject: str, key: str = "", **changed: Any) -> str:
    """An assertion to act as ``subject``, with ``changed`` claims; a claim of None is left out."""
    file = domain.service_account_key
    now = int(time.time())
    claims = {
        "iss": file["client_email"],
        "sub": subject,
        "scope": CALENDAR_SCOPE,
        "aud": file["token_uri"],
        "iat": now,
        "exp": now + 3600,
        **changed,
    }
    signed_by = RSAKey.import_key(key or file["private_key"])
    return jwt.encode(
        {"alg": "RS256"}, {name: value for name, value in claims.items() if value is not None}, signed_by
    )


def delegated_token(domain: SandboxDomain, subject: str, **changed: Any) -> requests.Response:
    """A call to Google's token endpoint with an assertion."""
    return exchanged(domain, assertion(domain, subject, **changed))


def exchanged(domain: SandboxDomain, text: str) -> requests.Response:
    form = {"grant_type": JWT_BEARER, "assertion": text}
    return requests.post(domain.service_account_key["token_uri"], data=form, timeout=10)


def acting_as(sandbox: Sandbox, domain: SandboxDomain, subject: str, **changed: Any) -> Caller:
    """Calls Google as a member, by the service account's grant."""
    answer = delegated_token(domain, subject, **changed)
    assert answer.status_code == 200, answer.text
    return Caller(f"{sandbox.url}/google/calendar/v3", answer.json()["access_token"])


def application_token(sandbox: Sandbox, domain: SandboxDomain, **form: str) -> requests.Response:
    """A call to Microsoft's token endpoint with client credentials; ``tenant`` replaces the domain's."""
    tenant = form.pop("tenant", domain.tenant)
    known = {
        "grant_type": "client_credentials",
        "client_id": domain.client_id,
        "client_secret": domain.client_secret,
        "scope": "https://graph.microsoft.com/.default",
    }
    url = f"{sandbox.url}/microsoft/{tenant}/oauth2/v2.0/token"
    return requests.post(url, data=known | form, timeout=10)


def application(sandbox: Sandbox, domain: SandboxDomain) -> Caller:
    """Calls Graph as the domain's application."""
    answer = application_token(sandbox, domain)
    assert answer.status_code == 200, answer.text
    return Caller(f"{sandbox.url}/microsoft/v1.0", answer.json()["access_token"])
