"""The state that the contract's rows need: a user with both accounts in an organization, and a caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import requests
from werkzeug.test import TestResponse

from providers.sandbox.client import Sandbox, SandboxAccount
from tests.app.at_provider import NINE, AtProvider
from tests.conftest import Api, connect

ADA = {"google": "ada@example.com", "microsoft": "ada@contoso.example"}
SERIES = {"subject": "Series", "start": "2026-12-03T14:00:00Z", "end": "2026-12-03T15:00:00Z"}
EVENT = {"subject": "Review", **NINE}


@dataclass
class World:
    """``names`` are the values for a row's braces; ``provider`` is the one the row runs with."""

    api: Api
    sandbox: Sandbox
    provider: str
    new_api: Callable[..., Api]
    new_user: Callable[..., str]
    new_organization: Callable[[], str]
    new_app: Callable[..., Any]
    accounts: dict[str, SandboxAccount] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def create(self) -> None:
        """Create the user, the organization, the accounts, and an event in each account."""
        for provider, email in ADA.items():
            self.accounts[provider] = self.sandbox.account(provider, email, events=[EVENT])
        slug = self.new_organization()
        user = self.new_user(*self.accounts.values(), slugs=(slug,))
        self.names = {
            "userId": user,
            "orgSlug": slug,
            "provider": self.provider,
            "calendarId": "primary",
            "metaId": "m-1",
            "connectionId": f"{0:032x}",
            "webhookId": f"wh_{0:024x}",
            "keyId": "key_999999999",
            "holdId": f"hold_{0:024x}",
            "deliveryId": f"msg_{0:032x}",
            "new": f"new-{user}",
            "own": ADA[self.provider],
        }

    @property
    def account(self) -> SandboxAccount:
        return self.accounts[self.provider]

    def event_id(self) -> str:
        """The id of the event at the provider."""
        (event,) = AtProvider(self.sandbox, self.account).events()
        return str(event["id"])

    def second_occurrence(self) -> str:
        """The id of the second occurrence of the series at the provider."""
        series = quote(self.event_id(), safe="")
        call = AtProvider(self.sandbox, self.account).call
        if self.provider == "google":
            found = call.get(f"calendars/primary/events/{series}/instances")["items"]
        else:
            window = {"startDateTime": "2026-12-01T00:00:00Z", "endDateTime": "2026-12-31T00:00:00Z"}
            found = call.get(f"me/events/{series}/instances", **window)["value"]
        return str(sorted(each["id"] for each in found)[1])

    def connect(self, **changed: Any) -> None:
        """Connect the account again, with changes."""
        connect(self.api, self.names["userId"], self.account, **changed)

    def inject_fault(self, **fault: Any) -> None:
        """Make the provider fail from now on."""
        self.sandbox.fault(provider=self.provider, **fault)

    def restrict_scopes(self) -> None:
        """Replace the grant of every account by one without calendar scopes."""
        for account in self.accounts.values():
            connect(self.api, self.names["userId"], account, scope=["openid"])

    def revoke(self) -> None:
        """Revoke the grants of every account."""
        for email in ADA.values():
            self.sandbox.revoke(email)

    def unified(self) -> None:
        """Create a unified event with the metaId in ``names``."""
        path = f"/users/{self.names['userId']}/calendar/events/meta"
        assert self.api.post(path, EVENT | {"metaId": self.names["metaId"]}).status_code == 201

    def consent(self, changed: dict[str, str] | None = None, **options: str) -> dict[str, str]:
        """The query of the callback after a user's consent; ``changed`` replaces parameters of the link."""
        path = f"/users/{self.names['userId']}/oauth/{self.provider}/authorize"
        link = self.api.post(path, options).json["data"]["link"]
        query = _query(link) | {"login_hint": ADA[self.provider]} | (changed or {})
        page = requests.get(link.partition("?")[0], params=query, allow_redirects=False, timeout=10)
        return _query(page.headers["Location"])

    def call(self, operation: str, query: Any, body: Any, headers: dict[str, str]) -> TestResponse:
        """Make a call; ``operation`` is a method and a path with names in braces, without ``/v1``."""
        method, path = operation.split(" ")
        names = {name: quote(value, safe="") for name, value in self.names.items()}
        sent: dict[str, Any] = {} if body is None else {"json": self.filled(body)}
        return self.api.call(
            method, path.format(**names), headers=headers, query_string=self.filled(query), **sent
        )

    def filled(self, value: Any) -> Any:
        """A query or body with the names replaced."""
        if isinstance(value, dict):
            return {name: self.filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        if isinstance(value, str) and value.startswith("{"):
            return self._named(value[1:-1])
        return value

    def _named(self, name: str) -> str:
        if name == "lonely" and name not in self.names:
            # A user without accounts and without an organization.
            self.names[name] = self.new_user()
        return self.names[name]


def _query(url: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(url).query).items()}
