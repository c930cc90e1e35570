"""All accounts of a person count, on every route of scheduling, compared with the minute oracle.

Each person has two accounts at Google, one at Microsoft, one at a CalDAV server of its own and a feed. Of
some, one mailbox has two connections. Accounts fail at random, and each failing one must be named.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from providers.sandbox.client import SandboxAccount
from scheduling.query import Query
from scheduling.windows import MINUTE
from tests import people
from tests.app.days import DAY, meeting
from tests.providers.caldav import scripted as dav
from tests.providers.ical.texts import calendar, event
from tests.providers.ics.server import FeedServer, feed_server
from tests.scheduling import oracle

SEED, PEOPLE = 38, 8
CASES = int(os.environ.get("ALMANAC_EXAMPLES", "300"))
START, END = 8 * 60, 16 * 60
MIDNIGHT = 1_796_256_000_000
NO_CACHE = {"Cache-Control": "no-cache"}
EXPLAINED = "/users/{}/scheduling/explain"

Busy = Sequence[tuple[int, int]]


@dataclass
class Mailbox:
    """An account, its busy minutes of the Thursday, the ids of its connections, and how its reads fail."""

    provider: str
    busy: Busy
    fail: Callable[[], None]
    heal: Callable[[], None] = lambda: None
    connections: list[str] = field(default_factory=list)


@dataclass
class Person:
    """A user, an organization of only this member, and the ids of all connections."""

    user: str
    slug: str
    mailboxes: list[Mailbox]
    connections: list[str]


def minute(at: int) -> str:
    return f"{at // 60:02}:{at % 60:02}"


def random_busy(random: Random) -> Busy:
    found = []
    for _ in range(random.randrange(4)):
        begins = random.randrange(START, END - 10, 5)
        found.append((begins, min(END, begins + random.randrange(5, 120, 5))))
    return found


def lines(busy: Busy) -> list[str]:
    """The times of events as iCalendar has them."""
    return [
        f"DTSTART:20261203T{minute(a).replace(':', '')}00Z\nDTEND:20261203T{minute(b).replace(':', '')}00Z"
        for a, b in busy
    ]


@pytest.fixture
def persons(api, sandbox, worker, new_user, new_organization) -> Iterator[list[Person]]:
    """The people, each with five accounts."""
    random = Random(SEED)
    with ExitStack() as servers:
        feeds = servers.enter_context(feed_server())
        yield [
            _person(number, random, api, sandbox, new_user, new_organization(), feeds, servers)
            for number in range(PEOPLE)
        ]


def _person(
    number: int,
    random: Random,
    api: Any,
    sandbox: Any,
    new_user: Any,
    slug: str,
    feeds: FeedServer,
    servers: ExitStack,
) -> Person:
    accounts: list[SandboxAccount] = []
    mailboxes: list[Mailbox] = []
    for n, provider in enumerate(("google", "google", "microsoft")):
        busy = random_busy(random)
        events = [meeting(minute(a), minute(b)) for a, b in busy]
        accounts.append(sandbox.account(provider, f"several-{number}-{n}@example.com", events=events))
        address = accounts[-1].email
        mailboxes.append(Mailbox(provider, busy, lambda each=address: sandbox.fault(email=each, status=404)))
    user = new_user(*accounts, slugs=(slug,))
    twice = random.randrange(len(accounts)) if number % 2 else None
    if twice is not None:
        body = people.posted(accounts[twice]) | {"provider": accounts[twice].provider, "email": None}
        assert api.post(f"/users/{user}/connections", body).status_code == 201
        # The provider names the mailbox of the new connection with the first read.
        assert api.get(f"/users/{user}/calendar/busy", NO_CACHE, **DAY).status_code == 200
    for mailbox, body in (_at_a_server(random, servers), _feed(random, feeds, f"/{number}.ics")):
        made = api.post(f"/users/{user}/connections", body)
        assert made.status_code == 201, made.text
        mailbox.connections.append(made.json["data"]["id"])
        mailboxes.append(mailbox)

    stored = api.get(f"/users/{user}/connections").json["data"]
    for each in stored:
        for mailbox, account in zip(mailboxes, accounts, strict=False):
            again = each["email"] is None and each["provider"] == account.provider
            if each["email"] == account.email or (again and twice == accounts.index(account)):
                mailbox.connections.append(each["id"])
    return Person(user, slug, mailboxes, [each["id"] for each in stored])


def _at_a_server(random: Random, servers: ExitStack) -> tuple[Mailbox, dict[str, str]]:
    """An account at a CalDAV server of its own: all have the same address and the same paths."""
    script = servers.enter_context(dav.scripted())
    busy = random_busy(random)
    texts = [
        dav.stored(dav.event(f"e{n}", *(line.partition(":")[2] for line in each.split("\n"))), f"e{n}")
        for n, each in enumerate(lines(busy))
    ]
    report = "REPORT", dav.CALENDAR
    script.say(*report, dav.multistatus(*texts))
    mailbox = Mailbox(
        "caldav",
        busy,
        lambda: script.say(*report, (403, b"", {})),
        lambda: script.say(*report, dav.multistatus(*texts)),
    )
    body = {"provider": "caldav", "url": script.url, "username": "ada", "password": "secret"}
    return mailbox, body


def _feed(random: Random, feeds: FeedServer, path: str) -> tuple[Mailbox, dict[str, str]]:
    busy = random_busy(random)
    content = calendar(*(event(each, uid=f"e{n}") for n, each in enumerate(lines(busy))))
    mailbox = Mailbox(
        "ics", busy, lambda: feeds.feeds.pop(path) and None, lambda: feeds.put(content, path) and None
    )
    return mailbox, {"provider": "ics", "url": feeds.put(content, path)}


def expected_starts(params: dict[str, str], mailboxes: list[Mailbox], *, align: bool) -> list[str]:
    query = Query(
        MIDNIGHT + START * MINUTE,
        MIDNIGHT + END * MINUTE,
        int(params["slotDuration"]) * MINUTE,
        padding_before=int(params["padding"]) * MINUTE,
        padding_after=int(params["padding"]) * MINUTE,
        max_overlaps=int(params["maxOverlaps"]),
        align_clock=align,
    )
    calendars = [[(MIDNIGHT + a * MINUTE, MIDNIGHT + b * MINUTE) for a, b in box.busy] for box in mailboxes]
    return [minute((at - MIDNIGHT) // MINUTE) for at in oracle.slots_of(query, calendars)]


def slots_and_failures(api, route, person, query):
    """The starts of the slots, None if there is no answer, and the ids of the failed connections."""
    if route == "user":
        answer = api.get(f"/users/{person.user}/scheduling", NO_CACHE, **query)
        failed = answer.json.get("failedCalendars", [])
        slots = answer.json["data"]["availableSlots"] if answer.status_code == 200 else None
    elif route == "users":
        body = {"users": [{"id": person.user}]}
        answer = api.call("POST", "/users/scheduling", headers=NO_CACHE, json=body, query_string=query)
        (entry,) = answer.json["data"]
        failed, slots = entry["failedCalendars"], entry.get("availableSlots")
    else:
        if route == "group":
            body = {"participants": [{"users": [person.user]}]}
            answer = api.call("POST", "/scheduling", headers=NO_CACHE, json=body, query_string=query)
        else:
            answer = api.get(f"/organizations/{person.slug}/scheduling", NO_CACHE, **query)
        failed = [each for one in answer.json["failedUsers"] for each in one["failedCalendars"]]
        slots = None if answer.json["failedUsers"] else answer.json["data"]["availableSlots"]
    shown = None if slots is None else [each["start"][11:16] for each in slots]
    return shown, sorted(each["connectionId"] for each in failed), answer


def check_explained(api, random, person, query, starts):
    """A moment is offered if it lies in a slot, and a busy one names the connections that block it."""
    at = random.randrange(START, END)
    moment = f"2026-12-03T{minute(at)}:00Z"
    answer = api.get(EXPLAINED.format(person.user), NO_CACHE, at=moment, **query)
    assert answer.status_code == 200, answer.text
    length = int(query["slotDuration"])
    begins = [int(each[:2]) * 60 + int(each[3:]) for each in starts]
    assert answer.json["data"]["offered"] == any(0 <= at - each < length for each in begins), answer.text
    return answer.json["data"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_slots_are_those_of_the_union_and_each_failing_account_is_named(api, sandbox, persons):
    random = Random(SEED + 1)
    outcomes = {"whole": 0, "failed": 0, "partial": 0, "explained": 0}
    for _ in range(CASES):
        person = random.choice(persons)
        everything = person.connections
        params = {
            "slotDuration": str(random.choice((15, 30, 60))),
            "padding": str(random.choice((0, 0, 5, 20))),
            "maxOverlaps": str(random.choice((0, 0, 1, 2))),
        }
        query: dict[str, Any] = {
            **params,
            "start": f"2026-12-03T{minute(START)}:00Z",
            "end": f"2026-12-03T{minute(END)}:00Z",
        }
        chosen = list(everything)
        if random.random() < 0.3:
            chosen = random.sample(everything, random.randrange(1, len(everything) + 1))
            query["connection"] = chosen
        if random.random() < 0.2:
            query["provider"] = random.choice(("google", "caldav", "ics"))
        read = [
            (box, [each for each in everything if each in chosen and each in box.connections])
            for box in person.mailboxes
            if query.get("provider", box.provider) == box.provider
        ]
        read = [(box, mine) for box, mine in read if mine]
        if not read:
            continue
        sandbox.clear_faults()
        for box in person.mailboxes:
            box.heal()
        failing = [each for each in read if random.random() < 0.15]
        for box, _ in failing:
            box.fail()
        route = random.choice(("user", "user", "users", "organization", "group"))
        partial = route == "user" and random.random() < 0.5
        if partial:
            query["onFailure"] = "partial"

        slots, failed, answer = slots_and_failures(api, route, person, query)

        context = (route, query, [box.provider for box, _ in failing], answer.text)
        good = [box for box, _ in read if box not in [other for other, _ in failing]]
        if failing and not (partial and good):
            assert slots is None, context
            # Of a member of an organization, nothing is listed if no account could be read.
            silent = not good and route in {"organization", "group"}
            names = sorted(mine[0] for _, mine in failing)
            assert failed == names or (silent and not failed), context
            outcomes["failed"] += 1
            continue
        assert slots == expected_starts(params, good, align=route == "group"), context
        assert failed == sorted(mine[0] for _, mine in failing), context
        outcomes["partial" if failing else "whole"] += 1
        if not failing and route == "user" and not partial:
            check_explained(api, random, person, query, slots)
            outcomes["explained"] += 1
    assert min(outcomes.values()) > CASES // 40, outcomes
