"""The rules of slots over HTTP: padding on each side, notice, limit, and overrides of dates."""

from __future__ import annotations

import pytest

from app.schemas.timestamps import EPOCH, MILLISECOND, parse
from tests.app.days import DAY, MORNING, meeting, starts, starts_of

pytestmark = pytest.mark.usefixtures("worker")

THURSDAY = {"days": ["thursday"], "start": "9:00", "end": "12:00"}
HOUR = {"slotDuration": "60"}
RULES = ("paddingBefore", "paddingAfter", "minimumNotice", "limit", "overrides")


@pytest.fixture
def overridden(scheduled):
    """Request a user's slots of an hour on Thursday inside weekly schedules, with overrides."""
    return lambda user, overrides, schedules=(THURSDAY,), **more: scheduled(
        user, list(schedules), overrides, **(HOUR | more)
    )


@pytest.fixture
def clock(monkeypatch):
    """Set the time of the next requests: ``clock("2026-12-03T09:00:00Z")``."""

    def set_to(text):
        now = (parse(text).written - EPOCH) // MILLISECOND
        monkeypatch.setattr("app.availability.parameters.now_ms", lambda: now)

    return set_to


def on(date, *windows):
    return {"date": date, "windows": [{"start": start, "end": end} for start, end in windows]}


def test_padding_before_and_after_is_free_around_a_meeting(ada, slots):
    user = ada(meeting("10:00", "10:30"))
    half = {"slotDuration": "30"}
    assert starts(slots(user, **half, paddingBefore="30")) == ["09:00", "10:30", "11:00", "11:30"]
    assert starts(slots(user, **half, paddingAfter="30")) == ["09:00", "09:30", "11:00", "11:30"]


@pytest.mark.parametrize("sides", [{}, {"paddingBefore": "5"}, {"paddingAfter": "5"}])
def test_a_side_without_padding_has_that_of_both(ada, slots, sides):
    user = ada(meeting("10:00", "10:30"))
    both = {"padding": "10", "slotDuration": "10"}
    expected = {"paddingBefore": "10", "paddingAfter": "10"} | sides
    assert starts(slots(user, **both, **sides)) == starts(slots(user, slotDuration="10", **expected))


def test_padding_of_meetings_outside_the_range_applies_inside(ada, slots):
    user = ada(meeting("08:00", "08:50"), meeting("12:10", "13:00"))
    assert starts(slots(user, paddingBefore="30")) == ["09:00", "10:00"]
    assert starts(slots(user, paddingAfter="30")) == ["09:20", "10:20"]


@pytest.mark.parametrize("now", ["2026-12-03T08:30:00Z", "2026-12-03T08:29:00.001Z"])
def test_minimum_notice_counts_from_the_next_full_minute(ada, slots, clock, now):
    user = ada(meeting("09:00", "09:20"))
    clock(now)
    assert starts(slots(user, slotDuration="30", minimumNotice="60")) == [
        *("09:30", "10:00", "10:30", "11:00", "11:30")
    ]
    assert starts(slots(user, slotDuration="60", minimumNotice="67")) == ["09:37", "10:37"]
    on_clock = slots(user, slotDuration="60", minimumNotice="67", align="clock", slotStep="15")
    assert starts(on_clock)[:2] == ["09:45", "10:00"]


def test_no_notice_leaves_out_the_past_and_a_long_one_everything(ada, slots, clock):
    user = ada()
    clock("2026-12-03T10:00:00Z")
    assert starts(slots(user)) == ["09:00", "10:00", "11:00"]
    assert starts(slots(user, minimumNotice="0")) == ["10:00", "11:00"]
    assert starts(slots(user, minimumNotice="120")) == []
    assert starts(slots(user, minimumNotice="527040")) == []


def test_a_limit_keeps_the_earliest_slots_of_each_user(api, ada, slots, new_organization):
    slug = new_organization()
    early, late = ada(slugs=(slug,)), ada(meeting("09:00", "10:00"), slugs=(slug,))
    assert starts(slots(early, limit="2")) == ["09:00", "10:00"]
    answer = api.get(f"/organizations/{slug}/scheduling", **MORNING, limit="1")
    found = {slot["userId"]: slot["start"][11:16] for slot in answer.json["data"]["availableSlots"]}
    assert found == {early: "09:00", late: "10:00"}
    body = {"users": [{"id": early}, {"id": late}]}
    entries = api.post("/users/scheduling", body, query_string=MORNING | {"limit": "1"}).json["data"]
    assert [starts_of(each["availableSlots"]) for each in entries] == [["09:00"], ["10:00"]]


