"""Explanations over HTTP: verdicts, facts, and calendars that cannot be read, of which nothing is free."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.availability.explanation_text import MAX_NAMED
from app.schemas.explain import REASONS
from tests.app.answers import error
from tests.app.days import MORNING, PROVIDERS, meeting
from tests.app.explaining import BUSY, FACTS, closed, explained, facts_of, span, thursday
from tests.app.two_accounts import SHOWN
from tests.conftest import connect

pytestmark = pytest.mark.usefixtures("worker")

ROOT = Path(__file__).parents[3]
WEEKLY = [{"days": ["thursday"], "start": "10:00", "end": "11:00"}]


HALF = {"slotDuration": "30"}
# The sentences are those of test_explanation_text.
VERDICTS = [
    ("09:10", HALF, "offered"),
    ("08:59", HALF, "outsideRange"),
    ("09:20", HALF | {"earliestTimeEachDay": "09:30"}, "outsideWindow"),
    ("10:10", HALF, "busy"),
    ("10:50", HALF | {"padding": "10"}, "padding"),
    ("10:20", HALF | {"maxOverlaps": "1"}, "tooManyOverlaps"),
    ("09:50", {"slotDuration": "61"}, "tooShort"),
    ("09:50", {"slotDuration": "40"}, "remainder"),
    ("10:50", HALF | {"align": "clock"}, "betweenSlots"),
]


@pytest.mark.parametrize(("at", "query", "reason"), VERDICTS)
def test_each_verdict_of_a_user_and_of_a_member(
    new_user_with_two_accounts, new_organization, explain, explain_members, at, query, reason
):
    slug = new_organization()
    user = new_user_with_two_accounts(slugs=(slug,))

    found = explained(explain(user, at, **query))
    assert (found["reason"], found["offered"]) == (reason, reason == "offered")
    said = "is within a slot that is offered, " if found["offered"] else "is not offered: "
    assert found["sentence"].startswith(f"{at} on Thursday 3 December 2026 (UTC) {said}")
    assert found["at"] == f"2026-12-03T{at}:00.000Z"

    whole = explained(explain_members(slug, at, **query))
    (member,) = whole["members"]
    assert (member["userId"], member["reason"], member["offered"]) == (user, reason, reason == "offered")
    assert member["sentence"] == found["sentence"]
    assert whole["offeredBy"] == ([user] if reason == "offered" else [])


def test_the_facts_of_a_moment_that_is_offered(ada, explain):
    answer = explain(ada(meeting("11:00", "12:00")), "10:20", earliestTimeEachDay="9:00", padding="5")
    found = explained(answer)
    assert facts_of(found) == {
        "slot": None,
        "free": ("09:00", "10:55"),
        "window": ("09:00", "12:00"),
        "nextSlot": None,
        "previousSlot": ("09:00", "10:00"),
    }
    found = explained(explain(ada(meeting("11:00", "12:00")), "10:00", slotStep="30"))
    assert facts_of(found) == {
        "slot": ("09:30", "10:30"),
        "free": ("09:00", "11:00"),
        "window": ("09:00", "12:00"),
        "nextSlot": None,
        "previousSlot": ("09:30", "10:30"),
    }
    assert found["startsSlot"]
    assert found["options"] == {
        "start": "2026-12-03T09:00:00.000Z",
        "end": "2026-12-03T12:00:00.000Z",
        "maxOverlaps": 0,
        "padding": 0,
        "slotDuration": 60,
        "timeZone": "UTC",
        "slotStep": 30,
    }
    assert (answer.json["failedCalendars"], answer.headers["Age"]) == ([], "0")


def test_the_periods_that_cover_a_moment_come_with_their_calendars(api, new_user_with_two_accounts, explain):
    user = new_user_with_two_accounts()
    found = explained(explain(user, "10:35", padding="10"))
    ids = {each["provider"]: each["id"] for each in api.get(f"/users/{user}/connections").json["data"]}
    assert found["reason"] == "busy"
    assert found["blockedBy"] == [
        {
            "calendarId": calendar,
            "provider": provider,
            "connectionId": ids[provider],
            "email": email,
            "start": thursday(start).replace("Z", ".000Z"),
            "end": thursday(end).replace("Z", ".000Z"),
            "paddedStart": thursday(padded_start).replace("Z", ".000Z"),
            "paddedEnd": thursday(padded_end).replace("Z", ".000Z"),
        }
        for calendar, provider, email, (start, end), (padded_start, padded_end) in (
            ("ada@example.com", "google", "ada@example.com", BUSY[0], ("09:50", "10:40")),
            (SHOWN["microsoft"], "microsoft", "ada@contoso.example", BUSY[1], ("10:05", "10:55")),
        )
    ]


@pytest.mark.parametrize(
    "query",
    [
        {"slotDuration": "40"},
        {"slotDuration": "25", "padding": "5"},
        {"slotDuration": "20", "maxOverlaps": "1", "slotStep": "35"},
        {"slotDuration": "30", "align": "clock", "earliestTimeEachDay": "9:10", "latestTimeEachDay": "11:40"},
    ],
)
def test_moment_is_offered_exactly_if_a_slot_contains_it(api, new_user_with_two_accounts, explain, query):
    user = new_user_with_two_accounts()
    answer = explained(api.get(f"/users/{user}/scheduling", **(MORNING | query)))
    slots = [span(slot) for slot in answer["availableSlots"]]
    assert slots
    for minute in range(8 * 60 + 55, 12 * 60 + 10, 5):
        at = f"{minute // 60:02}:{minute % 60:02}"
        found = explained(explain(user, at, **query))
        held = [(start, end) for start, end in slots if start <= at < end]
        assert found["offered"] == bool(held), at
        assert span(found["slot"]) == (held[0] if held else None)


def test_a_local_moment_is_in_the_zone_of_the_header(ada, explain):
    berlin = {"x-timezone": "Europe/Berlin"}
    user = ada(meeting("09:15", "10:00"))
    found = explained(explain(user, "09:00", headers=berlin, at="2026-12-03T10:30"))
    assert found["at"] == "2026-12-03T09:30:00.000Z"
    assert found["sentence"].startswith(
        "10:30 on Thursday 3 December 2026 (Europe/Berlin) is not offered: ada"
    )
    assert found["sentence"].endswith("@example.com is busy from 10:15 to 11:00.")


def test_weekly_schedules_are_explained_by_post(api, ada):
    user = ada()
    path = f"/users/{user}/scheduling/explain"

    def reason(at, schedules):
        query = MORNING | {"at": thursday(at)}
        return explained(api.post(path, {"schedules": schedules}, query_string=query))

    found = reason("09:30", WEEKLY)
    assert (found["reason"], found["sentence"].partition(": ")[2]) == (
        "outsideWindow",
        "it lies outside the weekly schedule, which opens at 10:00.",
    )
    assert reason("10:30", WEEKLY)["slot"] == {
        "start": "2026-12-03T10:00:00.000Z",
        "end": "2026-12-03T11:00:00.000Z",
    }
    assert span(reason("10:30", WEEKLY[0])["window"]) == ("10:00", "11:00")
    assert reason("10:30", [])["reason"] == "outsideWindow"
    refused = api.post(path, {}, query_string=MORNING | {"at": thursday("09:30")})
    assert error(refused, 400) == "schedules is required"


def test_the_calendars_named_are_those_that_count(sandbox, new_user, explain):
    account = sandbox.account(
        "microsoft",
        "ada@contoso.example",
        calendars=[{"primary": True}, {"id": "AAMk-side"}],
        events=[meeting("10:00", "11:00", calendarId="AAMk-side")],
    )
    user = new_user(account)
    assert explained(explain(user, "10:30"))["offered"]
    found = explained(explain(user, "10:30", calendarIds="primary,AAMk-side"))
    assert found["sentence"].endswith(
        "calendar AAMk-side of ada@contoso.example is busy from 10:00 to 11:00."
    )
    assert [each["calendarId"] for each in found["blockedBy"]] == ["AAMk-side"]


# --- organizations


def test_every_member_is_listed(sandbox, ada, new_user, new_organization, explain_members):
    slug = new_organization()
    free, busy = ada(slugs=(slug,)), ada(meeting("09:00", "10:00"), slugs=(slug,))
    ill_account = sandbox.account("microsoft", "ill@contoso.example")
    ill, without = new_user(ill_account, slugs=(slug,)), new_user(slugs=(slug,))
    sandbox.fault(provider="microsoft", status=503, retry_after=60)

    answer = explain_members(slug, "09:20")

    found = explained(answer)
    reasons = {free: "offered", busy: "busy", ill: "calendarUnread", without: "noCalendars"}
    members = {member["userId"]: member for member in found["members"]}
    assert list(members) == sorted(reasons)
    assert {user: member["reason"] for user, member in members.items()} == reasons
    assert found["offeredBy"] == [free]
    assert span(members[free]["slot"]) == ("09:00", "10:00")
    closed(members[ill])
    assert facts_of(members[without]) == dict.fromkeys(FACTS)
    assert members[without]["sentence"].endswith("no calendar is connected, so nothing is offered.")
    assert [each["customId"] for each in answer.json["failedUsers"]] == [ill]
    assert found["options"]["slotDuration"] == 60


def test_a_provider_filter_leaves_members_without_calendars(
    new_user_with_two_accounts, new_organization, ada, explain_members
):
    slug = new_organization()
    two, one = new_user_with_two_accounts(slugs=(slug,)), ada(slugs=(slug,))
    found = explained(explain_members(slug, "10:10", provider="microsoft", slotDuration="15"))
    assert [(each["userId"], each["reason"]) for each in found["members"]] == sorted(
        [(two, "offered"), (one, "noCalendars")]
    )


def test_all_members_are_read_as_for_slots(api, sandbox, ada, new_organization, explain_members):
    """The slots were requested before: the explanation needs no call to a provider."""
    slug = new_organization()
    users = sorted(ada(meeting("09:00", "09:30"), slugs=(slug,)) for _ in range(3))
    slots = api.get(f"/organizations/{slug}/scheduling", **MORNING)
    assert slots.status_code == 200
    sandbox.forget_requests()
    found = explained(explain_members(slug, "09:45"))
    assert found["offeredBy"] == users
    assert sandbox.requests().total == 0


# --- access


def test_the_errors_are_those_of_the_slots(api, new_user, new_organization, explain, explain_members):
    assert error(explain("nobody", "09:00"), 404) == "User not found"
    assert error(explain(new_user(), "09:00"), 404) == "User has no connected calendars"
    assert error(explain_members("nowhere", "09:00"), 404) == "Organization not found"
    assert error(explain_members(new_organization(), "09:00"), 404) == "Organization has no members"
    assert error(explain("nobody", "09:00", at="soon"), 400).startswith("at must be an ISO 8601 date")
    assert error(api.get("/users/nobody/scheduling/explain", **MORNING), 400) == "at is required"
    year = {"start": "2026-01-01", "end": "2027-01-01", "slotDuration": "1", "slotStep": "1"}
    assert explain("nobody", "09:00", **year).status_code == 404
    long = {"start": "2026-01-01", "end": "2027-02-01"}
    assert "366 days" in error(explain("nobody", "09:00", **long), 400)


def test_a_question_too_large_for_slots_is_too_large_here(api, new_app, explain):
    api.client = new_app(max_slots=2).test_client()
    assert "narrow the range" in error(explain("nobody", "09:00"), 400)


def test_an_account_without_an_address_is_named_by_its_provider(api, sandbox, new_user, explain):
    account = sandbox.account("microsoft", "ada@contoso.example", events=[meeting("09:00", "10:00")])
    user = new_user()
    connect(api, user, account, email=None)
    found = explained(explain(user, "09:30"))
    # The read range does not show whether the period began earlier.
    assert found["sentence"].endswith("the main calendar at Microsoft is busy until 10:00.")
    assert found["blockedBy"][0]["email"] is None


# --- the document


def test_every_reason_is_in_the_document():
    documented = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/reference/explain.md").read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(REASONS)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_calendar_that_cannot_be_read_is_the_reason(sandbox, new_user_with_two_accounts, explain, provider):
    user = new_user_with_two_accounts()
    sandbox.fault(provider=provider, status=403)

    answer = explain(user, "09:10")

    found = explained(answer)
    closed(found)
    name = "Google's calendar ada@example.com" if provider == "google" else "the main calendar at Microsoft"
    assert found["sentence"] == (
        f"09:10 on Thursday 3 December 2026 (UTC) is not offered: {name} could not be read "
        f"(access is denied), so "
        "nothing is offered."
    )
    (failed,) = answer.json["failedCalendars"]
    assert (failed["provider"], failed["reason"]) == (provider, "accessDenied")
    assert found["blockedBy"] == []


def test_blocking_periods_are_listed_also_if_a_calendar_is_unread(
    sandbox, new_user_with_two_accounts, explain
):
    user = new_user_with_two_accounts()
    sandbox.fault(provider="microsoft", status=503, retry_after=60)
    found = explained(explain(user, "10:20"))
    closed(found)
    assert [each["provider"] for each in found["blockedBy"]] == ["google"]


def test_partial_counts_the_read_calendars_and_names_the_others(
    api, sandbox, new_user_with_two_accounts, explain
):
    user = new_user_with_two_accounts()
    sandbox.fault(provider="microsoft", status=503, retry_after=60)
    slots = api.get(f"/users/{user}/scheduling", **MORNING, onFailure="partial")
    assert span(explained(slots)["availableSlots"][1]) == ("10:30", "11:30")

    answer = explain(user, "10:40", onFailure="partial")

    found = explained(answer)
    assert (found["offered"], span(found["slot"])) == (True, ("10:30", "11:30"))
    assert found["sentence"].endswith(
        "is within a slot that is offered, from 10:30 to 11:30. Not counted, because unread: the main "
        "calendar at Microsoft (the provider did not answer as it should)."
    )
    assert answer.json["failedCalendars"] == slots.json["failedCalendars"] != []


def test_with_partial_nothing_read_is_still_no_answer(sandbox, new_user_with_two_accounts, explain):
    user = new_user_with_two_accounts()
    sandbox.fault(status=503, retry_after=60)
    found = explained(explain(user, "09:10", onFailure="partial"))
    closed(found)
    assert (
        "ada@example.com (the provider did not answer as it should) and the main calendar at Microsoft"
        in found["sentence"]
    )


def test_no_more_calendars_are_named_than_a_sentence_bears(sandbox, new_user, explain):
    gone = [f"gone{n}@group.calendar.google.com" for n in range(MAX_NAMED + 2)]
    user = new_user(sandbox.account("google", "ada@example.com"))
    answer = explain(user, "09:10", calendarIds=",".join(gone))
    found = explained(answer)
    closed(found)
    assert found["sentence"].count("(it was not found)") == MAX_NAMED
    assert " and 2 more could not be read" in found["sentence"]
    assert len(answer.json["failedCalendars"]) == len(gone)


@pytest.mark.parametrize("fault", [{"status": 500}, {"body": "html"}, {"status": 401}])
def test_no_secrets_and_internals_are_in_answers(sandbox, new_user, explain, fault):
    account = sandbox.account("google", "ada@example.com")
    user = new_user(account)
    sandbox.fault(**fault)
    answer = explain(user, "09:10")
    closed(explained(answer))
    for inside in (account.access_token, account.refresh_token, "Traceback", "<", "127.0.0.1", "http"):
        assert inside not in answer.text
