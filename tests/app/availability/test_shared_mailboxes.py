"""A write through one connection is seen through every connection that reads the same mailbox or calendar."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from providers.sandbox.client import Sandbox
from tests.app.days import DAY, PROVIDERS
from tests.app.endless import repeated
from tests.app.provider_installation import installed
from tests.conftest import Api, connect
from tests.waiting import until

pytestmark = pytest.mark.slow

# Slow reads and fast writes: a read that begins before a write ends after it.
LATENCY_MS = 15
MAIN = {"google": "google.calendarList.get", "microsoft": "microsoft.calendars.get"}
READS = ("google.freebusy.query", "microsoft.calendarView.list")

WRITES = [
    6,
    pytest.param(500, marks=[pytest.mark.long, pytest.mark.timeout(600)]),
]


MINUTES = 24 * 60


def clock(minute: int) -> str:
    return f"2026-12-{3 + minute // MINUTES:02d}T{minute % MINUTES // 60:02d}:{minute % 60:02d}:00.000Z"


def union(stretches: list[tuple[int, int]]) -> list[dict[str, str]]:
    """The busy periods of events, computed minute by minute."""
    covered = [any(start <= minute < end for start, end in stretches) for minute in range(MINUTES)]
    edges = [n for n in range(MINUTES + 1) if (n < MINUTES and covered[n]) != (n > 0 and covered[n - 1])]
    return [{"start": clock(a), "end": clock(b)} for a, b in zip(edges[::2], edges[1::2], strict=True)]


@dataclass(frozen=True)
class Reader:
    """A user, and the id of the calendar in the user's connection."""

    user: str
    provider: str
    calendar: str

    @property
    def events(self) -> str:
        return f"/users/{self.user}/calendar/events/{self.provider}/{self.calendar}"

    def busy(self, api: Api, **headers: str) -> Any:
        answer = api.get(
            f"/users/{self.user}/calendar/busy", headers=headers, calendarIds=self.calendar, **DAY
        )
        assert answer.status_code == 200, answer.text
        return answer.json["data"]


def user_of(api: Api, unique, account, **changed: Any) -> str:
    """A user whose connection was created over the API with the given e-mail address."""
    user: str = unique("user")
    assert api.post("/users", {"id": user}).status_code == 201
    connect(api, user, account, **changed)
    return user


def of_one_mailbox(api: Api, sandbox: Sandbox, unique, provider: str) -> list[Reader]:
    """Two users with one account: one connection has its e-mail address, the other a wrong one or none."""
    account = sandbox.account(provider, f"{unique('ada')}@example.com")
    wrong = "somebody.else@example.com" if provider == "google" else None
    return [
        Reader(user_of(api, unique, account), provider, "primary"),
        Reader(user_of(api, unique, account, email=wrong), provider, "primary"),
    ]


def of_one_secondary_calendar(api: Api, sandbox: Sandbox, unique, provider: str) -> list[Reader]:
    team = {"google": "team@group.calendar.google.com", "microsoft": "AAMk-team"}[provider]
    calendars = [{"primary": True}, {"id": team}]
    account = sandbox.account(provider, f"{unique('ada')}@example.com", calendars=calendars)
    return [Reader(user_of(api, unique, account, email=None), provider, team) for _ in range(2)]


def of_a_shared_calendar(api: Api, sandbox: Sandbox, unique, provider: str) -> list[Reader]:
    """The owner of a main calendar, and another account with which it is shared."""
    owner = sandbox.account(provider, f"{unique('ada')}@example.com")
    other = sandbox.account(provider, f"{unique('bob')}@example.com")
    shared = sandbox.share(owner, other)
    return [
        Reader(user_of(api, unique, owner, email=None), provider, "primary"),
        Reader(user_of(api, unique, other), provider, shared),
    ]


SHARED = [of_one_mailbox, of_one_secondary_calendar, of_a_shared_calendar]


@contextmanager
def reading(api: Api, readers: list[Reader]) -> Iterator[None]:
    """Two clients for each user that read continuously, one of them without the cache."""

    def repeat(reader: Reader, headers: dict[str, str]) -> Callable[[], object]:
        client = Api(api.client.application.test_client(), api.key)
        return lambda: reader.busy(client, **headers)

    with repeated([repeat(reader, h) for reader in readers for h in ({}, {"Cache-Control": "no-cache"})]):
        yield


def write_through_either(api: Api, readers: list[Reader], writes: int, chance: random.Random) -> None:
    """Random writes: after the answer to each, every reader sees it."""
    there: dict[str, tuple[int, int]] = {}
    with reading(api, readers):
        for number in range(writes):
            writer = chance.choice(readers)
            start = chance.randrange(0, MINUTES - 120)
            end = start + chance.randrange(15, 120)
            body = {"start": clock(start), "end": clock(end)}
            known = chance.choice(sorted(there)) if there else None
            kind = chance.choice(("create", "update", "delete")) if known else "create"
            if kind == "create":
                answer = api.post(writer.events, body)
                there[answer.json["data"]["id"]] = (start, end)
            elif kind == "update":
                answer = api.put(f"{writer.events}/{known}", body)
                there[known] = (start, end)
            else:
                answer = api.delete(f"{writer.events}/{known}")
                del there[known]
            assert answer.status_code in (200, 201), answer.text

            seen = {reader.user: reader.busy(api) for reader in readers}

            expected = union(list(there.values()))
            assert seen == dict.fromkeys(seen, expected), (number, kind, writer, body)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("sharing", SHARED)
