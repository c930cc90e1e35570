"""Several members of a domain in one freeBusy query, read by one account."""

from __future__ import annotations

import time
from typing import Any

import pytest

from providers.base import Failed, Member, Read, ReadAlone
from providers.errors import GrantRefused, ProviderError, RateLimited, Reason, SubjectRefused
from providers.scopes import Operation
from providers.timestamps import DAY, instant
from tests.providers.members import END, START, account_of, read, read_all, show_to_reader

MEETING = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
NINE, TEN = instant(MEETING["start"]), instant(MEETING["end"])
FREE_BUSY = "google.freebusy.query"
NAMES = [f"m{n}@example.com" for n in range(50)]


@pytest.fixture
def domain(sandbox: Any) -> Any:
    return sandbox.domain("google", "example.com", [{"email": each, "events": [MEETING]} for each in NAMES])


@pytest.fixture
def account(sandbox: Any, domain: Any) -> Any:
    return account_of(sandbox.url, domain, domain.subject)


def test_fifty_members_are_read_with_one_query(sandbox, google, account):
    outcomes = read(google, account, NAMES)
    assert list(outcomes) == NAMES
    assert {each.busy.pairs()[0] for each in outcomes.values()} == {(NINE, TEN)}
    assert sandbox.requests().by_operation == {FREE_BUSY: 1, "google.token": 1}


def test_a_year_is_read_sixty_days_at_a_time(sandbox, google, account):
    assert isinstance(read(google, account, NAMES[:2], end=START + 366 * DAY)[NAMES[1]], Read)
    assert sandbox.requests().by_operation[FREE_BUSY] == 7


def test_member_without_sharing_is_read_alone(sandbox, google, account, domain):
    sandbox.change_domain("example.com", members=[{"email": NAMES[7], "sharing": "none"}])
    outcomes = read(google, account, NAMES)
    assert isinstance(alone := outcomes.pop(NAMES[7]), ReadAlone)
    assert alone.failed.reason is Reason.NOT_FOUND
    assert all(isinstance(each, Read) for each in outcomes.values())

    oneself = account_of(sandbox.url, domain, NAMES[7])
    found = google.busy(oneself, ["primary"], START, END, deadline=time.monotonic() + 5)
    assert found["primary"].busy.pairs() == [(NINE, TEN)]


def test_an_error_of_one_member_is_that_members(sandbox, google, account):
    sandbox.fault(calendar_id=NAMES[3], reason="internalError")
    outcomes = read(google, account, NAMES)
    assert isinstance(failed := outcomes.pop(NAMES[3]), Failed)
    assert failed.reason is Reason.PROVIDER_ERROR
    assert all(isinstance(each, Read) for each in outcomes.values())


def test_all_calendars_of_members_are_read_with_one_query(sandbox, google):
    """Calendars that the account can see. A member with another one is read alone."""
    described = [
        {
            "email": each,
            "events": [MEETING],
            "calendars": [{"id": each, "primary": True}, {"id": f"team-{each}"}],
        }
        for each in NAMES[:3]
    ]
    domain = sandbox.domain("google", "example.com", described, subject=NAMES[0])
    show_to_reader(sandbox, domain, NAMES[1], f"team-{NAMES[1]}")
    outcomes = read_all(
        google,
        account_of(sandbox.url, domain, domain.subject),
        [Member(each, calendars=("primary", f"team-{each}")) for each in NAMES[:3]],
    )
    assert [sorted(each) for each in outcomes[:2]] == [
        sorted(("primary", f"team-{each}")) for each in NAMES[:2]
    ]
    assert isinstance(outcomes[2], ReadAlone)
    assert sandbox.requests().by_operation[FREE_BUSY] == 1


def test_birthdays_are_read_by_their_own_account_only(sandbox, google, account):
    """Google gives that calendar the same id in each account."""
    own = "addressbook#contacts@group.v.calendar.google.com"
    outcomes = read_all(google, account, [Member(NAMES[0], calendars=("primary", own)), Member(NAMES[1])])
    assert isinstance(outcomes[0], ReadAlone)
    assert isinstance(outcomes[1]["primary"], Read)


def test_a_query_that_is_throttled_fails_for_every_member(sandbox, google, account):
    sandbox.fault(operation=FREE_BUSY, status=429, reason="rateLimitExceeded", retry_after=60)
    with pytest.raises(RateLimited):
        read(google, account, NAMES)


def test_a_token_that_google_rejects_is_replaced_once(sandbox, google, account):
    sandbox.fault(operation=FREE_BUSY, status=401, times=1)
    assert len(read(google, account, NAMES)) == len(NAMES)
    assert account.tokens.requests == 2


def test_a_withdrawn_grant_is_refused_and_names_the_console(sandbox, google, account):
    sandbox.withdraw("example.com")
    with pytest.raises(GrantRefused, match="Domain-wide delegation"):
        read(google, account, NAMES)


@pytest.mark.parametrize("subject", ["nobody@example.com", NAMES[1]])
def test_a_missing_or_suspended_account_concerns_only_itself(sandbox, google, domain, subject):
    sandbox.change_domain("example.com", members=[{"email": NAMES[1], "suspended": True}])
    with pytest.raises(SubjectRefused):
        read(google, account_of(sandbox.url, domain, subject), NAMES)


def test_scopes_are_required_before_any_call(sandbox, google, domain):
    account = account_of(sandbox.url, domain, scopes=frozenset())
    with pytest.raises(ProviderError) as failure:
        read(google, account, NAMES)
    assert failure.value.operation == Operation.FREE_BUSY
    assert sandbox.requests().total == 0
