"""Busy periods, explanations and slots of several users, and slots of an organization in schedules."""

from __future__ import annotations

import pytest

from tests.app.days import DAY, MORNING, meeting, starts

pytestmark = pytest.mark.usefixtures("worker")

NINE, TEN = meeting("09:00", "10:00"), meeting("10:00", "11:00")
THURSDAY = {"days": ["thursday"], "start": "10:00", "end": "12:00"}


@pytest.fixture
def ada(sandbox, new_user):
    return new_user(sandbox.account("google", "ada@example.com", events=[NINE]))


@pytest.fixture
def bruno(sandbox, new_user):
    return new_user(sandbox.account("microsoft", "bruno@example.com", events=[TEN]))


def clock(entry):
    return [(each["start"][11:16], each["end"][11:16]) for each in entry["busy"]]


def test_busy_periods_have_an_entry_for_each_user(api, ada, bruno, new_user):
    lonely = new_user()
    wanted = [{"id": each} for each in (ada, bruno, lonely, "nobody", "a b", ada)]

    answer = api.post("/users/calendar/busy", {"users": wanted}, query_string=MORNING | {"padding": "30"})

    entries = answer.json["data"]
    assert [each["userId"] for each in entries] == [each["id"] for each in wanted]
    assert [clock(each) for each in entries if each["status"] == "ok"] == [
        [("09:00", "10:00")],
        [("10:00", "11:00")],
        [("09:00", "10:00")],
    ]
    assert [each["code"] for each in entries if each["status"] == "error"] == [
        "noConnectedCalendars",
        "userNotFound",
        "userNotFound",
    ]
    assert answer.headers["Age"]


def test_busy_periods_of_a_user_who_cannot_be_read_are_an_error(api, sandbox, ada, bruno):
    sandbox.fault(provider="microsoft", status=403)

    first, second = api.post(
        "/users/calendar/busy", {"users": [{"id": ada}, {"id": bruno}]}, query_string=MORNING
    ).json["data"]

    assert clock(first) == [("09:00", "10:00")]
    assert (second["status"], second["code"], second["failedCalendars"][0]["code"]) == (
        "error",
        "accessDenied",
        "accessDenied",
    )
    assert "busy" not in second


@pytest.mark.parametrize("only", ["true", "false"])
@pytest.mark.parametrize("path", ["/users/calendar/busy", "/users/scheduling"])
def test_a_user_may_be_named_with_unknown_calendars_and_with_all(api, ada, bruno, path, only):
    """Nothing is cached: one job must not list the calendars of the account and leave out the named one."""
    for user in (ada, bruno):
        wanted = [{"id": user, "calendarIds": ["nobody@cal.example"]}, {"id": user}]

        answer = api.call(
            "POST",
            path,
            headers={"Cache-Control": "no-cache"},
            json={"users": wanted},
            query_string=MORNING | {"primaryOnly": only},
        )

        named, whole = answer.json["data"]
        assert named["status"] == "error", answer.text
        assert [each["calendarId"] for each in named["failedCalendars"]] == ["nobody@cal.example"]
        assert named["reason"] in {"notFound", "invalidCalendarId"}
        assert (whole["status"], whole["failedCalendars"]) == ("ok", [])


def test_a_moment_is_explained_for_each_user(api, ada, bruno):
    body = {"users": [{"id": ada}, {"id": bruno, "schedules": [THURSDAY]}, {"id": "nobody"}]}

    answer = api.post(
        "/users/scheduling/explain", body, query_string=MORNING | {"at": "2026-12-03T09:20:00Z"}
    )

    entries = answer.json["data"]
    assert [each.get("reason") for each in entries] == ["busy", "outsideWindow", None]
    assert [each["status"] for each in entries] == ["ok", "ok", "error"]


def test_slots_of_an_organization_lie_in_schedules(api, ada, bruno, new_organization):
    slug = new_organization()
    api.post(f"/organizations/{slug}/members", {"userIds": [ada, bruno]})
    hour = DAY | {"slotDuration": "60"}

    answer = api.post(f"/organizations/{slug}/scheduling", {"schedules": [THURSDAY]}, query_string=hour)

    slots = [(each["userId"], each["start"][11:16]) for each in answer.json["data"]["availableSlots"]]
    assert sorted(slots) == sorted([(ada, "10:00"), (ada, "11:00"), (bruno, "11:00")])
    closed = {"overrides": [{"date": DAY["start"][:10], "windows": []}]}
    assert (
        api.post(f"/organizations/{slug}/scheduling", closed, query_string=hour).json["data"][
            "availableSlots"
        ]
        == []
    )


def test_all_calendars_count_on_request(api, user_with_two_accounts):
    path = f"/users/{user_with_two_accounts}"
    busy = api.get(f"{path}/calendar/busy", **DAY).json["data"]

    main, everything = (
        api.get(f"{path}/scheduling", **DAY, slotDuration="5", **more)
        for more in ({}, {"primaryOnly": "false"})
    )

    assert set(starts(everything)) < set(starts(main))
    for each in busy:
        assert not set(starts(everything)) & {each["start"][11:16]}
