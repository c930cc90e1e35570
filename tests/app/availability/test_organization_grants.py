"""Proof at scale: an organization read by grants, beside personal connections to the same mailboxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from flask import Flask

from providers.sandbox.client import Sandbox, SandboxAccount, SandboxDomain
from store.sql.models import Organization
from store.sql.queries import organizations
from store.stores import Stores
from tests import people
from tests.conftest import Api, stores_of

pytestmark = pytest.mark.slow

DOMAINS = {"google": "acme.example", "microsoft": "contoso.example"}
PER_REQUEST = {"google": 50, "microsoft": 20}
WEEK = {"start": "2026-12-03", "end": "2026-12-10", "slotDuration": "60", "earliestTimeEachDay": "08:00"}
MEETINGS = 12
# Longer than a request waits.
LATER = 120.0


class Cause(NamedTuple):
    """Why a member cannot be read: the reason in the answer, and how the sandbox is brought to it."""

    provider: str
    reason: str
    provoke: Callable[[Sandbox, str], None]


def state(provider: str, **fields: Any) -> Callable[[Sandbox, str], None]:
    """The administrator has changed the state of a member."""
    return lambda sandbox, email: sandbox.change_domain(
        DOMAINS[provider], members=[{"email": email, **fields}]
    )


def never_created(_sandbox: Sandbox, _email: str) -> None:
    pass


def throttled(sandbox: Sandbox, email: str) -> None:
    """The member's part of a batch is throttled, for longer than the request waits."""
    sandbox.fault(provider="microsoft", email=email, status=429, retry_after=LATER)


def failing(sandbox: Sandbox, email: str) -> None:
    """Google reports an error of the member's calendar inside a 200."""
    sandbox.fault(provider="google", calendar_id=email, reason="backendError")


def not_shared(sandbox: Sandbox, email: str) -> None:
    """Colleagues may not read the member's calendar, and Google issues no token that acts as the member."""
    state("google", sharing="none")(sandbox, email)
    sandbox.fault(operation="google.token", email=email, status=400, reason="invalid_grant")


def without_calendar(sandbox: Sandbox, email: str) -> None:
    """Google finds no calendar of the member, for the member either."""
    sandbox.fault(provider="google", calendar_id=email, reason="notFound")


CAUSES = (
    Cause("google", "authorizationInvalid", state("google", suspended=True)),
    Cause("microsoft", "mailboxUnavailable", never_created),
    Cause("microsoft", "accessDenied", state("microsoft", excluded=True)),
    Cause("microsoft", "rateLimited", throttled),
    Cause("google", "providerError", failing),
    Cause("google", "authorizationInvalid", not_shared),
    Cause("google", "notFound", without_calendar),
)


@pytest.fixture
def web(new_app: Callable[..., Flask], worker: None) -> Flask:
    """A busy machine takes longer for 1 000 single reads than other tests wait."""
    return new_app(fanout_deadline_seconds=30)


@pytest.fixture
def call(web: Flask, api: Api) -> Callable[..., Any]:
    """Send a request that must succeed."""
    client = Api(web.test_client(), api.key)

    def call(method: str, path: str, body: Any = None, **query: str) -> Any:
        more = {} if body is None else {"json": body}
        answer = client.call(method, path, query_string=query, **more)
        assert answer.status_code in (200, 201), answer.text
        return answer.json

    return call


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("members", "unreadable"), [(60, 12), pytest.param(1000, 30, marks=pytest.mark.long)]
)
def test_each_member_is_read_as_by_a_connection_of_its_own_or_named(
    call, web, sandbox, unique, members, unreadable
):
    accounts = {
        provider: sandbox.accounts_in_bulk(
            provider,
            members // len(DOMAINS),
            email_pattern=f"m{{n}}@{name}",
            events_per_account=MEETINGS,
            start="2026-12-03",
            days=7,
        )
        for provider, name in DOMAINS.items()
    }
    domains = {provider: sandbox.domain(provider, name) for provider, name in DOMAINS.items()}
    addresses = {provider: [each.email for each in made] for provider, made in accounts.items()}
    reasons = choose(sandbox, addresses, unreadable)
    granted, personal = unique("granted"), unique("personal")
    call("POST", "/organizations", {"slug": granted})
    for provider, domain in domains.items():
        grant(call, granted, domain, addresses[provider])
    readable = [
        each
        for made in accounts.values()
        for each in made
        if each.email in addresses[each.provider] and each.email not in reasons
    ]
    assert len(readable) == members - unreadable
    connect(stores_of(web), personal, readable)

    sandbox.forget_requests()
    answer = call("GET", f"/organizations/{granted}/scheduling", **WEEK)
    sent = sandbox.requests().total
    assert {each["userId"]: each["reason"] for each in answer["failedUsers"]} == {
        user(granted, email): reason for email, reason in reasons.items()
    }
    assert len(set(reasons.values())) == 6
    assert sent <= most_requests(addresses, reasons)

    single = call("GET", f"/organizations/{personal}/scheduling", **WEEK)
    assert single["failedUsers"] == []
    found, wanted = slots_of(answer), slots_of(single)
    assert found.keys() == {user(granted, each.email) for each in readable}
    for each in readable:
        assert found[user(granted, each.email)] == wanted[user(personal, each.email)], each.email


def choose(sandbox: Sandbox, addresses: dict[str, list[str]], count: int) -> dict[str, str]:
    """Make some members unreadable, spread over the bundles; the reason of each by its address."""
    reasons: dict[str, str] = {}
    for number in range(count):
        cause = CAUSES[number % len(CAUSES)]
        emails = addresses[cause.provider]
        place = (2 * number + 1) * len(emails) // (2 * count)
        if cause.provoke is never_created:
            emails[place] = f"nobody{number}@{DOMAINS[cause.provider]}"
        cause.provoke(sandbox, emails[place])
        reasons[emails[place]] = cause.reason
    return reasons


def grant(call: Callable[..., Any], slug: str, domain: SandboxDomain, emails: list[str]) -> None:
    """Store the grant of a domain, and import the members."""
    path = f"/organizations/{slug}/grants/{domain.provider}"
    call("PUT", path, people.grant_of(domain))
    imported = [{"userId": user(slug, each), "email": each} for each in emails]
    call("POST", f"{path}/members", {"members": imported})


def connect(stores: Stores, slug: str, accounts: list[SandboxAccount]) -> None:
    """An organization with the same mailboxes, each connected by tokens of its own."""
    with stores.database.writing() as session:
        row = Organization(slug=slug)
        session.add(row)
        session.flush()
        users = [
            people.connected(session, stores.keyring, user(slug, each.email), each).id for each in accounts
        ]
        organizations.add_members(session, row.id, users)


def user(slug: str, email: str) -> str:
    """The id of the user that an organization has for an address."""
    return f"{slug}-{email.replace('@', '.')}"


def slots_of(answer: Any) -> dict[str, list[tuple[str, str]]]:
    """The slots of each user who has any."""
    found: dict[str, list[tuple[str, str]]] = {}
    for slot in answer["data"]["availableSlots"]:
        found.setdefault(slot["userId"], []).append((slot["start"], slot["end"]))
    return found


def most_requests(addresses: dict[str, list[str]], reasons: dict[str, str]) -> int:
    """A token of each grant, the bundles, and at most two calls for each member that fails."""
    bundles = sum(-(-len(emails) // PER_REQUEST[provider]) for provider, emails in addresses.items())
    return len(DOMAINS) + bundles + 2 * len(reasons)
