"""Slots that groups share, over HTTP: requirements, users who cannot be read, and missing users."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from tests.app.answers import error
from tests.app.days import DAY, MORNING, meeting, starts
from tests.app.explaining import thursday

pytestmark = pytest.mark.usefixtures("worker")

HALF = MORNING | {"slotDuration": "30"}


@pytest.fixture
def person(sandbox, new_user):
    """Make a user with a Google account and these meetings."""
    numbers = itertools.count(1)

    def make(*events, name="user", slugs=(), **more):
        account = sandbox.account("google", f"person{next(numbers)}@example.com", events=events, **more)
        return new_user(account, name=name, slugs=slugs)

    return make


@pytest.fixture
def ada(person):
    """Ada is busy from 9 to 10."""
    return person(meeting("09:00", "10:00"), name="ada")


@pytest.fixture
def bruno(person):
    """Bruno is busy from 10:30 to 11."""
    return person(meeting("10:30", "11:00"), name="bruno")


@pytest.fixture
def shared(api):
    """Request the morning slots that groups share."""
    return lambda *groups, caller=api, **query: caller.post(
        "/scheduling", {"participants": list(groups)}, query_string=MORNING | query
    )


@pytest.fixture
def explain(api):
    """Explain a moment for groups."""
    return lambda at, *groups, **query: api.post(
        "/scheduling/explain",
        {"participants": list(groups)},
        query_string=HALF | query | {"at": thursday(at)},
    )


def slots_of(answer):
    """Each start, with the users who are free."""
    found = starts(answer)
    return {
        start: slot["users"] for start, slot in zip(found, answer.json["data"]["availableSlots"], strict=True)
    }


def one(*users, required="all"):
    return {"users": list(users), "required": required}


def test_all_are_required_by_default(api, ada, bruno):
    body = {"participants": [{"users": [ada, bruno]}]}
    answer = api.post("/scheduling", body, query_string=MORNING)
    assert slots_of(answer) == {"11:00": [ada, bruno]}
    assert answer.json["failedUsers"] == []
    assert answer.json["data"]["options"] == {
        "start": "2026-12-03T09:00:00.000Z",
        "end": "2026-12-03T12:00:00.000Z",
        "maxOverlaps": 0,
        "padding": 0,
        "slotDuration": 60,
        "timeZone": "UTC",
        "align": "clock",
    }


def test_group_requiring_one_names_all_free_users_in_order(shared, ada, bruno):
    answer = shared(one(bruno, ada, required=1), slotDuration="30")
    assert slots_of(answer) == {
        "09:00": [bruno],
        "09:30": [bruno],
        "10:00": [bruno, ada],
        "10:30": [ada],
        "11:00": [bruno, ada],
        "11:30": [bruno, ada],
    }


def test_every_group_has_to_have_enough_free_users(shared, person, ada, bruno):
    carla = person(meeting("11:00", "11:30"))
    answer = shared(one(ada, bruno, required=1), one(carla), slotDuration="30")
    assert slots_of(answer) == {
        "09:00": [bruno, carla],
        "09:30": [bruno, carla],
        "10:00": [ada, bruno, carla],
        "10:30": [ada, carla],
        "11:30": [ada, bruno, carla],
    }


def test_a_user_in_two_groups_counts_in_both_and_is_named_once(shared, ada, bruno):
    answer = shared(one(ada, bruno), one(bruno))
    assert slots_of(answer) == {"11:00": [ada, bruno]}


def test_an_organization_is_a_group_of_its_members(shared, person, new_organization, ada):
    slug = new_organization()
    members = [person(meeting("09:00", "11:00"), slugs=[slug]), person(slugs=[slug])]
    answer = shared({"organization": slug, "required": 2}, one(ada))
    assert slots_of(answer) == {"11:00": [*sorted(members), ada]}


def test_starts_are_multiples_of_the_step_on_the_local_clock(shared, person):
    user = person(meeting("09:00", "09:10"))
    found = slots_of(shared(one(user), slotDuration="30", slotStep="20", timeZone="Asia/Kathmandu"))
    # Kathmandu is 5:45 ahead of UTC.
    assert list(found)[:3] == ["09:15", "09:35", "09:55"]


def test_the_windows_of_the_request_hold_for_everybody(api, ada, bruno):
    windows = [{"days": ["thursday"], "start": "09:00", "end": "12:00"}]
    body = {"participants": [one(ada, bruno)], "schedules": windows}
    assert slots_of(api.post("/scheduling", body, query_string=DAY | {"slotDuration": "60"})) == {
        "11:00": [ada, bruno]
    }


def test_limit_keeps_the_earliest_slots(shared, ada, bruno):
    answer = shared(one(ada, bruno, required=1), slotDuration="30", limit="2")
    assert list(slots_of(answer)) == ["09:00", "09:30"]
    assert answer.json["data"]["options"]["limit"] == 2


# --- users who cannot be read


@pytest.fixture
def broken(sandbox, new_user):
    """A user whose grant has ended at the provider."""
    account = sandbox.account("google", "broken@example.com")
    user = new_user(account)
    sandbox.revoke(account.email)
    return user


@pytest.mark.parametrize(
    ("query", "required", "expected"),
    [
        ({}, "all", False),
        ({}, 1, True),
        ({}, 2, False),
        ({"onFailure": "partial"}, "all", True),
        ({"onFailure": "partial"}, 2, False),
    ],
)
def test_unreadable_user_is_not_free(shared, ada, broken, query, required, expected):
    answer = shared(one(ada, broken, required=required), **query)
    assert slots_of(answer) == ({"10:00": [ada], "11:00": [ada]} if expected else {})
    (failed,) = answer.json["failedUsers"]
    assert (failed["userId"], failed["reason"]) == (broken, "authorizationInvalid")


def test_group_without_readable_user_has_no_slots(shared, ada, broken):
    answer = shared(one(broken), one(ada), onFailure="partial")
    assert slots_of(answer) == {}
    assert [failed["userId"] for failed in answer.json["failedUsers"]] == [broken]


@pytest.mark.parametrize(
    ("fault", "named"),
    [
        ({"calendar_id": "primary", "reason": "internalError"}, True),
        ({"provider": "google", "status": 503, "retry_after": 60}, False),
    ],
    ids=["one calendar", "the account"],
)
def test_a_failed_user_names_the_calendars_that_failed_by_themselves(shared, person, sandbox, fault, named):
    user = person()
    sandbox.fault(**fault)

    (failed,) = shared(one(user)).json["failedUsers"]

    assert failed["userId"] == user
    assert bool(failed["failedCalendars"]) == named


def test_the_limit_of_shared_slots_does_not_limit_those_of_each_member(api, new_app, ada, bruno):
    """A start that one member has may be far behind the first one of another."""
    api.client = new_app(max_slots=5).test_client()
    body = {"participants": [one(ada, bruno)]}

    answer = api.post("/scheduling", body, query_string=MORNING | {"limit": "1"})

    assert (answer.status_code, answer.json["code"]) == (400, "rangeTooLarge")
    api.client = new_app(max_slots=12).test_client()
    assert slots_of(api.post("/scheduling", body, query_string=MORNING | {"limit": "1"})) == {
        "11:00": [ada, bruno]
    }


def test_users_that_are_unknown_or_have_no_calendars_are_named(shared, new_user, ada):
    lonely = new_user(name="lonely")
    answer = shared(one(ada, lonely, "nobody", required=1))
    assert slots_of(answer) == {"10:00": [ada], "11:00": [ada]}
    found = [(each["userId"], each["reason"], each["code"]) for each in answer.json["failedUsers"]]
    assert found == [
        (lonely, "notFound", "noConnectedCalendars"),
        ("nobody", "notFound", "userNotFound"),
    ]
    assert slots_of(shared(one(ada, lonely))) == {}


def test_members_who_never_connected_do_not_belong_to_the_group_of_an_organization(
    api, shared, new_user, ada, new_organization
):
    slug, empty = new_organization(), new_organization()
    lonely = new_user()
    assert api.post(f"/organizations/{slug}/members", {"userIds": [ada, lonely]}).status_code == 201
    assert api.post(f"/organizations/{empty}/members", {"userIds": [lonely]}).status_code == 201

    answer = shared({"organization": slug})

    assert slots_of(answer) == {"10:00": [ada], "11:00": [ada]}
    assert answer.json["failedUsers"] == []
    # A group without a user is never free.
    assert slots_of(shared(one(ada), {"organization": empty})) == {}


def test_a_user_who_is_named_twice_counts_once(shared, ada):
    twice = {"users": [ada, ada], "required": "1"}
    assert slots_of(shared(twice)) == {"10:00": [ada], "11:00": [ada]}


def test_a_key_of_an_organization_reaches_its_members_only(new_api, shared, person, new_organization, ada):
    slug = new_organization()
    member = person(slugs=[slug])
    answer = shared(one(member, ada, required=1), caller=new_api(organization=slug))
    assert set(map(tuple, slots_of(answer).values())) == {(member,)}
    assert [(each["userId"], each["message"]) for each in answer.json["failedUsers"]] == [
        (ada, "User not found")
    ]
    other = new_api(organization=new_organization())
    assert error(shared({"organization": slug}, caller=other), 404) == "Organization not found"


# --- bad input


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "participants"),
        ({"participants": []}, "participants"),
        ({"participants": [{"users": ["ada"]}] * 11}, "participants"),
        ({"participants": [{"users": []}]}, "participants.0.users"),
        ({"participants": [{}]}, "participants.0.users"),
        ({"participants": [{"users": ["ada"], "organization": "acme"}]}, "participants.0.users"),
        ({"participants": [{"users": ["ada"]}, {"users": [7]}]}, "participants.1.users.0"),
        ({"participants": [{"users": ["ada", "ada"], "required": 2}]}, "participants.0.required"),
        ({"participants": [{"users": ["ada"], "required": 2}]}, "participants.0.required"),
        ({"participants": [{"users": ["ada"], "required": 0}]}, "participants.0.required"),
        ({"participants": [{"users": ["ada"], "required": True}]}, "participants.0.required"),
        ({"participants": [{"users": ["ada"], "required": "some"}]}, "participants.0.required"),
        ({"participants": [{"users": ["ada"], "required": [1]}]}, "participants.0.required"),
        ({"participants": "ada"}, "participants"),
        (
            {"participants": [{"users": [f"user{n}" for n in range(k, k + 600)]} for k in (0, 600)]},
            "participants",
        ),
    ],
)
def test_a_wrong_group_is_an_error_that_names_the_field(api, body, param):
    answer = api.post("/scheduling", body, query_string=MORNING)
    assert (answer.status_code, answer.json["code"], answer.json["param"]) == (400, "validationFailed", param)
    assert answer.json["error"].startswith(re.sub(r"\.(\d+)", r"[\1]", param))


def test_more_than_an_organization_has_are_too_many(shared, person, new_organization):
    slug = new_organization()
    person(slugs=[slug])
    answer = shared({"organization": slug, "required": 2})
    assert error(answer, 400) == "participants[0].required must be at most 1, the size of the group"


def test_shared_slots_are_on_the_clock(shared):
    assert error(shared(one("ada"), align="start"), 400) == (
        "align must be clock: users share slots only on one grid"
    )


# --- explanations


def test_explanation_names_missing_users_and_reasons(explain, ada, bruno):
    answer = explain("10:40", one(ada, bruno), one(ada, bruno, required=1)).json
    data = answer["data"]
    assert (data["offered"], data["reason"], answer["failedUsers"]) == (False, "notEnoughFree", [])
    assert data["sentence"] == (
        "10:40 on Thursday 3 December 2026 (UTC) is not offered: in the slot from 10:30 to 11:00, 1 "
        "of group 1 is "
        "free, and 2 required."
    )
    assert data["slot"] == {"start": "2026-12-03T10:30:00.000Z", "end": "2026-12-03T11:00:00.000Z"}
    first, second = data["groups"]
    assert (first["required"], first["free"], second["required"], second["free"]) == (2, [ada], 1, [ada])
    (missing,) = first["missing"]
    assert (missing["userId"], missing["at"], missing["reason"]) == (
        bruno,
        "2026-12-03T10:30:00.000Z",
        "busy",
    )
    assert "is busy from 10:30 to 11:00" in missing["sentence"]
    assert len(missing["blockedBy"]) == 1


def test_user_busy_later_in_the_slot_is_explained_at_that_time(explain, ada, person):
    late = person(meeting("10:20", "10:25"))
    (group,) = explain("10:10", one(ada, late)).json["data"]["groups"]
    (missing,) = group["missing"]
    assert (missing["userId"], missing["at"][11:16], missing["reason"]) == (late, "10:20", "busy")


def test_users_without_an_answer_are_missing_with_their_reason(explain, ada, broken, new_user):
    lonely = new_user()
    answer = explain("11:10", one(ada, broken, lonely, "nobody", required=1)).json
    assert answer["data"]["offered"]
    assert answer["data"]["sentence"] == (
        "11:10 on Thursday 3 December 2026 (UTC) is within a slot that is offered, from 11:00 to 11:30."
    )
    (group,) = answer["data"]["groups"]
    assert {each["userId"]: each["reason"] for each in group["missing"]} == {
        broken: "calendarUnread",
        lonely: "noCalendars",
        "nobody": "noCalendars",
    }
    assert group["missing"][-1]["sentence"].endswith("there is no such user.")
    # Nothing is known of them at any time of the slot.
    assert {each["at"] for each in group["missing"]} == {answer["data"]["slot"]["start"]}
    assert len(answer["failedUsers"]) == 3


@pytest.mark.parametrize(
    ("at", "query", "reason"),
    [
        ("08:00", {}, "outsideRange"),
        ("12:00", {}, "outsideRange"),
        ("09:10", {"earliestTimeEachDay": "09:30"}, "outsideWindow"),
        ("09:50", {"slotDuration": "40"}, "offered"),
        ("09:45", {"slotStep": "60"}, "betweenSlots"),
        ("11:50", {"slotDuration": "50"}, "remainder"),
    ],
)
def test_a_moment_that_no_slot_may_hold_has_no_groups(explain, bruno, at, query, reason):
    data = explain(at, one(bruno), **query).json["data"]
    assert data["reason"] == reason
    assert (data["slot"] is None) == (reason != "offered")
    assert len(data["groups"]) == (reason == "offered")


def test_a_slot_beyond_the_limit_is_not_offered(explain, ada, bruno):
    group = one(ada, bruno, required=1)
    assert explain("09:40", group, limit="2").json["data"]["offered"]
    data = explain("10:10", group, limit="2").json["data"]
    assert (data["reason"], data["slot"]["start"][11:16]) == ("beyondLimit", "10:00")
    assert data["sentence"].endswith(
        "it lies in the slot from 10:00 to 10:30, but only the first 2 slots are returned."
    )


def test_overrides_and_notice_hold_for_all_users(api, ada, bruno):
    windows = [{"days": ["thursday"], "start": "09:00", "end": "12:00"}]
    body = {"participants": [one(ada, bruno, required=1)], "schedules": windows}
    open_late = body | {
        "overrides": [{"date": "2026-12-03", "windows": [{"start": "11:00", "end": "12:00"}]}]
    }
    query = DAY | {"slotDuration": "60"}
    assert list(slots_of(api.post("/scheduling", open_late, query_string=query))) == ["11:00"]
    answer = api.post("/scheduling", body, query_string=query | {"minimumNotice": "100000"})
    assert slots_of(answer) == {}
    explained = api.post(
        "/scheduling/explain",
        body,
        query_string=query | {"minimumNotice": "100000", "at": thursday("10:10")},
    )
    assert explained.json["data"]["reason"] == "tooSoon"


@pytest.mark.parametrize("seed", range(3))
def test_a_moment_is_offered_exactly_when_a_shared_slot_holds_it(shared, explain, person, seed):
    chance = random.Random(seed)
    users = []
    for _ in range(4):
        minutes = sorted(chance.sample(range(540, 720, 5), 4))
        times = [f"{minute // 60:02}:{minute % 60:02}" for minute in minutes]
        users.append(person(meeting(*times[:2]), meeting(*times[2:])))
    groups = [one(*users[:3], required=2), one(*users[2:], required=1)]
    query = {"slotDuration": "30", "slotStep": "15", "padding": "5"}
    found = slots_of(shared(*groups, **query))
    for minute in range(535, 725, 10):
        at = f"{minute // 60:02}:{minute % 60:02}"
        holding = [start for start in found if start <= at < _later(start, 30)]
        explained = explain(at, *groups, **query).json["data"]
        assert explained["offered"] == bool(holding), at
        for each, group in zip(explained["groups"], groups, strict=bool(explained["groups"])):
            assert {*each["free"], *(missing["userId"] for missing in each["missing"])} == set(group["users"])
            assert (len(each["free"]) >= each["required"]) or not explained["offered"]


def _later(time, minutes):
    whole = int(time[:2]) * 60 + int(time[3:]) + minutes
    return f"{whole // 60:02}:{whole % 60:02}"
