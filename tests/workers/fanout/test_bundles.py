"""Members of organization grants are read together, and each has a result of its own."""

from __future__ import annotations

import threading
import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from providers.errors import Reason
from store.cache.busy_cache import CalendarKey
from store.cache.cache_tags import read_tags
from store.coordination.provider_limits import Access, BreakerLimits, Circuit
from store.sql.models import WebhookDelivery
from store.sql.queries import organization_grants
from tests.providers.members import show_to_reader
from tests.workers.conftest import all_places_free, put_work, replies, run_drain
from tests.workers.delegated import (
    END,
    MEETING,
    NINE,
    START,
    TEN,
    Delegated,
    delegate,
    failure,
    members,
    periods,
)
from workers.execution import reads
from workers.fanout.codec import Packed, elements, work_list
from workers.jobs import GrantRef, ListCalendars, ReadBusy

pytestmark = pytest.mark.slow

BATCH, VIEW = "microsoft.batch", "microsoft.calendarView.list"
FREE_BUSY = "google.freebusy.query"
TOKENS = {"google": "google.token", "microsoft": "microsoft.token"}
BOTH = pytest.mark.parametrize("provider", ["google", "microsoft"])
DOMAINS = {"google": "example.com", "microsoft": "contoso.com"}


@pytest.fixture
def organization(sandbox: Any, runtime: Any, unique: Any) -> Any:
    """Make a domain with members and delegated connections to them."""

    def make(provider: str, count: int, extra: tuple[str, ...] = (), **more: Any) -> Delegated:
        name = DOMAINS[provider]
        domain = sandbox.domain(provider, name, members(count, name), **more)
        emails = [f"m{n}@{name}" for n in range(count)]
        return delegate(runtime, domain, [*emails, *extra], unique("org"))

    return make


@pytest.fixture
def read(ask: Any, serve: Any) -> Any:
    """Read jobs as one request, with the workers that it needs."""

    def gather(*jobs: Any, tasks: int = 1, **more: Any) -> Any:
        serve(reads.perform, tasks=tasks)
        return ask(jobs, **more)

    return gather


# --- reads


def test_a_cold_organization_takes_one_request_for_each_bundle(sandbox, runtime, organization, read):
    google, microsoft = organization("google", 120), organization("microsoft", 45)
    jobs = [*google.jobs(), *microsoft.jobs()]
    replies = read(*jobs)
    assert len(replies) == len(jobs)
    assert all(periods(each) == [(NINE, TEN)] for each in replies)
    assert sandbox.requests().by_operation == {
        FREE_BUSY: 3,
        BATCH: 3,
        VIEW: 45,
        "google.token": 1,
        "microsoft.token": 1,
    }
    assert all_places_free(runtime)


def test_tokens_are_requested_once_for_many_requests(sandbox, organization, read):
    microsoft = organization("microsoft", 2)
    for day in range(3):
        read(*(microsoft.job(each, START + day, END) for each in microsoft.connections))
    assert sandbox.requests().by_operation == {BATCH: 3, VIEW: 6, "microsoft.token": 1}


@BOTH
def test_what_a_bundle_has_read_is_cached_for_each_member(runtime, organization, read, provider):
    of = organization(provider, 3)
    start, end = runtime.stores.busy.hull(START, END)
    read(*(of.job(each, start, end) for each in of.connections))
    keys = [CalendarKey(each, "primary") for each in of.connections.values()]
    known = runtime.stores.busy.load(keys, START, END)
    assert not known.missing


def test_personal_connections_are_read_beside(sandbox, organization, read, connected):
    of = organization("google", 3)
    personal = [
        connected(sandbox.account("google", "pia@elsewhere.example", events=[MEETING])),
        connected(sandbox.account("microsoft", "per@elsewhere.example", events=[MEETING])),
    ]
    jobs = [ReadBusy(each, ("primary",), START, END) for each in personal]
    replies = read(jobs[0], *of.jobs(), jobs[1])
    assert all(periods(each) == [(NINE, TEN)] for each in replies)
    assert sandbox.requests().by_operation[FREE_BUSY] == 2