@pytest.mark.parametrize("writes", WRITES)
def test_a_write_is_seen_through_every_connection(writes, sharing, provider, api, sandbox, unique):
    readers = sharing(api, sandbox, unique, provider)
    for operation in READS:
        sandbox.fault(operation=operation, latency_ms=LATENCY_MS)

    write_through_either(api, readers, writes, random.Random(f"{sharing.__name__} {provider}"))


@pytest.fixture(scope="module")
def pushed(environment, tmp_path_factory):
    with installed(environment, tmp_path_factory.mktemp("shared")) as installation:
        yield installation


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("sharing", SHARED)
@pytest.mark.parametrize("writes", WRITES)
def test_write_to_watched_calendar_is_seen_by_every_connection(
    writes, sharing, provider, pushed, sandbox, unique
):
    api = pushed.api
    readers = sharing(api, sandbox, unique, provider)
    for reader in readers:
        reader.busy(api)
    # Graph only sends notifications for the owner's calendar.
    unwatched = sharing is of_a_shared_calendar and provider == "microsoft"
    until(lambda: len(sandbox.channels()) == len(readers) - unwatched)
    for operation in READS:
        sandbox.fault(operation=operation, latency_ms=LATENCY_MS)

    write_through_either(api, readers, writes, random.Random(f"pushed {sharing.__name__} {provider}"))


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("first", [0, 1])
def test_a_connection_that_only_writes_is_seen_by_one_that_only_reads(first, provider, api, sandbox, unique):
    """Neither connection has been used before: each one identifies its mailbox."""
    readers = of_one_mailbox(api, sandbox, unique, provider)
    reader, writer = readers[first], readers[1 - first]
    assert reader.busy(api) == []

    made = api.post(writer.events, {"start": clock(60), "end": clock(90)})

    assert made.status_code == 201
    assert reader.busy(api) == [{"start": clock(60), "end": clock(90)}]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_main_calendar_of_an_account_is_read_once(provider, api, sandbox, unique):
    readers = of_one_mailbox(api, sandbox, unique, provider)
    for _ in range(3):
        for reader in readers:
            reader.busy(api, **{"Cache-Control": "no-cache"})
            reader.busy(api)
    assert sandbox.requests().by_operation[MAIN[provider]] == len(readers)


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_read_of_an_unidentified_mailbox_is_not_cached(provider, api, sandbox, unique):
    reader, writer = of_one_mailbox(api, sandbox, unique, provider)
    assert writer.busy(api) == []
    sandbox.fault(operation=MAIN[provider], status=503)
    assert reader.busy(api) == []

    assert api.post(writer.events, {"start": clock(60), "end": clock(90)}).status_code == 201

    assert reader.busy(api) == [{"start": clock(60), "end": clock(90)}]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_failed_identification_is_not_retried_by_next_reads(provider, api, sandbox, unique):
    reader, _ = of_one_mailbox(api, sandbox, unique, provider)
    sandbox.fault(operation=MAIN[provider], status=503)
    assert reader.busy(api) == []
    calls = sandbox.requests().by_operation[MAIN[provider]]
    assert calls > 0

    for _ in range(3):
        assert reader.busy(api, **{"Cache-Control": "no-cache"}) == []

    assert sandbox.requests().by_operation[MAIN[provider]] == calls


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_nothing_is_written_while_the_mailbox_cannot_be_identified(provider, api, sandbox, unique):
    writer, _ = of_one_mailbox(api, sandbox, unique, provider)
    sandbox.fault(operation=MAIN[provider], status=503)

    refused = api.post(writer.events, {"start": clock(60), "end": clock(90)})

    assert refused.status_code == 502
    sandbox.clear_faults()
    assert writer.busy(api) == []


@pytest.mark.usefixtures("worker")
def test_the_email_replaces_the_id_of_an_unreadable_main_calendar(api, sandbox, unique):
    account = sandbox.account("google", f"{unique('ada')}@example.com")
    narrow = [
        "https://www.googleapis.com/auth/calendar.events",
        "https://www.googleapis.com/auth/calendar.freebusy",
    ]
    writer = Reader(user_of(api, unique, account, scope=narrow), "google", "primary")
    reader = Reader(user_of(api, unique, account, email=None), "google", "primary")
    assert reader.busy(api) == writer.busy(api) == []

    assert api.post(writer.events, {"start": clock(60), "end": clock(90)}).status_code == 201

    assert reader.busy(api) == writer.busy(api) == [{"start": clock(60), "end": clock(90)}]
    assert sandbox.requests().by_operation["google.calendarList.get"] == 1
