"""Records the sandbox's answers to each operation of an adapter, and replays them with one mutated."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import orjson
import pytest
import requests

from providers.base import Account, CalendarProvider, Token
from providers.google.client import Google
from providers.http import send as calls
from providers.http import transport
from providers.microsoft.client import Microsoft
from providers.sandbox.client import Sandbox
from tests.fuzz.mutations import mutated
from tests.providers.addresses import google_at, microsoft_at

START, END = 1_796_083_200_000, 1_796_601_600_000  # 2026-12-01 to 2026-12-07
ZONE = "America/New_York"
TEAM = {"google": "team@group.calendar.google.com", "microsoft": "AAMk-team"}
EMAIL = {"google": "ada@example.com", "microsoft": "ada@contoso.example"}
NAMES = ("google", "microsoft")

# The parts that differ between equal conversations: random ids, and current times.
CHANCE = re.compile(rb"[0-9a-f]{16,}|\d{4}-\d\d-\d\dT[\d:.]+Z?")


def events(provider: str) -> list[dict[str, Any]]:
    """Meetings of every kind, in two calendars."""
    day = "2026-12-03"

    def meeting(start: str, end: str, **more: Any) -> dict[str, Any]:
        return {"start": f"{day}T{start}:00Z", "end": f"{day}T{end}:00Z", **more}

    return [
        meeting("09:00", "10:00", subject="One"),
        meeting("13:30", "14:15", subject="Two", showAs="tentative"),
        meeting("15:00", "16:00", subject="Free", showAs="free"),
        {"start": "2026-12-04", "end": "2026-12-05", "allDay": True, "subject": "Away", "showAs": "oof"},
        meeting("20:00", "22:00", subject="Team", calendarId=TEAM[provider]),
        {
            "start": "2026-12-01T11:00:00Z",
            "end": "2026-12-01T11:30:00Z",
            "subject": "Daily",
            "recurrence": "RRULE:FREQ=DAILY;COUNT=3",
            "calendarId": TEAM[provider],
        },
    ]


def seed(sandbox: Sandbox, provider: str, email: str | None = None) -> Any:
    """An account with them."""
    return sandbox.account(
        provider,
        email or EMAIL[provider],
        time_zone=ZONE,
        calendars=[{"primary": True}, {"id": TEAM[provider]}],
        events=events(provider),
    )


@dataclass(frozen=True)
class Asked:
    """A request; its random parts are left out of ``key``."""

    method: str
    url: str
    body: bytes | None

    @property
    def key(self) -> tuple[str, str, bytes]:
        return self.method, self.url, CHANCE.sub(b"", self.body or b"")


@dataclass
class Conversation:
    """Requests and answers in their order."""

    operation: str
    answers: dict[tuple[str, str, bytes], tuple[Asked, int, bytes]] = field(default_factory=dict)

    def with_one_mutated(self, random: Random, changes: int = 1) -> Conversation:
        """The same with one answer changed, each time it is requested."""
        key = random.choice(list(self.answers))
        asked, status, content = self.answers[key]
        if random.random() < 0.05:
            status = random.choice((200, 204, 301, 304, 400, 401, 403, 404, 409, 410, 412, 429, 500, 503))
        else:
            content = mutated(content, random, changes)
        return replace(self, answers={**self.answers, key: (asked, status, content)})

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Replays it to every request; an unrecorded request gets 500."""

        def exchange(
            method: str, url: str, headers: dict[str, str], body: bytes | None, **_: object
        ) -> tuple[requests.Response, bytes]:
            found = self.answers.get(Asked(method, url, body).key)
            response = requests.Response()
            response.status_code, content = (500, b"") if found is None else found[1:]
            return response, content

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(transport, "exchange", exchange)
            patch.setattr(calls, "RETRIES", 0)
            yield


class Tokens:
    """One token, also after a refresh."""

    def __init__(self, access: str) -> None:
        self.access = Token(access)

    def access_token(self, *, deadline: float) -> Token:
        return self.access

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        return self.access


Run = Callable[[CalendarProvider, Account, str], Any]


def soon() -> float:
    return time.monotonic() + 5


@dataclass
class Recorded:
    """An adapter, its account and the conversation of each operation."""

    provider: str
    adapter: CalendarProvider
    account: Account
    conversations: dict[str, Conversation]


def record(sandbox: Sandbox, provider: str, operations: dict[str, Run]) -> Recorded:
    """Run each operation once, and keep its conversation."""
    account = seed(sandbox, provider)
    url = f"{sandbox.url}/{provider}"
    adapter: CalendarProvider = (
        Google(google_at(url)) if provider == "google" else Microsoft(microsoft_at(url))
    )
    ours = Account(account.email, frozenset(account.scope.split()), Tokens(account.access_token))
    kept = Recorded(provider, adapter, ours, {})
    really = transport.exchange
    for name, run in operations.items():
        conversation = kept.conversations[name] = Conversation(name)

        def exchange(
            method: str,
            url: str,
            headers: dict[str, str],
            body: bytes | None,
            *,
            into: Any = conversation,
            **how: Any,
        ) -> tuple[requests.Response, bytes]:
            response, content = really(method, url, headers, body, **how)
            asked = Asked(method, url, body)
            into.answers[asked.key] = (asked, response.status_code, content)
            return response, content

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(transport, "exchange", exchange)
            run(adapter, ours, provider)
    return kept


def asked_of(asked: Asked) -> dict[str, Any]:
    """The document of a request."""
    found: dict[str, Any] = orjson.loads(asked.body or b"{}")
    return found