def test_member_without_sharing_is_read_alone(sandbox, runtime, organization, read):
    of = organization("google", 50)
    hidden = [f"m{n}@example.com" for n in (3, 7, 9)]
    sandbox.change_domain("example.com", members=[{"email": each, "sharing": "none"} for each in hidden])
    replies = read(*of.jobs())
    assert all(periods(each) == [(NINE, TEN)] for each in replies)
    assert sandbox.requests().by_operation == {FREE_BUSY: 4, "google.token": 4}
    assert all_places_free(runtime)


@BOTH
def test_listed_calendars_are_read_together_once_their_tags_are_known(
    sandbox, runtime, unique, read, row, provider
):
    """A write through another connection must invalidate what a bundle has read."""
    name, operation = DOMAINS[provider], FREE_BUSY if provider == "google" else BATCH
    emails = [f"m{n}@{name}" for n in range(3)]
    described = [
        {
            "email": email,
            "calendars": [{"id": email, "primary": True}, {"id": f"team-{email}"}],
            "events": [
                MEETING,
                {
                    "start": f"2026-12-03T1{n}:00:00Z",
                    "end": f"2026-12-03T1{n}:30:00Z",
                    "calendarId": f"team-{email}",
                },
            ],
        }
        for n, email in enumerate(emails)
    ]
    domain = sandbox.domain(
        provider, name, described, subject=f"reader@{name}" if provider == "google" else None
    )
    for email in emails if provider == "google" else ():
        show_to_reader(sandbox, domain, email, f"team-{email}")
    of = delegate(runtime, domain, emails, unique("org"))
    start, end = runtime.stores.busy.hull(START, END)
    keys = {email: CalendarKey(of.connections[email], f"team-{email}") for email in emails}
    jobs = [
        ReadBusy(key.connection, ("primary", key.calendar), start, end, of.grant) for key in keys.values()
    ]

    def outcomes(replies: list[Any]) -> list[dict[str, Any]]:
        assert not any(each.failed for each in replies)
        return [{name: each.busy.pairs() for name, each in reply.outcomes.items()} for reply in replies]

    alone = outcomes(read(*jobs))
    assert sandbox.requests().by_operation[operation] >= len(emails)
    assert len({str(each) for each in alone}) == len(emails)
    read(*(ListCalendars(each) for each in of.connections.values()))
    runtime.stores.busy.invalidate_connections(of.connections.values())
    before = sandbox.requests().by_operation[operation]
    assert outcomes(read(*jobs)) == alone
    assert sandbox.requests().by_operation[operation] == before + 1

    stores, one = runtime.stores, keys[emails[1]]
    assert not stores.busy.load(list(keys.values()), START, END).missing
    stores.busy.invalidate_tags(read_tags(row(one.connection), one.calendar))
    assert list(stores.busy.load(list(keys.values()), START, END).missing) == [1]


def test_each_unreadable_member_is_named_with_the_reason(sandbox, organization, read):
    google = organization("google", 6, extra=("nobody@example.com",))
    microsoft = organization("microsoft", 6, extra=("nobody@contoso.com",))
    sandbox.change_domain("example.com", members=[{"email": "m1@example.com", "suspended": True}])
    sandbox.change_domain(
        "contoso.com",
        members=[
            {"email": "m1@contoso.com", "suspended": True},
            {"email": "m2@contoso.com", "excluded": True},
        ],
    )
    sandbox.fault(calendar_id="m3@example.com", reason="internalError")
    sandbox.fault(operation=VIEW, email="m3@contoso.com", status=429, retry_after=60)
    jobs = [*google.jobs(), *microsoft.jobs()]
    emails = [*google.connections, *microsoft.connections]
    replies = dict(zip(emails, read(*jobs, seconds=10.0), strict=True))
    reasons = {
        email: failure(reply).reason
        for email, reply in replies.items()
        if reply.failed or not hasattr(reply.outcomes["primary"], "busy")
    }
    assert reasons == {
        "m1@example.com": Reason.AUTHORIZATION_INVALID,
        "nobody@example.com": Reason.AUTHORIZATION_INVALID,
        "m3@example.com": Reason.PROVIDER_ERROR,
        "m1@contoso.com": Reason.MAILBOX_UNAVAILABLE,
        "m2@contoso.com": Reason.ACCESS_DENIED,
        "m3@contoso.com": Reason.RATE_LIMITED,
        "nobody@contoso.com": Reason.MAILBOX_UNAVAILABLE,
    }
    assert all(periods(each) == [(NINE, TEN)] for name, each in replies.items() if name not in reasons)


