"""Availability of an organization whose members are read by grants, over HTTP and with a real worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests import people
from tests.app.days import DAY, MORNING, meeting, periods
from tests.providers.members import show_to_reader

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

FREE_BUSY, BATCH = "google.freebusy.query", "microsoft.batch"
VIEW, LIST = "microsoft.calendarView.list", "google.calendarList.list"
DOMAINS = {"google": "acme.example", "microsoft": "contoso.example"}


def member(email: str, *, teams: bool) -> dict[str, Any]:
    """A member with a meeting in each calendar."""
    if not teams:
        return {"email": email, "events": [meeting("09:00", "10:00")]}
    return {
        "email": email,
        "calendars": [{"id": email, "primary": True}, {"id": f"team-{email}"}],
        "events": [meeting("09:00", "10:00"), {**meeting("13:00", "14:00"), "calendarId": f"team-{email}"}],
    }


@pytest.fixture
def organization(api: Any, sandbox: Any, new_organization: Any, unique: Any) -> Callable[..., str]:
    """Make an organization with grants, and this many members of each; returns its slug.

    With ``teams``, each member has a second calendar, which the account that reads for a domain can see.
    """

    def make(*, teams: bool = False, **counts: int) -> str:
        slug = new_organization()
        for provider, count in counts.items():
            name = DOMAINS[provider]
            emails = [f"m{n}@{name}" for n in range(count)]
            described = [member(each, teams=teams) for each in emails]
            subject = {"subject": f"reader@{name}"} if teams and provider == "google" else {}
            domain = sandbox.domain(provider, name, described, **subject)
            for each in emails if teams and provider == "google" else ():
                show_to_reader(sandbox, domain, each, f"team-{each}")
            grant = api.put(f"/organizations/{slug}/grants/{provider}", people.grant_of(domain))
            assert grant.status_code == 200
            imported = [{"userId": f"{slug}-m{n}-{provider}", "email": each} for n, each in enumerate(emails)]
            answer = api.post(f"/organizations/{slug}/grants/{provider}/members", {"members": imported})
            assert answer.status_code == 200, answer.text
        return slug

    return make


@pytest.fixture
def calls(sandbox: Any) -> Callable[[], dict[str, int]]:
    """The calls since the last time, by operation."""
    before: dict[str, int] = {}

    def since(*operations: str) -> dict[str, int]:
        now = sandbox.requests().by_operation
        found = {each: now.get(each, 0) - before.get(each, 0) for each in operations}
        before.update(now)
        return found

    return since


def slots(api: Any, slug: str) -> Any:
    answer = api.get(f"/organizations/{slug}/scheduling", **MORNING)
    assert answer.status_code == 200, answer.text
    return answer.json


def failed(answer: Any) -> dict[str, str]:
    """The reason of each failed member."""
    return {each["userId"].partition("-m")[2]: each["reason"] for each in answer["failedUsers"]}


def test_organization_is_read_in_bundles_and_then_from_cache(api, organization, calls):
    slug = organization(google=60, microsoft=25)
    calls()
    answer = slots(api, slug)
    assert answer["failedUsers"] == []
    assert calls(FREE_BUSY, BATCH) == {FREE_BUSY: 2, BATCH: 2}
    again = slots(api, slug)
    assert again["data"] == answer["data"]
    assert calls(FREE_BUSY, BATCH) == {FREE_BUSY: 0, BATCH: 0}


def test_personal_and_delegated_members_are_read_in_one_request(api, sandbox, organization, new_user, calls):
    slug = organization(google=3, microsoft=3)
    account = sandbox.account("google", "pia@personal.example", events=[meeting("11:00", "12:00")])
    new_user(account, slugs=(slug,))
    calls()
    answer = slots(api, slug)
    assert answer["failedUsers"] == []
    assert calls(FREE_BUSY, BATCH) == {FREE_BUSY: 2, BATCH: 1}


def test_a_calendar_that_only_the_account_of_the_grant_may_see_is_not_read_for_a_member(api, organization):
    slug = organization(teams=True, google=2)
    named = {"m0": "team-m1@acme.example", "m1": "team-m0@acme.example"}
    users = [{"id": f"{slug}-{user}-google", "calendarIds": [each]} for user, each in named.items()]
    # It lists the calendars, and so identifies the accounts.
    assert api.get(f"/organizations/{slug}/calendar/busy", **DAY).status_code == 200

    found = api.post("/users/scheduling", {"users": users}, query_string=MORNING).json["data"]

    assert [(each["status"], each.get("reason")) for each in found] == [("error", "notFound")] * 2


def test_after_a_write_the_member_is_read_again(api, organization):
    slug = organization(google=2, microsoft=2)
    assert slots(api, slug)["failedUsers"] == []
    for provider in DOMAINS:
        user = f"{slug}-m0-{provider}"
        event = {
            "subject": "New",
            "start": "2026-12-03T14:00:00Z",
            "end": "2026-12-03T15:00:00Z",
        }
        made = api.post(f"/users/{user}/calendar/events/{provider}/primary", event)
        assert made.status_code in (200, 201), made.text
        read = api.get(f"/users/{user}/calendar/busy", **DAY).json["data"]
        assert {"start": "2026-12-03T14:00:00.000Z", "end": "2026-12-03T15:00:00.000Z"}.items() <= max(
            read, key=lambda each: each["start"]
        ).items()


def test_a_withdrawn_grant_fails_its_members_and_no_others(api, sandbox, organization, new_user):
    slug = organization(google=3, microsoft=3)
    sandbox.withdraw("acme.example")
    for _ in range(2):
        answer = slots(api, slug)
        assert failed(answer) == {f"{n}-google": "authorizationInvalid" for n in range(3)}
    # No member can do anything about it.
    messages = {each["message"] for each in answer["failedUsers"]}
    assert messages == {"The organization's grant has ended; its administrator has to enter it again"}
    listed = api.get(f"/organizations/{slug}/grants").json["data"]
    assert {each["provider"]: each["alive"] for each in listed} == {"google": False, "microsoft": True}


@pytest.mark.parametrize("route", ["organization", "user"])
def test_working_hours_of_members_count_in_the_zone_of_their_calendars(api, sandbox, new_organization, route):
    slug = new_organization()
    for provider, name in DOMAINS.items():
        members = [{"email": f"zoned@{name}", "timeZone": "America/New_York"}]
        grant = people.grant_of(sandbox.domain(provider, name, members))
        assert api.put(f"/organizations/{slug}/grants/{provider}", grant).status_code == 200
        user = f"{slug}-{provider}"
        added = {"members": [{"userId": user, "email": f"zoned@{name}"}]}
        assert api.post(f"/organizations/{slug}/grants/{provider}/members", added).status_code == 200
        weekdays = ["monday", "tuesday", "wednesday", "thursday", "friday"]
        hours = {"schedules": [{"days": weekdays, "start": "09:00", "end": "10:00"}]}
        assert api.put(f"/users/{user}/availability", hours).status_code == 200

    paths = {
        "organization": [f"/organizations/{slug}/scheduling"],
        "user": [f"/users/{slug}-{provider}/scheduling" for provider in DOMAINS],
    }
    day = {"start": "2026-12-07", "end": "2026-12-08", "slotDuration": 60}
    found = [api.get(path, **day).json["data"]["availableSlots"] for path in paths[route]]

    starts = [slot["start"] for slots in found for slot in slots]
    assert starts == ["2026-12-07T14:00:00.000Z"] * 2


# --- all calendars of the members

BOTH_MEETINGS = [("09:00", "10:00"), ("13:00", "14:00")]


def busy(api: Any, slug: str) -> Any:
    return api.get(f"/organizations/{slug}/calendar/busy", **DAY, primaryOnly="false")


def expire(stores: Any, *prefixes: str) -> None:
    """Let what is cached under these keys expire."""
    stores.redis.delete(*(key for each in prefixes for key in stores.redis.keys(f"{each}:*")))


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("members", "known"),
    [(4, {LIST: 0, FREE_BUSY: 1, BATCH: 1}), (60, {LIST: 0, FREE_BUSY: 3, BATCH: 6})],
)
def test_all_calendars_are_read_in_bundles(api, new_app, organization, calls, stores, members, known):
    """Each calendar list takes a call; the periods of all of them take as many as there are bundles."""
    # A busy machine takes longer for 120 lists than other tests wait.
    api = replace(api, client=new_app(fanout_deadline_seconds=30).test_client())
    slug = organization(google=members, microsoft=members, teams=True)
    unknown = known | {LIST: members, BATCH: members + known[BATCH]}
    calls(*unknown)
    for expected in (unknown, dict.fromkeys(unknown, 0)):
        answer = busy(api, slug)
        assert (periods(answer), answer.json["failedUsers"]) == (BOTH_MEETINGS, [])
        assert calls(*unknown) == expected
    for expired, expected in ((["busy"], known), (["busy", "calendars"], unknown)):
        expire(stores, *expired)
        answer = busy(api, slug)
        assert (periods(answer), answer.json["failedUsers"]) == (BOTH_MEETINGS, [])
        assert calls(*unknown) == expected


@pytest.mark.parametrize("headers", [None, {"Cache-Control": "no-cache"}])
def test_slots_by_all_calendars_take_the_same_calls(api, organization, calls, headers):
    slug = organization(google=4, microsoft=4, teams=True)
    calls(LIST, FREE_BUSY, BATCH)
    query = {"start": "2026-12-03T12:00:00Z", "end": "2026-12-03T15:00:00Z", "slotDuration": "60"}
    answer = api.get(f"/organizations/{slug}/scheduling", **query, primaryOnly="false", headers=headers).json
    assert answer["failedUsers"] == []
    starts = sorted(each["start"][11:16] for each in answer["data"]["availableSlots"])
    assert starts == ["12:00"] * 8 + ["14:00"] * 8
    assert calls(LIST, FREE_BUSY, BATCH) == {LIST: 4, FREE_BUSY: 1, BATCH: 5}


def test_a_calendar_or_member_that_cannot_be_read_fails_alone(api, sandbox, organization, calls):
    slug = organization(google=6, microsoft=6, teams=True)
    sandbox.change_domain("acme.example", members=[{"email": "m1@acme.example", "suspended": True}])
    sandbox.change_domain("contoso.example", members=[{"email": "m2@contoso.example", "excluded": True}])
    sandbox.fault(calendar_id="team-m3@acme.example", reason="internalError")
    sandbox.fault(operation=VIEW, calendar_id="team-m4@contoso.example", status=403)
    calls(FREE_BUSY, BATCH)
    answer = busy(api, slug)
    assert periods(answer) == BOTH_MEETINGS
    assert failed(answer.json) == {
        "1-google": "authorizationInvalid",
        "3-google": "providerError",
        "2-microsoft": "accessDenied",
        "4-microsoft": "accessDenied",
    }
    assert calls(FREE_BUSY)[FREE_BUSY] == 1


def test_a_calendar_that_only_its_member_can_see_is_read_by_the_member(api, sandbox, organization, calls):
    slug = organization(google=4, teams=True)
    private = sandbox.account("google", "m9@acme.example", calendars=[{"primary": True}, {"id": "private"}])
    imported = {"members": [{"userId": f"{slug}-m9-google", "email": private.email}]}
    assert api.post(f"/organizations/{slug}/grants/google/members", imported).status_code == 200
    calls(FREE_BUSY)
    answer = busy(api, slug)
    assert (periods(answer), answer.json["failedUsers"]) == (BOTH_MEETINGS, [])
    assert calls(FREE_BUSY) == {FREE_BUSY: 2}


def test_a_calendar_that_is_named_is_not_read_by_the_account_of_the_grant(api, organization, calls):
    """That account may see calendars that the member may not."""
    slug = organization(google=2, teams=True)
    users = [{"id": f"{slug}-m{n}-google", "calendarIds": ["team-m0@acme.example"]} for n in range(2)]
    answer = api.post("/users/calendar/busy", {"users": users}, query_string=DAY)
    assert [each.get("reason") for each in answer.json["data"]] == [None, "notFound"], answer.text
    assert calls(FREE_BUSY) == {FREE_BUSY: 2}


def test_a_delegated_member_without_a_main_calendar_is_read(api, sandbox, organization):
    slug = organization(google=2, teams=True)
    for n in range(2):
        sandbox.account("google", f"m{n}@acme.example", calendars=[])
    answer = busy(api, slug)
    assert (periods(answer), answer.json["failedUsers"]) == ([], [])