def test_a_limit_counts_for_the_size_of_an_answer(ada, slots):
    year = {"start": "2026-01-01", "end": "2027-01-01", "slotDuration": "10", "slotStep": "1"}
    assert slots(ada(), **year, limit="5").status_code == 200


def test_an_override_replaces_the_weekly_windows_of_its_date(ada, overridden):
    user = ada()
    assert starts(overridden(user, [])) == ["09:00", "10:00", "11:00"]
    assert starts(overridden(user, [on("2026-12-03", ("13:00", "15:00"))])) == ["13:00", "14:00"]
    assert starts(overridden(user, [on("2026-12-03")])) == []


def test_overlapping_windows_of_a_date_are_a_union(ada, overridden):
    windows = ("13:00", "15:00"), ("14:30", "16:00"), ("13:00", "15:00")
    assert starts(overridden(ada(), [on("2026-12-03", *windows)])) == ["13:00", "14:00", "15:00"]


@pytest.mark.parametrize("date", ["2026-12-02", "2026-12-04", "2027-12-03", "1970-01-01"])
def test_an_override_of_a_date_outside_the_range_changes_nothing(ada, overridden, date):
    answer = overridden(ada(), [on(date)])
    assert starts(answer) == ["09:00", "10:00", "11:00"]
    assert answer.json["data"]["options"]["overrides"] == [{"date": date, "windows": []}]


def test_a_closed_date_keeps_the_end_of_the_night_before(ada, overridden):
    night = {"days": ["wednesday", "thursday"], "start": "22:00", "end": "02:00"}
    user = ada()
    assert starts(overridden(user, [], [night])) == ["00:00", "01:00", "22:00", "23:00"]
    assert starts(overridden(user, [on("2026-12-03")], [night])) == ["00:00", "01:00"]
    assert starts(overridden(user, [on("2026-12-02")], [night])) == ["22:00", "23:00"]
    assert starts(overridden(user, [on("2026-12-02", ("23:00", "01:00"))], [night])) == [
        *("00:00", "22:00", "23:00")
    ]


def test_a_date_is_local(ada, overridden):
    # 3 December lasts until 15:00 UTC in Tokyo.
    tokyo = {
        "headers": {"x-timezone": "Asia/Tokyo"},
        "start": "2026-12-03T00:00Z",
        "end": "2026-12-04T00:00Z",
    }
    whole = [{"days": ["thursday", "friday"], "start": "00:00", "end": "00:00"}]
    found = starts(overridden(ada(), [on("2026-12-03")], whole, **tokyo))
    assert (found[0], len(found)) == ("15:00", 9)


def test_the_daily_window_narrows_an_override_too(ada, overridden):
    override = on("2026-12-03", ("8:00", "0:00"))
    found = overridden(ada(), [override], earliestTimeEachDay="10:00", latestTimeEachDay="12:00")
    assert starts(found) == ["10:00", "11:00"]


def test_a_users_own_overrides_go_before_those_of_the_request(api, ada):
    user = ada()
    own = [on("2026-12-03", ("10:00", "11:00"))]
    users = [{"id": user}, {"id": user, "overrides": own}, {"id": user, "overrides": []}]
    body = {"users": users, "overrides": [on("2026-12-03")]}
    entries = api.post("/users/scheduling", body, query_string=MORNING).json["data"]
    # Without schedules, a date without an override is open all day.
    assert [starts_of(each["availableSlots"]) for each in entries] == [
        [],
        ["10:00"],
        ["09:00", "10:00", "11:00"],
    ]
    assert [each["options"]["overrides"] for each in entries] == [[on("2026-12-03")], own, []]


def test_options_repeat_the_rules_that_were_given(ada, overridden, slots):
    user = ada()
    rules = {"paddingBefore": "0", "paddingAfter": "15", "minimumNotice": "30", "limit": "7"}
    found = overridden(user, [on("2026-12-03", ("9:00", "0:00"))], **rules).json["data"]["options"]
    assert {name: found[name] for name in RULES} == {
        "paddingBefore": 0,
        "paddingAfter": 15,
        "minimumNotice": 30,
        "limit": 7,
        "overrides": [on("2026-12-03", ("09:00", "00:00"))],
    }
    assert found["padding"] == 0
    assert not set(RULES) & set(slots(user).json["data"]["options"])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        *(({name: "-1"}, name) for name in RULES[:4]),
        *(({name: "01"}, name) for name in RULES[:4]),
        *(({name: ""}, name) for name in RULES[:4]),
        ({"paddingBefore": "10081"}, "paddingBefore"),
        ({"paddingAfter": "10081"}, "paddingAfter"),
        ({"minimumNotice": "527041"}, "minimumNotice"),
        ({"limit": "0"}, "limit"),
        ({"limit": "1000001"}, "limit"),
    ],
)
def test_a_rule_that_makes_no_sense_is_400(ada, slots, query, names):
    answer = slots(ada(), **query)
    assert (answer.status_code, answer.json["param"]) == (400, names)
    assert answer.json["error"].startswith(names)