def alive(runtime: Any, of: Delegated) -> bool:
    with runtime.stores.database.reading() as session:
        return organization_grants.sealed(session, [of.grant.id])[of.grant.id].alive


def test_a_refused_member_does_not_end_the_grant(sandbox, runtime, organization, read):
    of = organization("google", 2, extra=("nobody@example.com", "someone@elsewhere.org"))
    sandbox.account("google", "someone@elsewhere.org")
    first = read(*of.jobs())
    assert [each.failed is None for each in first] == [True, True, False, False]
    assert alive(runtime, of)
    # The provider is not asked again at once about an account that it has just refused.
    before = sandbox.requests().by_operation["google.token"]
    again = read(of.job("nobody@example.com", START + 1), of.job("someone@elsewhere.org", START + 1))
    assert all(each.failed.reason is Reason.AUTHORIZATION_INVALID for each in again)
    assert sandbox.requests().by_operation["google.token"] == before


def test_a_suspended_reader_of_a_domain_leaves_members_readable(sandbox, runtime, organization, read):
    of = organization("google", 4, subject="reader@example.com")
    sandbox.change_domain("example.com", members=[{"email": "reader@example.com", "suspended": True}])
    assert all(periods(each) == [(NINE, TEN)] for each in read(*of.jobs()))
    assert alive(runtime, of)


def test_members_that_leave_a_bundle_are_read_at_the_same_time(sandbox, organization, ask, serve):
    of = organization("google", 4, subject="reader@example.com")
    sandbox.change_domain("example.com", members=[{"email": "reader@example.com", "suspended": True}])
    all_four = threading.Barrier(4)

    def perform(*job):
        all_four.wait(10)
        return reads.perform(*job)

    serve(perform, tasks=1)

    assert all(periods(each) == [(NINE, TEN)] for each in ask(of.jobs()))


@BOTH
def test_a_withdrawn_grant_ends_once_and_the_members_fail_together(
    sandbox, runtime, organization, read, provider
):
    of = organization(provider, 60)
    read(*of.jobs())
    sandbox.withdraw(DOMAINS[provider])
    before = sandbox.requests().by_operation[TOKENS[provider]]
    replies = read(*(of.job(each, START + 1) for each in of.connections))
    assert {failure(each).reason for each in replies} == {Reason.AUTHORIZATION_INVALID}
    assert sandbox.requests().by_operation[TOKENS[provider]] == before + 1
    assert not alive(runtime, of)
    assert not runtime.stores.redis.keys("grant-token*")

    # The next request makes no call at all.
    before = sandbox.requests().total
    replies = read(*(of.job(each, START + 2) for each in of.connections))
    assert {failure(each).reason for each in replies} == {Reason.AUTHORIZATION_INVALID}
    assert sandbox.requests().total == before


def test_the_end_of_a_grant_is_one_event_and_no_connection_ends(
    sandbox, runtime, organization, read, register, row
):
    register("https://receiver.example/hook")
    of = organization("google", 60)
    sandbox.withdraw("example.com")
    read(*of.jobs())
    with runtime.stores.database.reading() as session:
        events = list(session.scalars(select(WebhookDelivery.event)))
    assert events == ["grant.expired"]


