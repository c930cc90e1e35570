"""Slots over HTTP: padding, overlaps, windows, zones, schedules, and the options in the answer."""

from __future__ import annotations

import pytest

from tests.app.days import DAY, MORNING, PROVIDERS, meeting, starts, starts_of
from tests.conftest import connect

pytestmark = pytest.mark.usefixtures("worker")

THURSDAY = {"days": ["thursday"], "start": "9:00", "end": "12:00"}


@pytest.fixture
def several(api):
    """Request the morning slots of several users."""
    return lambda users, query=None, **body: api.post(
        "/users/scheduling", {"users": users, **body}, query_string=MORNING | (query or {})
    )


def test_slots_have_exact_length_and_remainder_is_dropped(ada, slots):
    answer = slots(ada(meeting("10:30", "11:00")), slotDuration="40")
    assert answer.json["data"]["availableSlots"] == [
        {"start": "2026-12-03T09:00:00.000Z", "end": "2026-12-03T09:40:00.000Z"},
        {"start": "2026-12-03T09:40:00.000Z", "end": "2026-12-03T10:20:00.000Z"},
        {"start": "2026-12-03T11:00:00.000Z", "end": "2026-12-03T11:40:00.000Z"},
    ]


def test_half_an_hour_is_the_default(api, ada):
    user = ada()
    answer = api.get(f"/users/{user}/scheduling", start="2026-12-03T09:00:00Z", end="2026-12-03T10:15:00Z")
    assert starts(answer) == ["09:00", "09:30"]
    assert answer.json["data"]["options"] == {
        "start": "2026-12-03T09:00:00.000Z",
        "end": "2026-12-03T10:15:00.000Z",
        "maxOverlaps": 0,
        "padding": 0,
        "slotDuration": 30,
        "timeZone": "UTC",
    }


def test_padding_widens_busy_periods_on_both_sides(ada, slots):
    user = ada(meeting("10:00", "10:15"))
    assert starts(slots(user, padding="15", slotDuration="15")) == [
        *("09:00", "09:15", "09:30"),
        *("10:30", "10:45", "11:00", "11:15", "11:30", "11:45"),
    ]


def test_a_busy_period_of_no_length_blocks_nothing(ada, slots):
    assert starts(slots(ada(meeting("10:30", "10:30")), padding="30")) == ["09:00", "10:00", "11:00"]


def test_overlaps_count_across_accounts_but_not_within_a_calendar(sandbox, new_user, slots):
    # Two simultaneous meetings in one calendar are one busy period.
    twice = [meeting("09:00", "10:00"), meeting("09:00", "10:00"), meeting("10:00", "11:00")]
    google = sandbox.account("google", "ada@example.com", events=twice)
    microsoft = sandbox.account("microsoft", "ada@contoso.example", events=[meeting("10:00", "11:00")])
    user = new_user(google, microsoft)
    assert starts(slots(user)) == ["11:00"]
    assert starts(slots(user, maxOverlaps="1")) == ["09:00", "11:00"]
    assert starts(slots(user, maxOverlaps="2")) == ["09:00", "10:00", "11:00"]


def test_overlaps_are_counted_across_calendars_of_one_account(sandbox, new_user, slots):
    google = sandbox.account(
        "google",
        "ada@example.com",
        calendars=[{"primary": True}, {"id": "team"}],
        events=[meeting("09:00", "10:30"), meeting("10:00", "11:00", calendarId="team")],
    )
    user = new_user(google)
    both = {"calendarIds": "primary,team", "slotDuration": "30"}
    assert starts(slots(user, **both)) == ["11:00", "11:30"]
    assert starts(slots(user, **both, maxOverlaps="1")) == ["09:00", "09:30", "10:30", "11:00", "11:30"]


def test_only_main_calendars_count_unless_others_are_named(sandbox, new_user, slots):
    accounts = [
        sandbox.account(
            provider,
            f"ada@{provider}.example",
            calendars=[{"primary": True}, {"id": f"side-{provider}"}],
            events=[meeting("09:00", "10:00", calendarId=f"side-{provider}")],
        )
        for provider in PROVIDERS
    ]
    user = new_user(*accounts)
    assert starts(slots(user)) == ["09:00", "10:00", "11:00"]
    for provider in PROVIDERS:
        assert starts(slots(user, calendarIds=f"side-{provider}")) == ["10:00", "11:00"]


