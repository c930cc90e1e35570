"""Members of an organization grant in the sandbox, read as the adapters read them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from providers.base import (
    PRIMARY,
    Account,
    CalendarProvider,
    Member,
    MemberOutcome,
    Outcome,
    ReadAlone,
    Token,
)
from providers.errors import ProviderError
from providers.google import organization_grants as google_grants
from providers.google.service_accounts import ServiceAccountKey
from providers.microsoft import organization_grants as microsoft_grants
from providers.oauth.client import Client
from providers.sandbox.client import Sandbox, SandboxAccount, SandboxDomain
from providers.timestamps import instant
from tests.providers.addresses import google_at, microsoft_at

START = instant("2026-12-03T00:00:00Z")
END = instant("2026-12-04T00:00:00Z")
SCOPES = frozenset({"https://www.googleapis.com/auth/calendar.readonly"})
PERMISSIONS = frozenset({"Calendars.ReadBasic.All", "MailboxSettings.Read"})


@dataclass
class Reports:
    """A ``Traffic`` that keeps what is reported."""

    answers: int = 0
    failures: list[ProviderError] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def answered(self) -> None:
        self.answers += 1

    def failed(self, error: ProviderError, pause: float, *, given_up: bool) -> float | None:
        self.failures.append(error)
        self.pauses.append(pause)
        return pause


class GrantTokens:
    """Tokens of a grant, requested again when rejected."""

    def __init__(self, url: str, domain: SandboxDomain, subject: str) -> None:
        self.url, self.domain, self.subject = url, domain, subject
        self.requests = 0
        self.token: Token | None = None

    def access_token(self, *, deadline: float) -> Token:
        self.token = self.token or self.fetch(deadline)
        return self.token

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        self.token = self.fetch(deadline)
        return self.token

    def fetch(self, deadline: float) -> Token:
        self.requests += 1
        if self.domain.provider == "google":
            key = ServiceAccountKey.parse(self.domain.service_account_key)
            at = google_at(f"{self.url}/google")
            return google_grants.token(at, key, self.subject, SCOPES, deadline=deadline).access_token
        client = Client(self.domain.client_id, Token(self.domain.client_secret))
        at_microsoft = microsoft_at(f"{self.url}/microsoft")
        return microsoft_grants.token(
            at_microsoft, self.domain.tenant, client, deadline=deadline
        ).access_token


def account_of(
    url: str, domain: SandboxDomain, subject: str | None = None, delegated: bool = False, **more: Any
) -> Account:
    """The account that makes the calls of a grant; Google's is a subject."""
    tokens = GrantTokens(url, domain, subject or domain.subject)
    scopes = more.pop("scopes", SCOPES if domain.provider == "google" else PERMISSIONS)
    return Account(subject, scopes, tokens, delegated=delegated, **more)


def show_to_reader(sandbox: Sandbox, domain: SandboxDomain, email: str, calendar_id: str) -> None:
    """Share a calendar of a member with the account that reads for the whole domain."""
    owner, reader = (
        SandboxAccount(domain.provider, each, "", "", datetime.now(UTC), "")
        for each in (email, domain.subject)
    )
    sandbox.share(owner, reader, calendar_id, access_role="freeBusyReader")


def read(
    provider: CalendarProvider,
    account: Account,
    addresses: Sequence[str | Member],
    start: int = START,
    end: int = END,
    left: float = 5.0,
) -> dict[str, Outcome | ReadAlone]:
    """The outcome of every address: that of its main calendar, or that the member is read alone."""
    members = [each if isinstance(each, Member) else Member(each) for each in addresses]
    outcomes = read_all(provider, account, members, start, end, left)
    return {
        member.address: each if isinstance(each, ReadAlone) else each[PRIMARY]
        for member, each in zip(members, outcomes, strict=True)
    }


def read_all(
    provider: CalendarProvider,
    account: Account,
    members: Sequence[Member],
    start: int = START,
    end: int = END,
    left: float = 5.0,
) -> list[MemberOutcome]:
    """The outcome of every calendar of each member."""
    return provider.busy_of_members(account, members, start, end, deadline=time.monotonic() + left)