@BOTH
def test_a_whole_request_that_is_throttled_fails_its_members(sandbox, organization, read, provider):
    of = organization(provider, 5)
    operation = FREE_BUSY if provider == "google" else BATCH
    sandbox.fault(operation=operation, status=429, reason="rateLimitExceeded", retry_after=60)
    began = time.monotonic()
    replies = read(*of.jobs(), seconds=10.0)
    assert {failure(each).reason for each in replies} == {Reason.RATE_LIMITED}
    assert all(failure(each).retry_after for each in replies)
    assert time.monotonic() - began < 5
    assert sandbox.requests().by_operation[operation] == 1


@BOTH
def test_a_whole_request_that_is_throttled_for_a_moment_is_retried(sandbox, organization, read, provider):
    of = organization(provider, 5)
    operation = FREE_BUSY if provider == "google" else BATCH
    sandbox.fault(operation=operation, status=429, reason="rateLimitExceeded", retry_after=0.2, times=1)
    assert all(periods(each) == [(NINE, TEN)] for each in read(*of.jobs()))


def test_a_throttled_mailbox_waits_by_itself_and_is_read_in_time(sandbox, organization, read):
    of = organization("microsoft", 5)
    sandbox.fault(operation=VIEW, email="m2@contoso.com", status=429, retry_after=1, times=1)
    began = time.monotonic()
    replies = read(*of.jobs())
    assert all(periods(each) == [(NINE, TEN)] for each in replies)
    assert 1.0 <= time.monotonic() - began < 5
    assert sandbox.requests().by_operation[BATCH] == 2


def test_a_rate_limit_of_the_grant_holds_the_next_bundle_together(sandbox, runtime, organization, read):
    of = organization("google", 50)
    runtime.stores.provider_limits.throttled(Circuit("google", Access.READS), of.grant.id, 0.5, named=True)
    began = time.monotonic()
    assert all(periods(each) == [(NINE, TEN)] for each in read(*of.jobs()))
    assert time.monotonic() - began >= 0.5
    assert sandbox.requests().by_operation[FREE_BUSY] == 1


def test_a_held_mailbox_waits_and_the_others_do_not(sandbox, runtime, organization, read):
    of = organization("microsoft", 5)
    held = of.connections["m2@contoso.com"]
    runtime.stores.provider_limits.throttled(Circuit("microsoft", Access.READS), held, 0.5, named=True)
    assert all(periods(each) == [(NINE, TEN)] for each in read(*of.jobs()))
    assert sandbox.requests().by_operation[BATCH] == 2


def test_two_requests_at_once_share_every_read(sandbox, organization, ask, serve):
    of = organization("google", 30)
    sandbox.fault(operation=FREE_BUSY, latency_ms=500)
    serve(reads.perform, tasks=2)
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(ask(of.jobs()))) for _ in range(2)]
    threads[0].start()
    time.sleep(0.2)
    threads[1].start()
    for each in threads:
        each.join(20)
    assert [[periods(each) for each in replies] for replies in answers] == [[[(NINE, TEN)]] * 30] * 2
    assert sandbox.requests().by_operation[FREE_BUSY] == 1


def test_a_connection_of_another_grant_is_not_read_by_this_one(sandbox, organization, read):
    one = organization("google", 2)
    claimed = [
        ReadBusy(each, ("primary",), START, END, GrantRef("another", "google"))
        for each in one.connections.values()
    ]
    assert all(periods(each) == [(NINE, TEN)] for each in read(*claimed))
    # Each was read alone, by its own grant.
    assert sandbox.requests().by_operation[FREE_BUSY] == 2


def test_an_address_of_two_connections_is_read_once(sandbox, runtime, unique, read):
    domain = sandbox.domain("microsoft", "contoso.com", members(1, "contoso.com"))
    of = delegate(runtime, domain, ["m0@contoso.com", "M0@contoso.com"], unique("org"))
    replies = read(*of.jobs())
    assert all(periods(each) == [(NINE, TEN)] for each in replies)