def test_a_named_calendar_that_is_unknown_fails_the_request(ada, slots):
    answer = slots(ada(), calendarIds="gone@group.calendar.google.com")
    assert (answer.status_code, answer.json["data"]) == (404, None)


def test_a_provider_filter_leaves_the_other_account_out(sandbox, new_user, slots):
    google = sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")])
    microsoft = sandbox.account("microsoft", "ada@contoso.example", events=[meeting("11:00", "12:00")])
    user = new_user(google, microsoft)
    assert starts(slots(user, provider="google")) == ["10:00", "11:00"]
    assert starts(slots(user, provider=["google", "microsoft"])) == ["10:00"]


def test_the_window_of_each_day_is_in_the_zone_of_the_header(ada, slots):
    answer = slots(
        ada(),
        headers={"x-timezone": "America/New_York"},
        start="2026-12-03",
        end="2026-12-05",
        earliestTimeEachDay="9:00",
        latestTimeEachDay="11:00",
    )
    assert starts(answer) == ["14:00", "15:00", "2026-12-04 14:00", "2026-12-04 15:00"]
    options = answer.json["data"]["options"]
    assert (options["earliestTimeEachDay"], options["latestTimeEachDay"]) == ("09:00", "11:00")
    assert options["start"] == "2026-12-03T05:00:00.000Z"


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (("22:00", "01:00"), ["00:00", "22:00", "23:00"]),
        (("22:00", "00:00"), ["22:00", "23:00"]),
        (("22:00", None), ["22:00", "23:00"]),
        ((None, "02:00"), ["00:00", "01:00"]),
    ],
)
def test_a_window_may_pass_midnight_or_end_there(ada, slots, window, expected):
    edges = zip(("earliestTimeEachDay", "latestTimeEachDay"), window, strict=True)
    given = {name: edge for name, edge in edges if edge is not None}
    answer = slots(ada(), **DAY, **given)
    assert starts(answer) == expected
    options = answer.json["data"]["options"]
    assert {name: options[name] for name in options if name.endswith("EachDay")} == given


def test_slots_may_start_on_the_clock_and_overlap(ada, slots):
    user = ada(meeting("09:00", "09:10"))
    assert starts(slots(user)) == ["09:10", "10:10"]
    clock = slots(user, align="clock")
    assert starts(clock) == ["10:00", "11:00"]
    assert clock.json["data"]["options"]["align"] == "clock"
    step = slots(user, slotStep="30")
    assert starts(step) == ["09:10", "09:40", "10:10", "10:40"]
    assert step.json["data"]["options"]["slotStep"] == 30
    assert starts(slots(user, slotStep="30", align="clock")) == ["09:30", "10:00", "10:30", "11:00"]


def test_weekly_schedules_give_the_union_of_their_windows(ada, scheduled):
    user = ada(meeting("10:00", "10:30"))
    windows = [THURSDAY, {"days": ["friday", "thursday", "thursday"], "start": "11:30", "end": "13:00"}]
    answer = scheduled(user, windows, slotDuration="60")
    assert starts(answer) == ["09:00", "10:30", "11:30"]
    assert "schedules" not in answer.json["data"]["options"]


@pytest.mark.parametrize("schedules", [[], [THURSDAY | {"days": []}], [THURSDAY | {"days": ["monday"]}]])
def test_schedules_without_that_day_mean_no_availability(ada, scheduled, schedules):
    assert starts(scheduled(ada(), schedules)) == []


def test_single_schedule_is_accepted_in_the_header_zone(ada, scheduled):
    answer = scheduled(ada(), THURSDAY, headers={"x-timezone": "Tokyo Standard Time"}, slotDuration="90")
    assert answer.json["data"]["options"]["timeZone"] == "Asia/Tokyo"
    assert starts(answer) == ["00:00", "01:30"]


