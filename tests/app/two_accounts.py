"""A user with an account of each provider, for tests that concern both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from werkzeug.test import TestResponse

from providers.sandbox.accounts import Account
from providers.sandbox.client import Sandbox, SandboxAccount
from providers.sandbox.seeds import calendar_id
from tests.app.at_provider import NINE, AtProvider
from tests.conftest import Api

ADA = {"google": "ada@example.com", "microsoft": "ada@contoso.example"}
# The ids of the main calendars.
SHOWN = {
    "google": ADA["google"],
    "microsoft": calendar_id(Account("microsoft", ADA["microsoft"], "UTC"), True, 0),
}


@dataclass
class Both:
    """The user, and both sides of each account; calls concern unified events."""

    api: Api
    user: str
    accounts: dict[str, SandboxAccount]
    there: dict[str, AtProvider]

    @classmethod
    def connected(cls, api: Api, sandbox: Sandbox, new_user: Callable[..., str], **account: Any) -> Both:
        accounts = {provider: sandbox.account(provider, email, **account) for provider, email in ADA.items()}
        there = {provider: AtProvider(sandbox, made) for provider, made in accounts.items()}
        return cls(api, new_user(*accounts.values()), accounts, there)

    def path(self, meta_id: str | None = None) -> str:
        end = "" if meta_id is None else f"/{quote(meta_id, safe='')}"
        return f"/users/{self.user}/calendar/events/meta{end}"

    def create(self, *, query: Any = None, headers: Any = None, **body: Any) -> TestResponse:
        return self.api.post(self.path(), NINE | body, headers=headers, query_string=query or {})

    def get(self, meta_id: str, **query: str) -> TestResponse:
        return self.api.get(self.path(meta_id), **query)

    def update(self, meta_id: str, *, query: Any = None, headers: Any = None, **body: Any) -> TestResponse:
        return self.api.put(self.path(meta_id), body, headers=headers, query_string=query or {})

    def delete(self, meta_id: str, **query: str) -> TestResponse:
        return self.api.delete(self.path(meta_id), query_string=query)

    def subjects(self) -> dict[str, list[str]]:
        """The subjects in each main calendar, read from the providers."""
        return {provider: there.subjects() for provider, there in self.there.items()}
