"""Answers when an account cannot be read: never free time, always the account and the reason.

Every fault applies to an account of each provider. One user has only the faulty account, another one also
has a healthy account of the other provider; both are members of an organization with healthy members. All
requests are sent in parallel, because a fault may delay each of them until the deadline.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from app.services import EXTENSION
from providers import registry
from providers.sandbox.client import Sandbox, SandboxAccount
from providers.scopes import Operation
from store.sql.queries import api_keys, connection_rows, connections
from tests.app.answers import forget_patience
from tests.app.days import DAY, MORNING, PROVIDERS, meeting, periods, starts, starts_of
from tests.conftest import Api, connect

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

# Each request must be answered within this many seconds after the deadline, on any machine; the faults last
# longer.
GRACE, LATENCY = 20.0, 60_000

STATUS = {
    "accessDenied": 403,
    "authorizationInvalid": 401,
    "insufficientScopes": 403,
    "mailboxUnavailable": 403,
    "notFound": 404,
    "providerError": 502,
    "rateLimited": 429,
}

# Faults of an account as a whole, or of its calendars.
EITHER = ("an empty object with 200", "429 inside the 200", "HTML with 200", "truncated JSON")

TOO_NARROW = {"google": ("openid", "email"), "microsoft": ("User.Read", "offline_access")}
LONG_AGO = "2020-01-01T00:00:00Z"

OPERATIONS = {
    ("google", "token"): "google.token",
    ("microsoft", "token"): "microsoft.token",
    ("google", "read"): "google.freebusy.query",
    ("microsoft", "read"): "microsoft.batch",
}


@dataclass(frozen=True)
class Sickness:
    """A fault of an account, and the reason for it in answers.

    ``faults`` are set in the sandbox after the accounts are connected; ``connected`` changes the fields of
    the connection. ``curable``: without the faults, requests succeed again.
    """

    name: str
    reason: str
    faults: tuple[Mapping[str, Any], ...] = ()
    connected: Mapping[str, Any] = field(default_factory=dict)
    revoked: bool = False
    dead: bool = False
    alive: bool = True
    curable: bool = True
    extra_fields: Mapping[str, Any] = field(default_factory=dict)
    providers: tuple[str, ...] = PROVIDERS

    def __str__(self) -> str:
        return self.name


def fault(name: str, reason: str, /, *, providers: tuple[str, ...] = PROVIDERS, **fault: Any) -> Sickness:
    """A case that is one fault of the sandbox."""
    extra_fields = fault.pop("extra_fields", {})
    return Sickness(name, reason, (fault,), providers=providers, extra_fields=extra_fields)


GOOGLE, MICROSOFT = ("google",), ("microsoft",)

SICKNESSES = [
    fault("answers after the deadline", "providerError", latency_ms=LATENCY),
    fault("500", "providerError", status=500),
    fault("503", "providerError", status=503),
    fault("503 that asks for patience", "providerError", status=503, retry_after=30),
    fault("HTML with 200", "providerError", body="html"),
    fault("truncated JSON", "providerError", body="truncated"),
    fault("reset connection", "providerError", body="reset"),
    fault("an empty object with 200", "providerError", status=200),
    fault("429 that never ends", "rateLimited", status=429, retry_after=1, extra_fields={"retryAfter": 1}),
    fault(
        "429 beyond the deadline",
        "rateLimited",
        status=429,
        retry_after=29.5,
        extra_fields={"retryAfter": 30},
    ),
    fault("429 that names no time", "rateLimited", status=429),
    fault("403", "accessDenied", status=403),
    fault("403 rateLimitExceeded", "rateLimited", providers=GOOGLE, status=403, reason="rateLimitExceeded"),
    fault("403 quotaExceeded", "rateLimited", providers=GOOGLE, status=403, reason="quotaExceeded"),
    fault("no calendar", "mailboxUnavailable", providers=GOOGLE, status=403, reason="notACalendarUser"),
    fault("no mailbox", "mailboxUnavailable", providers=MICROSOFT, reason="MailboxNotEnabledForRESTAPI"),
    fault("404 inside the 200", "notFound", calendar_id="primary", status=404),
    fault("500 inside the 200", "providerError", calendar_id="primary", status=500),
    fault("429 inside the 200", "rateLimited", providers=MICROSOFT, calendar_id="primary", status=429),
    fault("403 inside the 200", "accessDenied", providers=MICROSOFT, calendar_id="primary", status=403),
    fault(
        "unknown error inside the 200", "providerError", providers=GOOGLE, calendar_id="primary", reason="x"
    ),
    fault(
        "no scope, says the provider",
        "insufficientScopes",
        providers=GOOGLE,
        reason="insufficientPermissions",
        extra_fields={"operation": "calendar.freebusy.query"},
    ),
    Sickness("no scope, we say", "insufficientScopes", connected={"scope": TOO_NARROW}, curable=False),
    Sickness(
        "token endpoint down",
        "providerError",
        ({"operation": "token", "status": 503},),
        {"expiresAt": LONG_AGO},
    ),
    Sickness(
        "token endpoint throttles",
        "rateLimited",
        ({"operation": "token", "status": 429, "retry_after": 40, "reason": "slow_down"},),
        {"expiresAt": LONG_AGO},
        extra_fields={"retryAfter": 40},
    ),
    Sickness("401 of a grant that is gone", "authorizationInvalid", revoked=True, alive=False, curable=False),
    Sickness(
        "invalid_grant",
        "authorizationInvalid",
        connected={"expiresAt": LONG_AGO},
        revoked=True,
        alive=False,
        curable=False,
    ),
    # The first of two that are ten minutes apart, which would end the connection.
    Sickness("401 after a refresh", "authorizationInvalid", ({"status": 401, "operation": "read"},)),
    Sickness("not alive", "authorizationInvalid", dead=True, alive=False, curable=False),
]
# By default, each fault at one of its providers, in turn. `make test-long` has it at the others: no other
# test has all of these pairs.
CASES = [
    pytest.param(
        (provider, sickness),
        id=f"{provider}: {sickness.name}",
        marks=[] if turn == number % len(sickness.providers) else [pytest.mark.long],
    )
    for number, sickness in enumerate(SICKNESSES)
    for turn, provider in enumerate(sickness.providers)
]


@dataclass
class World:
    """The users of one case, and the answer to every request."""

    api: Api
    sandbox: Sandbox
    provider: str
    sickness: Sickness
    sick_email: str
    secrets: list[str]
    alone: str
    beside_healthy: str
    healthy: str
    slug: str
    answers: dict[str, TestResponse] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def ask(self) -> None:
        """Send all requests in parallel."""
        calls: dict[str, Callable[[Api], TestResponse]] = {
            "slots": lambda api: api.get(f"/users/{self.alone}/scheduling", **MORNING),
            "slots with a healthy account": lambda api: api.get(
                f"/users/{self.beside_healthy}/scheduling", **MORNING
            ),
            "scheduled": lambda api: api.post(
                f"/users/{self.alone}/scheduling",
                {"schedules": [{"days": ["thursday"], "start": "00:00", "end": "00:00"}]},
                query_string=MORNING,
            ),
            "nothing partial": lambda api: api.get(
                f"/users/{self.alone}/scheduling", **MORNING, onFailure="partial"
            ),
            "partial": lambda api: api.get(
                f"/users/{self.beside_healthy}/scheduling", **MORNING, onFailure="partial"
            ),
            "busy": lambda api: api.get(f"/users/{self.alone}/calendar/busy", **DAY),
            "busy with a healthy account": lambda api: api.get(
                f"/users/{self.beside_healthy}/calendar/busy", **DAY
            ),
            "organization busy": lambda api: api.get(f"/organizations/{self.slug}/calendar/busy", **DAY),
            "organization slots": lambda api: api.get(f"/organizations/{self.slug}/scheduling", **MORNING),
            "several": lambda api: api.post(
                "/users/scheduling",
                {"users": [{"id": user} for user in (self.healthy, self.alone, self.beside_healthy)]},
                query_string=MORNING,
            ),
        }
        with ThreadPoolExecutor(len(calls)) as threads:
            list(threads.map(lambda name: self._answer(name, calls[name]), calls))

    def _answer(self, name: str, call: Callable[[Api], TestResponse]) -> None:
        began = time.monotonic()
        # A Flask client belongs to one thread.
        self.answers[name] = call(Api(self.api.client.application.test_client(), self.api.key))
        self.seconds[name] = time.monotonic() - began


_worlds = itertools.count()


@pytest.fixture(scope="module")
def caller(app: Flask) -> Api:
    """An API client for all cases."""
    with app.extensions[EXTENSION].stores.database.writing() as session:
        key = api_keys.create(session, prefix="alm_", name="faults", organization_id=None)
    return Api(app.test_client(), key)


@pytest.fixture(scope="module", params=CASES)
def world(request: pytest.FixtureRequest, worker: None, caller: Api, sandbox_process: str) -> Iterator[World]:
    """A case with the answers to its requests."""
    provider, sickness = request.param
    sandbox = Sandbox(sandbox_process)
    sandbox.reset()
    number = next(_worlds)
    other = next(each for each in PROVIDERS if each != provider)

    def account(of: str, name: str, *events: dict[str, Any]) -> SandboxAccount:
        return sandbox.account(of, f"{name}{number}@planted.example", events=events)

    ill = [account(provider, name, meeting("09:00", "10:00")) for name in ("ill", "ill-too")]
    well = account(other, "well", meeting("10:00", "11:00"))
    healthy = account(provider, "healthy", meeting("11:00", "12:00"))
    slug = f"faults-{number}"
    assert caller.post("/organizations", {"slug": slug, "name": None}).status_code == 200
    users = [f"{name}-{number}" for name in ("alone", "both", "healthy", "without")]
    for user in users:
        assert caller.post("/users", {"id": user, "organizationSlugs": [slug]}).status_code == 201
    changed = {
        name: value[provider] if isinstance(value, Mapping) else value
        for name, value in sickness.connected.items()
    }
    connect(caller, users[0], ill[0], **changed)
    connect(caller, users[1], ill[1], **changed)
    connect(caller, users[1], well)
    connect(caller, users[2], healthy)
    infect(sandbox, caller, provider, sickness, ill, users)
    secrets = [*(each.access_token for each in ill), *(each.refresh_token for each in ill)]
    world = World(caller, sandbox, provider, sickness, ill[0].email, secrets, *users[:3], slug)
    world.ask()
    yield world
    sandbox.reset()


def infect(
    sandbox: Sandbox,
    caller: Api,
    provider: str,
    sickness: Sickness,
    accounts: list[SandboxAccount],
    users: list[str],
) -> None:
    """Set the faults of the accounts."""
    for account in accounts:
        for each in sickness.faults:
            fault = {"provider": provider, "email": account.email, **each}
            if "operation" in fault:
                fault["operation"] = OPERATIONS[provider, fault["operation"]]
            sandbox.fault(**fault)
        if sickness.revoked:
            sandbox.revoke(account.email)
    if sickness.dead:
        sandbox.forget_requests()
        stores = caller.client.application.extensions[EXTENSION].stores
        with stores.database.writing() as session:
            for user in users[:2]:
                for ref in connection_rows.of_user(session, user, organization_id=None) or ():
                    if ref.provider == provider:
                        connections.mark_dead(session, ref.id, "the grant has ended")


def status_and_body(world: World, name: str, answer: TestResponse | None = None) -> None:
    """The request failed with the status and the fields of the reason."""
    answer, sickness = answer or world.answers[name], world.sickness
    assert answer.status_code == STATUS[sickness.reason], answer.json
    assert answer.json["data"] is None
    expected = dict(sickness.extra_fields)
    if "scope" in sickness.connected:
        operation = answer.json["operation"]
        scopes = list(registry.scopes(world.provider).valid_scopes(operation))
        expected = {"operation": Operation.FREE_BUSY, "validScopes": scopes}
    rest = {key: value for key, value in answer.json.items() if key not in ("data", "error")}
    assert rest.pop("reason") == rest.pop("code") == sickness.reason
    if sickness.reason == "accessDenied":
        # The provider does not say whether a scope is missing.
        rest.pop("operation", None)
    assert reasons(rest.pop("failedCalendars")) == [(world.provider, sickness.reason)]
    if name == "busy" and "operation" in expected:
        # This request also lists the calendars, and either call may fail first.
        assert rest["operation"] in (Operation.FREE_BUSY, Operation.LIST_CALENDARS)
        expected["operation"] = rest["operation"]
    seconds = rest.get("retryAfter")
    if "retryAfter" in expected:
        # A later answer has the remaining time.
        assert 0 < seconds <= expected["retryAfter"]
        expected["retryAfter"] = seconds
    assert rest == expected
    assert answer.headers.get("Retry-After") == (None if seconds is None else str(seconds))


@pytest.mark.parametrize("name", ["slots", "slots with a healthy account", "scheduled", "nothing partial"])
def test_slots_of_one_user_fail_closed(world, name):
    status_and_body(world, name)
    assert "availableSlots" not in world.answers[name].text


def test_partial_slots_list_the_unread_calendars(world):
    answer = world.answers["partial"]
    assert starts(answer) == ["09:00", "11:00"]
    assert reasons(answer.json["failedCalendars"]) == [(world.provider, world.sickness.reason)]


def test_busy_with_nothing_read_fails(world):
    status_and_body(world, "busy")


def test_busy_lists_the_failed_calendars_with_the_read_periods(world):
    answer = world.answers["busy with a healthy account"]
    assert periods(answer) == [("10:00", "11:00")]
    assert reasons(answer.json["failedCalendars"]) == [(world.provider, world.sickness.reason)]


def test_organization_busy_names_unreadable_members(world):
    answer = world.answers["organization busy"]
    assert periods(answer) == [("10:00", "12:00")]
    failed_users(world, answer)


def test_organization_slots_name_unreadable_members(world):
    answer = world.answers["organization slots"]
    slots = answer.json["data"]["availableSlots"]
    assert {slot["userId"] for slot in slots} == {world.healthy}
    assert starts_of(slots) == ["09:00", "10:00"]
    failed_users(world, answer)


def test_several_users_have_slots_or_an_error(world):
    entries = world.answers["several"].json["data"]
    assert [entry["status"] for entry in entries] == ["ok", "error", "error"]
    assert starts_of(entries[0]["availableSlots"]) == ["09:00", "10:00"]
    for entry in entries[1:]:
        assert set(entry) == {"userId", "status", "error", "code", "reason", "failedCalendars"}
        assert entry["reason"] == entry["code"] == world.sickness.reason
        assert reasons(entry["failedCalendars"]) == [(world.provider, world.sickness.reason)]


def failed_users(world: World, answer: TestResponse) -> None:
    """Both users with a faulty account are listed; with calendars if one of them could be read."""
    alone, both = answer.json["failedUsers"]
    assert (alone["customId"], both["customId"]) == (world.alone, world.beside_healthy)
    assert alone["reason"] == both["reason"] == world.sickness.reason
    # Empty if and only if the account failed as a whole. Both are possible for an answer without the
    # calendar, for a batch that cannot be parsed, whose parts are read one by one, and for a throttled
    # mailbox: the rate limiter may stop later requests before the read.
    either = world.sickness.name in EITHER
    inside = any("calendar_id" in each for each in world.sickness.faults)
    assert bool(alone["failedCalendars"]) == inside or either
    assert reasons(both["failedCalendars"]) == [(world.provider, world.sickness.reason)]


def reasons(failed: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Provider and reason of each failed calendar, after a check that all fields exist."""
    fields = {"calendarId", "provider", "connectionId", "reason", "code", "message"}
    assert all(set(each) == fields for each in failed)
    return [(each["provider"], each["reason"]) for each in failed]


