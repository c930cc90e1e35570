"""Rooms that several people, domains and organizations book."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from providers.sandbox.client import Sandbox, SandboxAccount, SandboxDomain
from tests.providers.sandbox.callers import (
    VIEW,
    Caller,
    acting_as,
    application,
    free_busy,
    google,
    graph,
)
from tests.providers.sandbox.test_shares import GOOGLE_EVENT, GRAPH_EVENT, NINE

PROVIDERS = ("google", "microsoft")
ROOM = {"google": "room-1@resource.calendar.google.com", "microsoft": "room-1@rooms.example"}


class Through:
    """A room's calendar, through an account or through a member of a domain."""

    def __init__(self, provider: str, call: Caller, mailbox: str, calendar: str) -> None:
        self.provider, self.call, self.mailbox = provider, call, mailbox
        self.calendar = quote(calendar, safe="")

    @classmethod
    def account(cls, sandbox: Sandbox, account: SandboxAccount, calendar: str) -> Through:
        by_provider = {"google": google, "microsoft": graph}
        return cls(account.provider, by_provider[account.provider](sandbox, account), "me", calendar)

    @classmethod
    def member(cls, sandbox: Sandbox, domain: SandboxDomain, email: str, calendar: str) -> Through:
        if domain.provider == "google":
            return cls("google", acting_as(sandbox, domain, email), "me", calendar)
        return cls("microsoft", application(sandbox, domain), f"users/{email}", calendar)

    def book(self) -> None:
        """An event at nine."""
        if self.provider == "google":
            answer = self.call("POST", f"calendars/{self.calendar}/events", json=GOOGLE_EVENT)
        else:
            path = f"{self.mailbox}/calendars/{self.calendar}/events"
            answer = self.call("POST", path, json=GRAPH_EVENT)
        assert answer.status_code in (200, 201), answer.text

    def events(self) -> int:
        """How many events there are on the day."""
        if self.provider == "google":
            query = {"timeMin": VIEW["startDateTime"], "timeMax": VIEW["endDateTime"]}
            return len(self.call.get(f"calendars/{self.calendar}/events", **query)["items"])
        path = f"{self.mailbox}/calendars/{self.calendar}/calendarView"
        return len(self.call.get(path, **VIEW)["value"])


def two_accounts(sandbox: Sandbox, provider: str) -> list[Through]:
    room = sandbox.account(provider, ROOM[provider])
    people = [sandbox.account(provider, f"{name}@example.com") for name in ("ada", "bob")]
    return [Through.account(sandbox, each, sandbox.share(room, each)) for each in people]


def members_of_two_domains(sandbox: Sandbox, provider: str) -> list[Through]:
    room = sandbox.account(provider, ROOM[provider])
    ways = []
    for name in ("acme.example", "borealis.example"):
        person = sandbox.account(provider, f"ada@{name}")
        domain = sandbox.domain(provider, name)
        ways.append(Through.member(sandbox, domain, person.email, sandbox.share(room, person)))
    return ways


def a_member_and_an_account(sandbox: Sandbox, provider: str) -> list[Through]:
    """The room is a member of a domain, and shared with a person outside it."""
    room = sandbox.account(provider, "room-1@acme.example")
    domain = sandbox.domain(provider, "acme.example")
    person = sandbox.account(provider, "bob@elsewhere.example")
    main: Any = room.main_calendar_id
    return [
        Through.member(sandbox, domain, room.email, main),
        Through.account(sandbox, person, sandbox.share(room, person)),
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("share", [two_accounts, members_of_two_domains, a_member_and_an_account])
def test_a_booking_of_a_room_is_seen_by_everybody_who_has_it(share, provider, sandbox):
    ways = share(sandbox, provider)
    for count, way in enumerate(ways):
        assert [each.events() for each in ways] == [count] * len(ways)
        way.book()
    assert [each.events() for each in ways] == [len(ways)] * len(ways)


@pytest.mark.parametrize("share", [two_accounts, members_of_two_domains])
def test_a_room_at_google_has_free_busy_of_its_own(share, sandbox):
    ways = share(sandbox, "google")
    ways[0].book()
    for way in ways:
        assert free_busy(way.call, ROOM["google"], "primary") == {
            ROOM["google"]: {"busy": [NINE]},
            "primary": {"busy": []},
        }