DATE = "2026-12-03"


@pytest.mark.parametrize(
    ("overrides", "param"),
    [
        ({}, "overrides"),
        ("2026-12-03", "overrides"),
        ([[]], "overrides.0"),
        ([{"windows": []}], "overrides.0.date"),
        ([{"date": DATE}], "overrides.0.windows"),
        ([{"date": DATE, "windows": None}], "overrides.0.windows"),
        ([on("2026-02-30")], "overrides.0.date"),
        ([on("2026-12-3")], "overrides.0.date"),
        ([on("2026-W49-4")], "overrides.0.date"),
        ([on("2026-12-03T00:00:00Z")], "overrides.0.date"),
        ([on("1969-12-31")], "overrides.0.date"),
        ([on("9999-12-31")], "overrides.0.date"),
        ([on(20261203)], "overrides.0.date"),
        ([on(DATE), on("2026-12-04"), on(DATE)], "overrides.2.date"),
        ([on(DATE, ("9:00", "9:00"))], "overrides.0.windows.0.end"),
        ([on(DATE, ("9:00", "24:00"))], "overrides.0.windows.0.end"),
        ([on(DATE, ("9:00", "10:00"), ("x", "10:00"))], "overrides.0.windows.1.start"),
        ([on(DATE, *[("9:00", "10:00")] * 11)], "overrides.0.windows"),
        ([on(DATE)] * 367, "overrides"),
    ],
)
def test_an_override_that_makes_no_sense_is_400(api, ada, overridden, overrides, param):
    user = ada()
    answer = overridden(user, overrides)
    assert (answer.status_code, answer.json["param"]) == (400, param)
    assert answer.json["error"].startswith("overrides")
    body = {"users": [{"id": user, "overrides": overrides}]}
    several = api.post("/users/scheduling", body, query_string=MORNING)
    assert (several.status_code, several.json["param"]) == (400, f"users.0.{param}")


def test_users_with_too_many_windows_of_overrides_are_refused(api, monkeypatch):
    monkeypatch.setattr("app.availability.parameters.MAX_WINDOW_DAYS", 3)
    users = [{"id": "ada", "overrides": [on(DATE, ("9:00", "10:00"))]}]
    assert api.post("/users/scheduling", {"users": users}, query_string=MORNING).status_code == 200
    answer = api.post("/users/scheduling", {"users": users * 2}, query_string=MORNING)
    assert (answer.status_code, answer.json["code"]) == (400, "rangeTooLarge")
    assert "overrides have 4 dates and windows" in answer.json["error"]
    # Those of the request count once, whatever the number of users.
    shared = {"users": [{"id": "ada"}] * 9, "overrides": users[0]["overrides"]}
    assert api.post("/users/scheduling", shared, query_string=MORNING).status_code == 200


@pytest.mark.parametrize("at", ["09:30", "10:10", "10:50", "11:00", "11:30", "12:30"])
def test_explanations_follow_the_rules(api, ada, clock, at):
    user = ada(meeting("10:00", "10:30"))
    clock("2026-12-03T09:00:00Z")
    rules = {**DAY, **HOUR, "paddingAfter": "30", "minimumNotice": "45", "limit": "1"}
    body = {"schedules": [THURSDAY], "overrides": [on(DATE, ("9:00", "14:00"))]}
    path, query = f"/users/{user}/scheduling", rules | {"slotStep": "30"}
    found = starts(api.post(path, body, query_string=query))
    moment = {"at": f"{DATE}T{at}:00Z"}
    explained = api.post(f"{path}/explain", body, query_string=query | moment).json["data"]
    assert found == ["11:00"]
    assert explained["offered"] == (at in ("11:00", "11:30"))
    assert (
        explained["reason"]
        == {
            "09:30": "tooSoon",
            "10:10": "busy",
            "10:50": "padding",
            "11:00": "offered",
            "11:30": "offered",
            "12:30": "beyondLimit",
        }[at]
    )
    assert explained["options"]["overrides"] == body["overrides"] or at