def test_every_request_answers_by_its_deadline(world, settings):
    late = {name: s for name, s in world.seconds.items() if s > settings.fanout_deadline_seconds + GRACE}
    assert not late


def test_messages_are_fit_for_people(world):
    for answer in world.answers.values():
        messages = [message for message in found_messages(answer.json) if message]
        assert messages
        for message in messages:
            # Scopes are URLs.
            text = re.sub(r"https://(www\.googleapis\.com/auth|graph\.microsoft\.com)/\S+", "", message)
            assert not re.search(r"https?:|/|@|[Ee]rror\(|Traceback|None|\d{5}", text), message
            assert not any(secret in message for secret in world.secrets)


def found_messages(node: Any) -> Iterator[str]:
    """Every error message in an answer."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("error", "message"):
                yield value
            yield from found_messages(value)
    elif isinstance(node, list):
        for each in node:
            yield from found_messages(each)


def test_only_a_revoked_grant_ends_the_connection(world):
    connection = world.api.get(f"/users/{world.alone}/oauth/{world.provider}").json["data"]
    assert connection["alive"] is world.sickness.alive
    world.sandbox.forget_requests()
    if not world.sickness.alive:
        status_and_body(world, "slots", world.api.get(f"/users/{world.alone}/scheduling", **MORNING))
        assert world.sandbox.requests().total == 0


def test_a_failure_is_never_cached_as_free_time(world):
    """The last test of a case, because it clears the faults."""
    world.sandbox.clear_faults()
    forget_patience(world.api)
    slots = world.api.get(f"/users/{world.alone}/scheduling", **MORNING)
    if not world.sickness.curable:
        status_and_body(world, "slots", slots)
        return
    assert starts(slots) == ["10:00", "11:00"]
    answer = world.api.get(f"/users/{world.beside_healthy}/calendar/busy", **DAY)
    assert periods(answer) == [("09:00", "11:00")]
    assert answer.json["failedCalendars"] == []


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "hurdle",
    [
        {"latency_ms": 1200},
        {"status": 429, "retry_after": 1, "times": 1},
        {"status": 503, "times": 2},
        {"body": "reset", "times": 1},
        # A failed part of a batch is retried alone; Google's error inside a 200 is not retried.
        {"calendar_id": "primary", "provider": "microsoft", "status": 503, "times": 1},
    ],
)
def test_a_successful_retry_is_no_failure(api, sandbox, new_user, provider, hurdle):
    user = new_user(sandbox.account(provider, "ada@example.com", events=[meeting("09:00", "10:00")]))
    sandbox.fault(email="ada@example.com", **hurdle)
    assert starts(api.get(f"/users/{user}/scheduling", **MORNING)) == ["10:00", "11:00"]


def test_listing_and_reading_share_one_deadline(api, sandbox, new_user, settings):
    accounts = [sandbox.account(each, f"ada@{each}.example") for each in PROVIDERS]
    user = new_user(*accounts)
    sandbox.fault(latency_ms=2000)
    began = time.monotonic()
    answer = api.get(f"/users/{user}/scheduling", **MORNING, calendarIds="a@group.calendar.google.com,AAMkX")
    assert time.monotonic() - began < settings.fanout_deadline_seconds + GRACE
    assert answer.status_code == 502


def test_unreadable_calendars_of_a_listed_account_are_named(api, sandbox, new_user):
    calendars = [{"primary": True}, {"id": "team"}]
    google = sandbox.account("google", "ada@example.com", calendars=calendars)
    user = new_user(google, sandbox.account("microsoft", "ada@contoso.example"))
    sandbox.fault(operation="google.freebusy.query", status=500)
    answer = api.get(f"/users/{user}/calendar/busy", **DAY)
    assert answer.status_code == 200
    assert [each["calendarId"] for each in answer.json["failedCalendars"]] == ["ada@example.com", "team"]


def test_a_connection_without_a_refresh_token_is_401(api, sandbox, new_user):
    ada = sandbox.account("google", "ada@example.com")
    user = new_user()
    connect(api, user, ada, refreshToken=None)
    sandbox.revoke("ada@example.com")
    assert api.get(f"/users/{user}/scheduling", **MORNING).status_code == 401


def test_most_specific_of_several_reasons_is_reported(api, sandbox, new_user):
    user = new_user(*(sandbox.account(each, f"ada@{each}.example") for each in PROVIDERS))
    sandbox.fault(provider="google", status=500)
    sandbox.revoke("ada@microsoft.example")
    assert api.get(f"/users/{user}/scheduling", **MORNING).status_code == 401
