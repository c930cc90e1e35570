"""Microsoft 365 over a socket: parsed answers, and the exception for each failure."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from providers.base import Failed, MainCalendar, Read
from providers.errors import (
    AccessDenied,
    InsufficientScopes,
    ProviderError,
    RateLimited,
    Reason,
    TokenRejected,
    Unavailable,
    Unreadable,
)
from providers.microsoft.client import Microsoft
from providers.microsoft.oauth import MicrosoftEndpoints
from providers.timestamps import DAY, instant
from tests.providers.failures import FAILURES

START = instant("2026-12-03T00:00:00Z")
END = instant("2026-12-04T00:00:00Z")
MEETING = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
NINE, TEN = instant(MEETING["start"]), instant(MEETING["end"])
HOUR = DAY // 24
ALL_DAY = {"start": "2026-12-03", "end": "2026-12-04", "allDay": True}
BATCH, VIEW = "microsoft.batch", "microsoft.calendarView.list"
SETTINGS = "microsoft.mailboxSettings.get"
BUSY_EVENT = {
    edge: {"dateTime": MEETING[edge].rstrip("Z"), "timeZone": "UTC"} for edge in ("start", "end")
} | {"showAs": "busy"}


@pytest.fixture
def alice(sandbox: Any, connect: Any) -> Any:
    return connect(sandbox.account("microsoft", "alice@contoso.com", events=[MEETING]))


@pytest.fixture
def many(sandbox: Any, connect: Any) -> Any:
    calendars = [{"id": "main", "subject": "Calendar", "primary": True}]
    calendars += [{"id": f"cal-{n}", "subject": f"C{n}"} for n in range(44)]
    events = [MEETING | {"calendarId": f"cal-{n}"} for n in range(44)]
    return connect(sandbox.account("microsoft", "many@contoso.com", calendars=calendars, events=events))


def busy(microsoft: Any, account: Any, ids: Any = ("primary",), start=START, end=END, left=5.0):
    return microsoft.busy(account, ids, start, end, deadline=time.monotonic() + left)


def test_a_busy_day_is_read_with_one_http_call(sandbox, microsoft, alice):
    assert busy(microsoft, alice)["primary"].busy.pairs() == [(NINE, TEN)]
    asked = sandbox.requests()
    assert asked.total == 1
    assert asked.by_operation == {BATCH: 1, VIEW: 1, SETTINGS: 1}


def test_periods_are_clipped_and_those_of_the_days_around_are_dropped(sandbox, microsoft, connect):
    events = [
        {"start": "2026-12-02T08:00:00Z", "end": "2026-12-02T09:00:00Z"},
        {"start": "2026-12-02T23:00:00Z", "end": "2026-12-03T01:00:00Z"},
        {"start": "2026-12-04T00:00:00Z", "end": "2026-12-04T01:00:00Z"},
    ]
    account = connect(sandbox.account("microsoft", "edges@contoso.com", events=events))
    assert busy(microsoft, account)["primary"].busy.pairs() == [(START, START + HOUR)]


def test_all_day_event_east_of_utc_is_found_on_the_previous_day(sandbox, microsoft, connect):
    event = {"start": "2026-12-04", "end": "2026-12-05", "allDay": True}
    account = connect(
        sandbox.account("microsoft", "tokyo@contoso.com", time_zone="Asia/Tokyo", events=[event])
    )
    assert busy(microsoft, account)["primary"].busy.pairs() == [(END - 9 * HOUR, END)]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "Pacific/Kiritimati", "Etc/GMT+12"])
def test_all_day_event_of_unknown_zone_is_busy_in_every_zone(sandbox, microsoft, connect, zone):
    scope = "Calendars.ReadBasic offline_access"
    account = connect(
        sandbox.account("microsoft", "narrow@contoso.com", time_zone=zone, scope=scope, events=[ALL_DAY])
    )
    widened = (START - 14 * HOUR, END + 12 * HOUR)
    assert busy(microsoft, account, start=START - DAY, end=END + DAY)["primary"].busy.pairs() == [widened]
    assert SETTINGS not in sandbox.requests().by_operation


def test_settings_that_may_not_be_read_leave_the_zone_unknown(sandbox, microsoft, connect):
    account = connect(sandbox.account("microsoft", "denied@contoso.com", events=[ALL_DAY, MEETING]))
    sandbox.fault(operation=SETTINGS, status=403)
    widened = (START - 14 * HOUR, END + 12 * HOUR)
    assert busy(microsoft, account, start=START - DAY, end=END + DAY)["primary"].busy.pairs() == [widened]
    (calendar,) = microsoft.calendars(account, deadline=time.monotonic() + 5)
    assert calendar.time_zone == "UTC"


@pytest.mark.parametrize(
    ("start", "end", "is_busy"),
    [
        (START - 15 * HOUR, START - 14 * HOUR, False),
        (START - 15 * HOUR, START - 14 * HOUR + 1, True),
        (END + 12 * HOUR - 1, END + 13 * HOUR, True),
        (END + 12 * HOUR, END + 13 * HOUR, False),
    ],
)
def test_all_day_event_of_unknown_zone_is_found_at_both_ends(
    sandbox, microsoft, connect, start, end, is_busy
):
    account = connect(
        sandbox.account("microsoft", "ends@contoso.com", scope="Calendars.ReadBasic", events=[ALL_DAY])
    )
    assert bool(busy(microsoft, account, start=start, end=end)["primary"].busy.pairs()) is is_busy


def test_failed_settings_fail_only_calendars_with_all_day_events(sandbox, microsoft, connect):
    calendars = [
        {"id": "main", "subject": "Calendar", "primary": True},
        {"id": "days", "subject": "Days"},
        {"id": "free-days", "subject": "Free days"},
    ]
    events = [MEETING, ALL_DAY | {"calendarId": "days"}]
    events += [ALL_DAY | {"calendarId": "free-days", "showAs": "free"}]
    account = connect(sandbox.account("microsoft", "odd@contoso.com", calendars=calendars, events=events))
    ids = {each.subject: each.id for each in microsoft.calendars(account, deadline=time.monotonic() + 5)}
    sandbox.fault(operation=SETTINGS, status=500)
    outcomes = busy(microsoft, account, list(ids.values()), left=10)
    assert outcomes[ids["Calendar"]].busy.pairs() == [(NINE, TEN)]
    assert outcomes[ids["Free days"]].busy.pairs() == []
    assert outcomes[ids["Days"]].reason is Reason.PROVIDER_ERROR


def test_a_thousand_events_are_read_over_all_pages(sandbox, microsoft, connect):
    minute = DAY // 1440
    events = [
        {
            "start": f"2026-12-03T{n // 60:02}:{n % 60:02}:00Z",
            "end": f"2026-12-03T{n // 60:02}:{n % 60:02}:30Z",
        }
        for n in range(1200)
    ]
    account = connect(sandbox.account("microsoft", "pages@contoso.com", events=events))
    pairs = busy(microsoft, account)["primary"].busy.pairs()
    assert pairs == [(START + n * minute, START + n * minute + minute // 2) for n in range(1200)]
    assert sandbox.requests().by_operation[VIEW] == 2


def test_forty_calendars_are_read_in_batches_of_twenty(sandbox, microsoft, many):
    found = microsoft.calendars(many, deadline=time.monotonic() + 5)
    ids = [each.id for each in found if not each.primary]
    assert len(ids) == 44
    sandbox.forget_requests()
    outcomes = busy(microsoft, many, ids)
    assert list(outcomes) == ids
    assert all(each.busy.pairs() == [(NINE, TEN)] for each in outcomes.values())
    assert sandbox.requests().by_operation == {BATCH: 3, VIEW: 44, SETTINGS: 1}


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"status": 404, "reason": "ErrorItemNotFound"}, Reason.NOT_FOUND),
        ({"status": 400, "reason": "ErrorInvalidIdMalformed"}, Reason.INVALID_CALENDAR_ID),
        ({"status": 403, "reason": "ErrorAccessDenied"}, Reason.ACCESS_DENIED),
        ({"status": 404, "reason": "MailboxNotEnabledForRESTAPI"}, Reason.MAILBOX_UNAVAILABLE),
        ({"status": 429, "retry_after": 60}, Reason.RATE_LIMITED),
        ({"status": 503}, Reason.PROVIDER_ERROR),
    ],
    ids=str,
)
def test_a_part_that_fails_is_named_and_the_other_parts_count(sandbox, microsoft, many, fault, reason):
    found = microsoft.calendars(many, deadline=time.monotonic() + 5)
    good, bad = (each.id for each in found[1:3])
    sandbox.fault(calendar_id=bad, operation=VIEW, **fault)
    outcomes = busy(microsoft, many, [good, bad], left=10)
    assert outcomes[good].busy.pairs() == [(NINE, TEN)]
    assert outcomes[bad].reason is reason


def test_throttled_batch_part_is_retried_alone_after_retry_after(sandbox, microsoft, many):
    found = microsoft.calendars(many, deadline=time.monotonic() + 5)
    good, bad = (each.id for each in found[1:3])
    sandbox.fault(calendar_id=bad, operation=VIEW, status=429, retry_after=0.4, times=1)
    sandbox.forget_requests()
    began = time.monotonic()
    outcomes = busy(microsoft, many, [good, bad])
    assert all(each.busy.pairs() == [(NINE, TEN)] for each in outcomes.values())
    assert time.monotonic() - began >= 0.4
    assert sandbox.requests().by_operation == {BATCH: 2, VIEW: 3, SETTINGS: 1}


@pytest.mark.parametrize("header", ["Retry-After", "retry-after", "RETRY-AFTER"])
def test_the_wait_of_a_part_is_found_in_any_letter_case(script, scripted_account, header):
    refused = {"id": "0", "status": 429, "headers": {header: "60"}, "body": {"error": {"code": "x"}}}
    settings = {"id": "settings", "status": 200, "body": {"timeZone": "UTC"}}
    script.say(body={"responses": [settings, refused]})
    assert busy(scripted(script), scripted_account, ["c"])["c"].retry_after == 60


class Deaf:
    """A ``Traffic`` that allows no retries."""

    def __init__(self) -> None:
        self.heard: list[type[ProviderError]] = []

    def answered(self) -> None:
        self.heard.clear()

    def failed(self, error: ProviderError, pause: float, *, given_up: bool) -> float | None:
        self.heard.append(type(error))
        return pause if isinstance(error, RateLimited) else None


def test_no_part_of_a_batch_is_retried_once_traffic_forbids_it(sandbox, microsoft, many):
    ids = [each.id for each in microsoft.calendars(many, deadline=time.monotonic() + 5)[1:4]]
    sandbox.fault(operation=VIEW, status=503)
    sandbox.fault(operation=SETTINGS, status=503)
    sandbox.forget_requests()
    reporter = Deaf()
    outcomes = busy(microsoft, replace(many, reporter=reporter), ids)
    assert {each.reason for each in outcomes.values()} == {Reason.PROVIDER_ERROR}
    assert reporter.heard == [Unavailable]
    assert sandbox.requests().by_operation == {BATCH: 1, VIEW: 3, SETTINGS: 1}


def test_throttled_part_of_a_failing_batch_is_retried(sandbox, microsoft, many):
    ids = [each.id for each in microsoft.calendars(many, deadline=time.monotonic() + 5)[1:4]]
    sandbox.fault(operation=VIEW, status=503)
    sandbox.fault(operation=SETTINGS, status=503)
    sandbox.fault(calendar_id=ids[1], operation=VIEW, status=429, retry_after=0.1, times=1)
    sandbox.forget_requests()
    busy(microsoft, replace(many, reporter=Deaf()), ids)
    assert sandbox.requests().by_operation == {BATCH: 2, VIEW: 4, SETTINGS: 1}


def test_parts_answered_with_401_renew_the_token_once(sandbox, microsoft, alice):
    sandbox.fault(operation=VIEW, status=401, times=1)
    sandbox.fault(operation=SETTINGS, status=401, times=1)
    assert busy(microsoft, alice)["primary"].busy.pairs() == [(NINE, TEN)]
    assert alice.tokens.renewals == 1


def test_a_token_that_no_part_accepts_after_a_renewal_is_rejected(sandbox, microsoft, alice):
    sandbox.fault(operation=VIEW, status=401)
    sandbox.fault(operation=SETTINGS, status=401)
    with pytest.raises(TokenRejected):
        busy(microsoft, alice)
    assert alice.tokens.renewals == 1


# The parts of a batch that is HTML are requested one by one.
@pytest.mark.parametrize(
    ("fault", "error"), [each for each in FAILURES if each[1] is not Unreadable], ids=str
)
@pytest.mark.parametrize("call", ["busy", "calendars"])
def test_a_batch_that_fails_is_named_and_never_an_empty_answer(
    sandbox, microsoft, alice, is_fit_for_people, fault, error, call
):
    sandbox.fault(operation=BATCH, **fault)
    deadline = time.monotonic() + 10
    calls = {
        "busy": lambda: microsoft.busy(alice, ["primary"], START, END, deadline=deadline),
        "calendars": lambda: microsoft.calendars(alice, deadline=deadline),
    }
    with pytest.raises(ProviderError) as raised:
        calls[call]()
    assert type(raised.value) is error
    is_fit_for_people(raised.value)


def test_failed_second_batch_fails_only_its_calendars(script, scripted_account):
    ids = [f"c{n}" for n in range(20)]
    empty = {"status": 200, "body": {"value": []}}
    settings = {"id": "settings", "status": 200, "body": {"timeZone": "UTC"}}
    script.say(body={"responses": [settings, *({"id": str(n)} | empty for n in range(19))]})
    script.say(400, {"error": {"code": "BadRequest"}})
    outcomes = busy(scripted(script), scripted_account, ids)
    assert [isinstance(each, Read) for each in outcomes.values()] == [True] * 19 + [False]


def test_insufficient_scopes_are_reported_without_a_call(sandbox, microsoft, connect):
    account = connect(sandbox.account("microsoft", "none@contoso.com", scope="User.Read"))
    with pytest.raises(InsufficientScopes, match=r"calendar\.freebusy\.query.*Calendars\.ReadBasic"):
        busy(microsoft, account)
    assert sandbox.requests().total == 0


@pytest.mark.parametrize(
    "responses",
    [
        [],
        [{"id": "7", "status": 200, "body": {"value": []}}],
        [{"id": "0", "body": {"value": []}}],
        [{"id": "0", "status": 200, "body": None}],
        [{"id": "0", "status": 204, "body": None}],
        [{"id": "0", "status": 200, "body": "<html>"}],
        [{"id": "0", "status": 200, "body": {}}],
        [{"id": "0", "status": 200, "body": {"value": None}}],
        [{"id": "0", "status": 200, "body": {"value": [None]}}],
        [{"id": "0", "status": 200, "body": {"value": [], "error": {"code": "InternalServerError"}}}],
        [{"id": "0", "status": 200, "body": {"value": [{"showAs": "busy"}]}}],
        [{"id": "0", "status": 424, "body": {"error": {"code": "FailedDependency"}}}],
        ["odd"],
    ],
)
def test_a_part_that_is_missing_or_unreadable_fails_its_calendar(script, scripted_account, responses):
    script.say(body={"responses": responses})
    outcome = busy(scripted(script), scripted_account, ["c"], left=10)["c"]
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.PROVIDER_ERROR


@pytest.mark.parametrize("status", [True, 200.0, "200"])
def test_batch_part_without_numeric_status_is_unreadable(script, scripted_account, status):
    script.say(body={"responses": [{"id": "0", "status": status, "body": {"error": {"code": "x"}}}]})
    outcome = busy(scripted(script), scripted_account, ["c"], left=10)["c"]
    assert isinstance(outcome, Failed)
    assert "unreadable" in outcome.message


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/v1.0/me/calendars",
        "http://127.0.0.1:1/me",
        "{url}.evil.example/me",
        "{url}@evil.example/me",
        "/me/calendars",
        7,
    ],
)
def test_page_link_to_another_host_fails_the_calendar(script, scripted_account, link):
    link = link.format(url=script.url) if isinstance(link, str) else link
    page = {"value": [], "@odata.nextLink": link}
    script.say(body={"responses": [{"id": "0", "status": 200, "body": page}]})
    outcome = busy(scripted(script), scripted_account, ["c"])["c"]
    assert isinstance(outcome, Failed)
    assert "leads elsewhere" in outcome.message
    assert len(script.requests) == 1


def test_pages_that_never_end_fail_the_calendar(script, scripted_account):
    page = {"value": [], "@odata.nextLink": f"{script.url}/me/calendars/c/calendarView?$skip=1"}
    script.say(body={"responses": [{"id": "0", "status": 200, "body": page}]})
    outcome = busy(scripted(script), scripted_account, ["c"])["c"]
    assert isinstance(outcome, Failed)
    assert "do not end" in outcome.message


def test_two_calendars_of_one_path_have_the_same_pages(script, scripted_account):
    account = replace(scripted_account, former_calendars={"earlier"})
    page = {"value": [], "@odata.nextLink": f"{script.url}/me/calendar/calendarView?$skip=1"}
    for body in (page, {"value": []}):
        script.say(body={"responses": [{"id": each, "status": 200, "body": body} for each in "01"]})
    found = busy(scripted(script), account, ["primary", "earlier"])
    assert all(isinstance(each, Read) for each in found.values())


def test_a_part_with_two_replies_is_requested_by_itself(script, scripted_account):
    replies = [{"id": "0", "status": 200, "body": {"value": each}} for each in ([BUSY_EVENT], [])]
    script.say(body={"responses": replies})
    script.say(body={"timeZone": "UTC"})
    script.say(body={"value": [BUSY_EVENT]})
    assert busy(scripted(script), scripted_account, ["c"])["c"].busy.pairs() == [(NINE, TEN)]


def test_ids_are_quoted_in_the_path_of_a_part(script, scripted_account):
    script.say(body={"responses": [{"id": "0", "status": 200, "body": {"value": []}}]})
    busy(scripted(script), scripted_account, ["a/b=?c"])
    assert b"/me/calendars/a%2Fb%3D%3Fc/calendarView?" in script.requests[0]["body"]


def test_calendars_have_a_role_a_zone_and_readable_colours(sandbox, microsoft, connect):
    calendars = [
        {"id": "main", "subject": "Calendar", "primary": True},
        {"id": "theirs", "subject": "Theirs", "accessRole": "reader"},
        {"id": "shared", "subject": "Shared", "accessRole": "writer"},
    ]
    account = connect(
        sandbox.account(
            "microsoft", "list@contoso.com", time_zone="Pacific Standard Time", calendars=calendars
        )
    )
    found = {each.subject: each for each in microsoft.calendars(account, deadline=time.monotonic() + 5)}
    assert {name: each.access_role for name, each in found.items()} == {
        "Calendar": "owner",
        "Theirs": "reader",
        "Shared": "writer",
    }
    assert all(each.time_zone == "America/Los_Angeles" and each.selected for each in found.values())
    assert all(each.background_color.startswith("#") for each in found.values())
    assert [name for name, each in found.items() if each.primary] == ["Calendar"]
    assert sandbox.requests().total == 1


def main_of(microsoft: Any, account: Any, left: float = 5.0) -> Any:
    return microsoft.main_calendar(account, deadline=time.monotonic() + left)


def test_main_calendar_and_mailbox_zone_take_one_call(sandbox, microsoft, connect):
    account = connect(sandbox.account("microsoft", "main@contoso.com", time_zone="Eastern Standard Time"))

    main = main_of(microsoft, account)

    assert (main.address, main.time_zone) == ("main@contoso.com", "America/New_York")
    assert sandbox.requests().total == 1


@pytest.mark.parametrize("scope", ["Calendars.ReadBasic", None], ids=["no scope", "refused"])
def test_main_calendar_without_zone_permission_has_no_zone(sandbox, microsoft, connect, scope):
    account = connect(sandbox.account("microsoft", "denied@contoso.com", scope=scope))
    sandbox.fault(operation=SETTINGS, status=403)

    main = main_of(microsoft, account)

    assert (main.address, main.time_zone) == ("denied@contoso.com", "")


def test_main_calendar_with_unreadable_zone_has_no_zone(sandbox, microsoft, connect):
    account = connect(sandbox.account("microsoft", "odd@contoso.com"))
    sandbox.fault(operation=SETTINGS, status=500)

    main = main_of(microsoft, account, left=2)

    assert (main.address, main.time_zone) == ("odd@contoso.com", "")


@pytest.mark.parametrize("zone", ["Customized Time Zone", "tzone://Microsoft/Custom", "", None, 5])
def test_main_calendar_with_custom_or_unknown_zone_has_no_zone(script, scripted_account, zone):
    calendar = {"id": "AAMk", "owner": {"address": "Ada@contoso.com"}}
    parts = [
        {"id": "settings", "status": 200, "body": {"timeZone": zone}},
        {"id": "primary", "status": 200, "body": calendar},
    ]
    script.say(body={"responses": parts})

    assert main_of(scripted(script), scripted_account) == MainCalendar("AAMk", "ada@contoso.com", "")


def test_unreadable_main_calendar_is_an_error(sandbox, microsoft, connect):
    account = connect(sandbox.account("microsoft", "gone@contoso.com"))
    sandbox.fault(operation="microsoft.calendars.get", status=403)

    with pytest.raises(AccessDenied):
        main_of(microsoft, account)


def scripted(script: Any) -> Microsoft:
    return Microsoft(MicrosoftEndpoints(graph=script.url, login=script.url, tenant="common"))