def test_each_user_has_an_entry_in_the_order_of_the_request(ada, several, new_user):
    first, second, without = ada(meeting("09:00", "10:00")), ada(), new_user()
    answer = several([{"id": each} for each in (second, "nobody", first, without, second)])
    entries = answer.json["data"]
    assert [entry["userId"] for entry in entries] == [second, "nobody", first, without, second]
    assert [entry["status"] for entry in entries] == ["ok", "error", "ok", "error", "ok"]
    assert starts_of(entries[0]["availableSlots"]) == ["09:00", "10:00", "11:00"]
    assert starts_of(entries[2]["availableSlots"]) == ["10:00", "11:00"]
    assert entries[0] == entries[4]
    assert entries[1] == {
        "userId": "nobody",
        "status": "error",
        "error": "User not found",
        "code": "userNotFound",
        "failedCalendars": [],
    }
    assert entries[3]["error"] == "User has no connected calendars"
    assert "availableSlots" not in entries[3]


def test_an_entry_has_options_calendars_and_schedules(ada, several):
    entry = several([{"id": ada()}], {"padding": "5"}, schedules=[THURSDAY]).json["data"][0]
    assert entry["options"]["padding"] == 5
    assert entry["calendarIds"] == ["ada1@example.com"]
    assert entry["schedules"] == [{"days": ["thursday"], "start": "09:00", "end": "12:00"}]
    assert entry["failedCalendars"] == []


def test_schedules_and_calendars_of_a_user_override_the_request(sandbox, new_user, several):
    account = sandbox.account(
        "google",
        "ada@example.com",
        calendars=[{"primary": True}, {"id": "team"}],
        events=[meeting("09:00", "10:00", calendarId="team")],
    )
    user = new_user(account)
    late = {"days": ["thursday"], "start": "10:00", "end": "12:00"}
    entries = several(
        [{"id": user}, {"id": user, "schedules": late}, {"id": user, "calendarIds": ["team"]}],
        schedules=[THURSDAY],
    ).json["data"]
    assert [starts_of(entry["availableSlots"]) for entry in entries] == [
        ["09:00", "10:00", "11:00"],
        ["10:00", "11:00"],
        ["10:00", "11:00"],
    ]
    assert [entry["calendarIds"] for entry in entries] == [["ada@example.com"], ["ada@example.com"], ["team"]]


def test_slots_of_an_organization_are_by_start_and_then_by_user(api, sandbox, new_user, new_organization):
    slug = new_organization()
    google = sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")])
    microsoft = sandbox.account("microsoft", "bob@example.com", events=[meeting("10:00", "11:00")])
    zoe, amy = new_user(google, name="zoe", slugs=(slug,)), new_user(microsoft, name="amy", slugs=(slug,))
    new_user(name="without", slugs=(slug,))
    answer = api.get(f"/organizations/{slug}/scheduling", **MORNING, earliestTimeEachDay="8:00")
    slots = answer.json["data"]["availableSlots"]
    assert [(slot["start"][11:16], slot["userId"]) for slot in slots] == [
        ("09:00", amy),
        ("10:00", zoe),
        ("11:00", amy),
        ("11:00", zoe),
    ]
    assert answer.json["failedUsers"] == []
    assert answer.json["data"]["options"]["earliestTimeEachDay"] == "08:00"
    only = api.get(f"/organizations/{slug}/scheduling", **MORNING, provider="google")
    assert {slot["userId"] for slot in only.json["data"]["availableSlots"]} == {zoe}


def test_an_organization_needs_to_exist_and_to_have_members(api, new_organization):
    empty = api.get(f"/organizations/{new_organization()}/scheduling", **MORNING)
    assert (empty.status_code, empty.json["error"]) == (404, "Organization has no members")
    unknown = api.get("/organizations/nowhere/scheduling", **MORNING)
    assert (unknown.status_code, unknown.json["error"]) == (404, "Organization not found")


def test_an_organization_of_members_without_calendars_has_no_slots(api, new_user, new_organization):
    slug = new_organization()
    new_user(slugs=(slug,))
    answer = api.get(f"/organizations/{slug}/scheduling", **MORNING)
    assert (starts(answer), answer.json["failedUsers"]) == ([], [])


