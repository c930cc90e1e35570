"""Several mailboxes of a tenant in one batch: each part has an outcome of its own."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from providers.base import ChannelRequest, Failed, Member, Read, ReadAlone, Token
from providers.errors import (
    ClientRefused,
    GrantRefused,
    InsufficientScopes,
    RateLimited,
    Reason,
    Unavailable,
)
from providers.microsoft.client import Microsoft
from providers.microsoft.subscriptions import MicrosoftSubscriptions
from providers.timestamps import DAY, instant
from tests.providers.addresses import microsoft_at
from tests.providers.members import END, PERMISSIONS, START, Reports, account_of, read, read_all

MEETING = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
NINE, TEN = instant(MEETING["start"]), instant(MEETING["end"])
ALL_DAY = {"start": "2026-12-03", "end": "2026-12-04", "allDay": True}
BATCH, VIEW = "microsoft.batch", "microsoft.calendarView.list"
SETTINGS = "microsoft.mailboxSettings.get"
NAMES = [f"m{n}@contoso.com" for n in range(20)]


@pytest.fixture
def make(sandbox: Any) -> Any:
    """Make a tenant and the account of its application."""

    def made(*members: dict[str, Any], scopes: Any = PERMISSIONS, **more: Any) -> Any:
        described = members or [{"email": each, "events": [MEETING]} for each in NAMES]
        domain = sandbox.domain("microsoft", "contoso.com", described, **more)
        return account_of(sandbox.url, domain, scopes=scopes)

    return made


@pytest.fixture
def account(make: Any) -> Any:
    return make()


def test_twenty_mailboxes_take_one_batch_without_settings(sandbox, microsoft, account):
    outcomes = read(microsoft, account, NAMES)
    assert list(outcomes) == NAMES
    assert {each.busy.pairs()[0] for each in outcomes.values()} == {(NINE, TEN)}
    assert sandbox.requests().by_operation == {BATCH: 1, VIEW: 20, "microsoft.token": 1}


def test_zone_is_read_only_for_busy_all_day_events(sandbox, microsoft, make):
    account = make(
        {"email": NAMES[0], "events": [ALL_DAY], "timeZone": "America/New_York"},
        {"email": NAMES[1], "events": [ALL_DAY | {"showAs": "free"}], "timeZone": "Asia/Tokyo"},
        {"email": NAMES[2], "events": [MEETING]},
    )
    outcomes = read(microsoft, account, NAMES[:3], end=END + DAY)
    assert outcomes[NAMES[0]].busy.pairs() == [(START + 5 * DAY // 24, END + 5 * DAY // 24)]
    assert sandbox.requests().by_operation == {BATCH: 2, VIEW: 3, SETTINGS: 1, "microsoft.token": 1}


def test_without_the_permission_a_day_covers_every_zone(sandbox, microsoft, make):
    account = make({"email": NAMES[0], "events": [ALL_DAY]}, scopes=frozenset({"Calendars.ReadBasic.All"}))
    outcomes = read(microsoft, account, NAMES[:1], START - DAY, END + DAY)
    assert outcomes[NAMES[0]].busy.pairs() == [(START - 14 * DAY // 24, END + 12 * DAY // 24)]
    assert SETTINGS not in sandbox.requests().by_operation


@pytest.mark.parametrize("failure", [{"status": 429, "retry_after": 60}, {"status": 503}])
def test_unreadable_zone_fails_only_mailboxes_that_need_it(sandbox, microsoft, make, failure):
    account = make({"email": NAMES[0], "events": [ALL_DAY]}, {"email": NAMES[1], "events": [MEETING]})
    sandbox.fault(operation=SETTINGS, **failure)
    outcomes = read(microsoft, account, NAMES[:2])
    assert isinstance(outcomes[NAMES[0]], ReadAlone)
    assert isinstance(outcomes[NAMES[1]], Read)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"excluded": True}, Reason.ACCESS_DENIED),
        ({"suspended": True}, Reason.MAILBOX_UNAVAILABLE),
    ],
)
def test_a_mailbox_that_may_not_be_read_fails_alone(sandbox, microsoft, account, state, reason):
    sandbox.change_domain("contoso.com", members=[{"email": NAMES[5], **state}])
    reports = {each: Reports() for each in NAMES}
    outcomes = read(microsoft, account, [Member(each, reports[each]) for each in NAMES])
    assert isinstance(failed := outcomes.pop(NAMES[5]), Failed)
    assert failed.reason is reason
    assert all(isinstance(each, Read) for each in outcomes.values())
    assert all(each.answers and not each.failures for each in reports.values())


@pytest.mark.parametrize(
    "address", ["nobody@contoso.com", "someone@elsewhere.example", "a/b?c#d@contoso.com"]
)
def test_an_address_outside_the_tenant_has_no_mailbox(microsoft, account, address):
    outcomes = read(microsoft, account, [address, NAMES[0]])
    assert isinstance(failed := outcomes[address], Failed)
    assert failed.reason in (Reason.MAILBOX_UNAVAILABLE, Reason.NOT_FOUND)
    assert isinstance(outcomes[NAMES[0]], Read)


def test_a_throttled_mailbox_does_not_delay_the_others(sandbox, microsoft, account):
    sandbox.fault(operation=VIEW, email=NAMES[2], status=429, retry_after=60)
    reports = {each: Reports() for each in NAMES}
    began = time.monotonic()
    outcomes = read(microsoft, account, [Member(each, reports[each]) for each in NAMES])
    assert time.monotonic() - began < 2
    assert isinstance(alone := outcomes.pop(NAMES[2]), ReadAlone)
    assert (alone.failed.reason, alone.failed.retry_after) == (Reason.RATE_LIMITED, 60)
    assert all(isinstance(each, Read) for each in outcomes.values())
    assert [type(each) for each in reports[NAMES[2]].failures] == [RateLimited]
    # Other workers wait as long as the mailbox has asked for.
    assert reports[NAMES[2]].pauses == [60]
    assert not any(each.failures for name, each in reports.items() if name != NAMES[2])
    assert sandbox.requests().by_operation[BATCH] == 1


def two_calendars(email: str, **more: Any) -> dict[str, Any]:
    calendars = [{"id": f"main-{email}", "primary": True}, {"id": f"team-{email}"}]
    return {"email": email, "calendars": calendars, **more}


def both(email: str, reporter: Any = None) -> Member:
    return Member(email, reporter, ("primary", f"team-{email}"))


def test_all_calendars_of_members_take_one_batch_and_one_part_for_each_zone(sandbox, microsoft, make):
    of_both = [{**ALL_DAY, "calendarId": each} for each in (f"main-{NAMES[0]}", f"team-{NAMES[0]}")]
    account = make(
        two_calendars(NAMES[0], events=of_both, timeZone="America/New_York"),
        two_calendars(NAMES[1], events=[MEETING]),
    )
    first, second = read_all(microsoft, account, [both(NAMES[0]), both(NAMES[1])], end=END + DAY)
    assert {tuple(each.busy.pairs()) for each in first.values()} == {
        ((START + 5 * DAY // 24, END + 5 * DAY // 24),)
    }
    assert {calendar: each.busy.pairs() for calendar, each in second.items()} == {
        "primary": [(NINE, TEN)],
        f"team-{NAMES[1]}": [],
    }
    assert sandbox.requests().by_operation == {BATCH: 2, VIEW: 4, SETTINGS: 1, "microsoft.token": 1}


def test_a_calendar_that_fails_fails_alone_and_its_mailbox_answers(sandbox, microsoft, make):
    account = make(*(two_calendars(each, events=[MEETING]) for each in NAMES[:3]))
    sandbox.fault(operation=VIEW, calendar_id=f"team-{NAMES[0]}", status=403)
    sandbox.fault(operation=VIEW, calendar_id=f"team-{NAMES[1]}", status=404)
    reports = [Reports() for _ in range(3)]
    members = [both(each, reporter) for each, reporter in zip(NAMES[:3], reports, strict=True)]
    denied, gone, whole = read_all(microsoft, account, members)
    assert isinstance(denied["primary"], Read)
    assert denied[f"team-{NAMES[0]}"].reason is Reason.ACCESS_DENIED
    # It may be the main calendar under an earlier id, which a read of only this member knows.
    assert isinstance(gone, ReadAlone)
    assert all(isinstance(each, Read) for each in whole.values())
    assert [(each.answers, each.failures) for each in reports] == [(1, [])] * 3


def test_a_mailbox_that_does_not_answer_is_one_failure(sandbox, microsoft, make):
    account = make(*(two_calendars(each) for each in NAMES[:2]))
    sandbox.fault(operation=VIEW, email=NAMES[0], status=503)
    reports = Reports()
    outcomes = read_all(microsoft, account, [both(NAMES[0], reports), both(NAMES[1])])
    assert isinstance(outcomes[0], ReadAlone)
    assert (reports.answers, len(reports.failures)) == (0, 1)


def test_a_failing_part_is_reported_for_its_mailbox(sandbox, microsoft, account):
    sandbox.fault(operation=VIEW, email=NAMES[0], status=503)
    reports = Reports()
    outcomes = read(microsoft, account, [Member(NAMES[0], reports), Member(NAMES[1])])
    assert isinstance(outcomes[NAMES[0]], ReadAlone)
    assert isinstance(reports.failures[0], Unavailable)


def test_a_batch_that_is_throttled_fails_for_every_member(sandbox, microsoft, account):
    sandbox.fault(operation=BATCH, status=429, retry_after=60)
    with pytest.raises(RateLimited):
        read(microsoft, account, NAMES)


def test_a_rejected_token_is_replaced_once(sandbox, microsoft, account):
    sandbox.fault(operation=VIEW, status=401, times=2)
    outcomes = read(microsoft, account, NAMES[:2])
    assert all(isinstance(each, Read) for each in outcomes.values())
    assert account.tokens.requests == 2


def test_a_401_for_one_mailbox_is_a_refusal_of_that_mailbox(sandbox, microsoft, account):
    sandbox.fault(operation=VIEW, email=NAMES[1], status=401)
    outcomes = read(microsoft, account, NAMES[:3])
    assert outcomes[NAMES[1]].reason is Reason.ACCESS_DENIED
    assert isinstance(outcomes[NAMES[0]], Read)
    assert isinstance(outcomes[NAMES[2]], Read)
    assert account.tokens.requests == 1


def test_every_page_of_a_mailbox_is_read(sandbox, microsoft, make, monkeypatch):
    monkeypatch.setattr("providers.microsoft.busy.EVENTS_PER_PAGE", 2)
    meetings = [{"start": f"2026-12-03T{n:02}:00:00Z", "end": f"2026-12-03T{n:02}:30:00Z"} for n in range(5)]
    account = make({"email": NAMES[0], "events": meetings}, {"email": NAMES[1]})
    outcomes = read(microsoft, account, NAMES[:2])
    assert len(outcomes[NAMES[0]].busy) == 5
    assert len(outcomes[NAMES[1]].busy) == 0
    assert sandbox.requests().by_operation == {BATCH: 3, VIEW: 4, "microsoft.token": 1}


def test_a_part_without_an_answer_is_not_free(script, scripted_account):
    script.say(200, {"responses": [{"id": "0", "status": 200, "body": {"value": []}}]})
    outcomes = read(Microsoft(microsoft_at(script.url)), scripted_account, NAMES[:2])
    assert isinstance(outcomes[NAMES[0]], Read)
    assert isinstance(outcomes[NAMES[1]], ReadAlone)


def test_a_member_twice_is_one_part(sandbox, microsoft, account):
    assert list(read(microsoft, account, [NAMES[0], NAMES[0]])) == [NAMES[0]]
    assert sandbox.requests().by_operation[VIEW] == 1


def test_a_withdrawn_grant_and_an_expired_secret_are_the_grants(sandbox, microsoft, make):
    account = make()
    sandbox.change_domain("contoso.com", secretExpired=True)
    with pytest.raises(ClientRefused, match="expired"):
        read(microsoft, account, NAMES)
    sandbox.withdraw("contoso.com")
    with pytest.raises(GrantRefused):
        read(microsoft, account, NAMES)


def test_scopes_are_required_before_any_call(sandbox, microsoft, make):
    with pytest.raises(InsufficientScopes):
        read(microsoft, make(scopes=frozenset({"MailboxSettings.Read"})), NAMES)
    assert sandbox.requests().total == 0


# --- one mailbox by its path, with every operation


def test_a_mailbox_of_the_tenant_is_read_and_written_by_its_path(sandbox, microsoft, soon):
    scopes = frozenset({"Calendars.ReadWrite", "MailboxSettings.Read"})
    domain = sandbox.domain("microsoft", "contoso.com", [{"email": NAMES[0], "events": [MEETING, ALL_DAY]}])
    account = account_of(sandbox.url, domain, NAMES[0], delegated=True, scopes=scopes)
    assert microsoft.main_calendar(account, deadline=soon(5)).address == NAMES[0]
    assert [each.primary for each in microsoft.calendars(account, deadline=soon(5))] == [True]
    events = microsoft.events(account, ["primary"], START, END, deadline=soon(5))["primary"]
    assert len(events) == 2
    assert microsoft.busy(account, ["primary"], START, END, deadline=soon(5))["primary"].busy.pairs()
    for each in events:
        microsoft.delete_event(account, "primary", each.id, notify=None, deadline=soon(5))
    assert microsoft.events(account, ["primary"], START, END, deadline=soon(5))["primary"] == ()


def test_a_subscription_names_the_mailbox(script, scripted_account, soon):
    script.say(201, {"id": "s", "expirationDateTime": "2026-12-05T00:00:00Z"})
    account = replace(scripted_account, email=NAMES[0], delegated=True)
    wanted = ChannelRequest("c", Token("t"), "https://almanac.example/push")
    MicrosoftSubscriptions(microsoft_at(script.url)).open(account, "primary", wanted, deadline=soon(5))
    assert b'"resource":"users/m0@contoso.com/events"' in script.requests[0]["body"]


# --- the same outcomes as one mailbox by itself

HOURS = st.integers(-30, 54)
TIMED = st.builds(
    lambda at, long, shows: {"start": START + at * 3600_000, "long": long, "showAs": shows},
    HOURS,
    st.integers(1, 30),
    st.sampled_from(["busy", "free", "tentative", "oof", "workingElsewhere"]),
)
DAYS = st.builds(
    lambda at, long, shows: {"day": at, "days": long, "showAs": shows},
    st.integers(-2, 2),
    st.integers(1, 3),
    st.sampled_from(["busy", "free", "oof"]),
)
ZONES = st.sampled_from(
    ["UTC", "Pacific/Kiritimati", "America/New_York", "Asia/Kolkata", "Pacific/Pago_Pago"]
)


def described(event: dict[str, Any]) -> dict[str, Any]:
    if "day" in event:
        first = date(2026, 12, 3) + timedelta(days=event["day"])
        last = first + timedelta(days=event["days"])
        return {"start": str(first), "end": str(last), "allDay": True, "showAs": event["showAs"]}
    starts = datetime.fromtimestamp(event["start"] / 1000, UTC)
    ends = starts + timedelta(hours=event["long"])
    return {"start": starts.isoformat(), "end": ends.isoformat(), "showAs": event["showAs"]}


EVENTS = st.lists(TIMED | DAYS, max_size=4)


@given(st.lists(st.tuples(ZONES, EVENTS, EVENTS), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_busy_periods_are_equal_in_a_batch_and_alone(sandbox, microsoft, members):
    names = [f"p{n}@contoso.com" for n in range(len(members))]
    domain = sandbox.domain(
        "microsoft",
        "contoso.com",
        [
            two_calendars(
                name,
                timeZone=zone,
                events=[
                    *(described(each) for each in main),
                    *({**described(each), "calendarId": f"team-{name}"} for each in team),
                ],
            )
            for name, (zone, main, team) in zip(names, members, strict=True)
        ],
    )
    together = read_all(microsoft, account_of(sandbox.url, domain), [both(name) for name in names])
    for name, outcomes in zip(names, together, strict=True):
        alone = account_of(sandbox.url, domain, name, delegated=True)
        found = microsoft.busy(alone, list(outcomes), START, END, deadline=time.monotonic() + 5)
        assert len(found) == 2
        assert {each: outcome.busy.pairs() for each, outcome in outcomes.items()} == {
            each: outcome.busy.pairs() for each, outcome in found.items()
        }