def test_a_provider_that_does_not_answer_fails_every_member_in_time(sandbox, organization, read):
    of = organization("microsoft", 3)
    sandbox.fault(operation=BATCH, latency_ms=5000)
    began = time.monotonic()
    replies = read(*of.jobs(), seconds=1.0)
    assert {failure(each).reason for each in replies} == {Reason.PROVIDER_ERROR}
    assert time.monotonic() - began < 2


def test_a_failed_request_for_many_members_counts_once_for_the_provider(sandbox, runtime, organization, read):
    """Else a single request would open the breaker for all tenants."""
    runtime.stores.provider_limits._breaker = BreakerLimits(accounts=3, failures=9, pause=30.0)
    of = organization("microsoft", 4)
    sandbox.fault(operation=BATCH, status=503)
    assert {failure(each).reason for each in read(*of.jobs())} == {Reason.PROVIDER_ERROR}
    circuit = Circuit("microsoft", Access.READS)
    assert not runtime.stores.provider_limits.states([circuit])[circuit].open


def test_a_bundle_that_no_worker_takes_is_dropped_whole(runtime, organization, ask):
    of = organization("google", 3)
    replies = ask(of.jobs(), seconds=0.3)
    assert len(replies) == 3
    assert all(each.failed for each in replies)
    assert not runtime.stores.redis.keys(work_list("*"))


# --- the same outcomes as one member by itself

HOUR = 3_600_000
SHOWN = ["busy", "free", "tentative", "oof", "workingElsewhere"]
TIMED = st.tuples(st.just("timed"), st.integers(-30, 54), st.integers(1, 30), st.sampled_from(SHOWN))
DAYS = st.tuples(st.just("days"), st.integers(-2, 2), st.integers(1, 3), st.sampled_from(SHOWN))
ZONES = st.sampled_from(["UTC", "Pacific/Kiritimati", "America/New_York", "Asia/Kolkata"])
PEOPLE = st.lists(st.tuples(ZONES, st.lists(TIMED | DAYS, max_size=4)), min_size=2, max_size=5)


def event(provider: str, kind: str, at: int, long: int, shows: str) -> dict[str, Any]:
    """An event as the sandbox takes it, of hours or of days from the start of the range."""
    shown = (
        {"showAs": shows}
        if provider == "microsoft"
        else {"transparency": "transparent" if shows in ("free", "workingElsewhere") else "opaque"}
    )
    if kind == "days":
        first = date(2026, 12, 3) + timedelta(days=at)
        return {"start": str(first), "end": str(first + timedelta(days=long)), "allDay": True, **shown}
    starts = datetime.fromtimestamp((START + at * HOUR) / 1000, UTC)
    return {"start": starts.isoformat(), "end": (starts + timedelta(hours=long)).isoformat(), **shown}


@BOTH
@given(people=PEOPLE)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_members_have_the_same_busy_periods_together_and_alone(
    sandbox, runtime, unique, provider, people
):
    name = DOMAINS[provider]
    described = [
        {"email": f"p{n}@{name}", "timeZone": zone, "events": [event(provider, *each) for each in events]}
        for n, (zone, events) in enumerate(people)
    ]
    runtime.stores.redis.flushall()
    domain = sandbox.domain(provider, name, described, subject=f"p0@{name}" if provider == "google" else None)
    of = delegate(runtime, domain, [each["email"] for each in described], unique("org"))
    runtime.stores.redis.rpush(work_list("together"), *elements(map(Packed, range(len(people)), of.jobs())))
    run_drain(runtime, "together", reads.perform)
    put_work(runtime, "alone", of.jobs())
    run_drain(runtime, "alone", reads.perform)
    together, alone = (replies(runtime, each) for each in ("together", "alone"))
    assert [(n, periods(each)) for n, each in together] == [(n, periods(each)) for n, each in alone]
    assert len(together) == len(people)
