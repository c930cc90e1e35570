"""Undocumented answers that people report: a read fails no wider than their cause."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from providers.errors import RateLimited, Reason
from providers.sandbox import wild
from providers.timestamps import instant
from tests.providers.members import PERMISSIONS, account_of
from tests.providers.members import read as read_members
from tests.providers.sandbox.callers import Caller

START, END = instant("2026-12-03T00:00:00Z"), instant("2026-12-04T00:00:00Z")
MEETINGS = [
    {"subject": "One", "start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"},
    {"subject": "Two", "start": "2026-12-03T11:00:00Z", "end": "2026-12-03T12:00:00Z", "calendarId": "team"},
]
HOUR = 3_600_000
BUSY = {
    "primary": [(START + 9 * HOUR, START + 10 * HOUR)],
    "team": [(START + 11 * HOUR, START + 12 * HOUR)],
}
VIEW = "microsoft.calendarView.list"
# Kinds that change nothing that counts, with the calls that they apply to.
HARMLESS = [
    *(
        (provider, kind)
        for provider in ("google", "microsoft")
        for kind in ("loneSurrogate", "byteOrderMark", "oddEvent", "duplicate")
    ),
    ("microsoft", "brokenPart"),
    ("microsoft", "secondReply"),
    ("microsoft", "noZone"),
    ("microsoft", "otherSignIn"),
    ("google", "hiddenMain"),
]


@pytest.fixture
def made(sandbox: Any, connect: Any, google: Any, microsoft: Any) -> Any:
    """Make an account with two calendars; returns its adapter and the account."""

    def make(provider: str) -> tuple[Any, Any]:
        calendars = [{"primary": True, "subject": "Main"}, {"id": "team", "subject": "Team"}]
        account = sandbox.account(provider, "ada@example.com", calendars=calendars, events=MEETINGS)
        return {"google": google, "microsoft": microsoft}[provider], connect(account)

    return make


def busy(provider: Any, account: Any, *ids: str) -> Any:
    ids = ids or ("primary", "team")
    return provider.busy(account, ids, START, END, deadline=time.monotonic() + 8)


def events(provider: Any, account: Any) -> Any:
    found = provider.events(account, ["primary", "team"], START, END, deadline=time.monotonic() + 8)
    return {calendar: [(each.start, each.end) for each in those] for calendar, those in found.items()}


@pytest.mark.parametrize(("name", "kind"), HARMLESS)
def test_what_can_be_read_is_read(sandbox, made, name, kind):
    provider, account = made(name)
    listed = [each.id for each in provider.calendars(account, deadline=time.monotonic() + 8)]
    for operation in (None, VIEW):
        sandbox.fault(provider=name, operation=operation, wild=kind)
    assert {each: outcome.busy.pairs() for each, outcome in busy(provider, account).items()} == BUSY
    assert events(provider, account) == BUSY
    assert [each.id for each in provider.calendars(account, deadline=time.monotonic() + 8)] == listed
    assert sandbox.requests().struck > 0


@pytest.mark.parametrize("kind", ["brokenPart", "refusedPart"])
@pytest.mark.parametrize("first", [True, False])
def test_one_part_fails_alone(sandbox, made, kind, first):
    """As a part it is broken; by itself Graph says why: access is denied."""
    provider, account = made("microsoft")
    if kind == "brokenPart":
        sandbox.fault(calendar_id="team", operation=VIEW, status=403)
    sandbox.fault(calendar_id="team", operation=VIEW, wild=kind, times=1 if kind == "brokenPart" else None)
    outcomes = busy(provider, account, *(("team", "primary") if first else ("primary", "team")))
    assert outcomes["primary"].busy.pairs() == BUSY["primary"]
    assert outcomes["team"].reason is Reason.ACCESS_DENIED
    assert account.tokens.renewals == 0


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_a_401_for_one_calendar_of_several_is_a_refusal_of_that_calendar(sandbox, made, provider):
    adapter, account = made(provider)
    operation = VIEW if provider == "microsoft" else "google.events.list"
    sandbox.fault(calendar_id="primary", operation=operation, wild="refusedPart")
    found = adapter.events(account, ["primary", "team"], START, END, deadline=time.monotonic() + 8)
    assert found["primary"].reason is Reason.ACCESS_DENIED
    assert [each.start for each in found["team"]] == [BUSY["team"][0][0]]


def test_settings_that_are_refused_with_401_leave_the_zone_unknown(sandbox, made):
    provider, account = made("microsoft")
    sandbox.fault(operation="microsoft.mailboxSettings.get", wild="refusedPart")
    assert {each: outcome.busy.pairs() for each, outcome in busy(provider, account).items()} == BUSY
    assert provider.main_calendar(account, deadline=time.monotonic() + 8).time_zone == ""
    assert account.tokens.renewals == 0


@pytest.mark.parametrize(
    "fault", [{"wild": "noZone"}, *({"status": status} for status in (400, 401, 403, 404))], ids=str
)
def test_a_day_of_a_mailbox_without_a_zone_is_busy_in_every_zone(sandbox, microsoft, connect, fault):
    day = {"start": "2026-12-16", "end": "2026-12-17", "allDay": True}
    account = connect(sandbox.account("microsoft", "day@example.com", events=[day, *MEETINGS[:1]]))
    sandbox.fault(operation="microsoft.mailboxSettings.get", **fault)
    until = instant("2026-12-20T00:00:00Z")
    found = microsoft.busy(account, ["primary"], START, until, deadline=time.monotonic() + 8)["primary"]
    widest = instant("2026-12-15T10:00:00Z"), instant("2026-12-17T12:00:00Z")
    assert found.busy.pairs() == [*BUSY["primary"], widest]
    listed = microsoft.events(account, ["primary"], START, until, deadline=time.monotonic() + 8)
    assert len(listed["primary"]) == 2
    assert microsoft.calendars(account, deadline=time.monotonic() + 8)[0].time_zone == "UTC"


def test_members_of_a_broken_batch_are_read_alone(sandbox, microsoft):
    names = [f"m{number}@contoso.com" for number in range(3)]
    domain = sandbox.domain(
        "microsoft", "contoso.com", [{"email": each, "events": MEETINGS[:1]} for each in names]
    )
    account = account_of(sandbox.url, domain, scopes=PERMISSIONS)
    sandbox.fault(operation=VIEW, email=names[1], wild="brokenPart")
    outcomes = read_members(microsoft, account, names)
    assert {type(each).__name__ for each in outcomes.values()} == {"ReadAlone"}
    for name in names:
        alone = account_of(sandbox.url, domain, name, delegated=True)
        assert busy(microsoft, alone, "primary")["primary"].busy.pairs() == BUSY["primary"]


def test_an_undocumented_limit_is_a_limit(sandbox, made):
    provider, account = made("google")
    sandbox.fault(provider="google", wild="unknownQuota")
    with pytest.raises(RateLimited):
        busy(provider, account)


def test_403_of_a_front_end_is_tried_again(sandbox, made):
    for name, operation in (("google", "google.freebusy.query"), ("microsoft", VIEW)):
        provider, account = made(name)
        sandbox.fault(operation=operation, status=403, body="html", times=2)
        assert {each: outcome.busy.pairs() for each, outcome in busy(provider, account).items()} == BUSY


def test_own_attendance_is_found_by_the_address_of_the_mailbox(sandbox, made):
    provider, account = made("microsoft")
    guests = [{"emailAddress": {"address": "ada@example.com"}, "type": "required"}]
    call = Caller(f"{sandbox.url}/microsoft/v1.0", account.tokens.access.reveal)
    times = {
        name: {"dateTime": MEETINGS[0][name].rstrip("Z"), "timeZone": "UTC"} for name in ("start", "end")
    }
    assert call("POST", "me/events", json={"subject": "G", **times, "attendees": guests}).status_code == 201
    sandbox.fault(provider="microsoft", operation=VIEW, wild="otherSignIn")
    deadline = time.monotonic() + 8
    known = replace(account, mailbox="MAILBOX.of.ada@example.com")
    own = [
        [guest.is_self for event in found["primary"] for guest in event.attendees]
        for found in (
            provider.events(each, ["primary"], START, END, deadline=deadline) for each in (account, known)
        )
    ]
    assert own == [[False], [True]]


def test_every_kind_is_met_here():
    met = {kind for _, kind in HARMLESS} | {"refusedPart", "unknownQuota"}
    assert met == set(wild.KINDS)