@pytest.mark.parametrize(
    "named", [["side@group.calendar.google.com"], ["AAMk-side"], ["primary", "AAMk-side"]]
)
def test_an_entry_without_accounts_fails_alone_whatever_it_names(api, sandbox, new_user, named):
    connected = new_user(sandbox.account("google", "ada@example.com"))
    lonely = new_user()
    users = [{"id": "nobody-of-that-name", "calendarIds": named}, {"id": lonely, "calendarIds": named}]

    answer = api.post("/users/scheduling", {"users": [*users, {"id": connected}]}, query_string=MORNING)

    assert answer.status_code == 200, answer.json
    assert [(entry["status"], entry.get("error")) for entry in answer.json["data"]] == [
        ("error", "User not found"),
        ("error", "User has no connected calendars"),
        ("ok", None),
    ]


def test_hanging_account_does_not_delay_requests_without_it(api, sandbox, new_user):
    google = sandbox.account(
        "google",
        "ada@example.com",
        calendars=[{"subject": "Main", "primary": True}, {"id": "side@group.calendar.google.com"}],
        events=[meeting("09:00", "10:00")],
    )
    user = new_user(google, sandbox.account("microsoft", "ada@contoso.example"))
    sandbox.fault(provider="microsoft", latency_ms=60_000)
    sandbox.fault(provider="google", latency_ms=300)

    answer = api.get(f"/users/{user}/scheduling", **MORNING, calendarIds="side@group.calendar.google.com")

    assert answer.status_code == 200, answer.json


def test_an_address_that_the_caller_gave_decides_nothing(api, sandbox, new_user):
    """Only the provider knows whether an address is a calendar."""
    account = sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")])
    user = new_user()
    connect(api, user, account, email="somebody-else@example.com")

    answer = api.get(f"/users/{user}/scheduling", **MORNING, calendarIds="somebody-else@example.com")

    assert answer.status_code == 404, answer.json


# --- the daily window together with weekly schedules


def test_a_daily_window_and_weekly_schedules_both_hold(ada, scheduled, explain_in_schedules):
    user = ada()
    late = {"earliestTimeEachDay": "10:00", "latestTimeEachDay": "17:00", "slotDuration": "60"}
    assert starts(scheduled(user, [THURSDAY], slotDuration="60")) == ["09:00", "10:00", "11:00"]
    assert starts(scheduled(user, [THURSDAY], **late)) == ["10:00", "11:00"]
    assert scheduled(user, [THURSDAY], **late).json["data"]["options"]["earliestTimeEachDay"] == "10:00"
    explained = explain_in_schedules(user, [THURSDAY], at="2026-12-03T09:15", **late).json["data"]
    assert explained["reason"] == "outsideWindow"
    assert "the part of the weekly schedule in the daily window" in explained["sentence"]


def test_a_daily_window_holds_for_each_of_several_users(api, ada):
    people = [ada(), ada()]
    body = {"users": [{"id": people[0], "schedules": [THURSDAY]}, {"id": people[1]}]}
    query = MORNING | {"latestTimeEachDay": "11:00"}
    entries = api.post("/users/scheduling", body, query_string=query).json["data"]
    assert [[slot["start"][11:16] for slot in each["availableSlots"]] for each in entries] == [
        ["09:00", "10:00"],
        ["09:00", "10:00"],
    ]


@pytest.fixture
def explain_in_schedules(api):
    """Explain a moment inside weekly schedules."""
    return lambda user, schedules, **query: api.post(
        f"/users/{user}/scheduling/explain", {"schedules": schedules}, query_string=MORNING | query
    )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_main_calendar_that_is_named_twice_counts_once(api, sandbox, new_user, provider):
    """By its alias and by its id, in the first request of the user."""
    account = sandbox.account(provider, "ada@example.com", events=[meeting("09:00", "10:00")])
    user = new_user()
    connect(api, user, account)
    twice = ["primary", account.main_calendar_id]

    answer = api.get(f"/users/{user}/scheduling", **MORNING, calendarIds=twice, maxOverlaps=1)

    assert starts(answer) == ["09:00", "10:00", "11:00"]
