"""Plain HTTP calls to the sandbox's providers."""

from __future__ import annotations

from typing import Any

import requests

from providers.sandbox.client import Sandbox, SandboxAccount

DAY = {"timeMin": "2026-12-03T00:00:00Z", "timeMax": "2026-12-04T00:00:00Z"}
MEETING = {"subject": "Design review", "start": "2026-12-03T09:00:00", "end": "2026-12-03T10:00:00"}
VIEW = {"startDateTime": "2026-12-03T00:00:00Z", "endDateTime": "2026-12-04T00:00:00Z"}


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
