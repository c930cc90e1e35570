"""Events that are moved only onto free time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from tests.app.answers import error, forget_patience
from tests.app.at_provider import GET, UPDATE, conflicts, one
from tests.app.days import PROVIDERS, meeting
from tests.conftest import Api, connect

pytestmark = pytest.mark.usefixtures("worker", "in_november")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
GOOGLE = pytest.mark.parametrize("provider", ["google"])
NINE, TEN, TWELVE = meeting("09:00", "10:00"), meeting("10:00", "11:00"), meeting("12:00", "13:00")
HALF_PAST_NINE = meeting("09:30", "10:30")
VIEW = {"google": "google.events.list", "microsoft": "microsoft.calendarView.list"}
FREE = {"google": {"transparency": "transparent"}, "microsoft": {"showAs": "free"}}
ROUNDS = 5


@pytest.fixture
def move(person):
    return person.move


@pytest.fixture
def leases(held_rows):
    """How much time is held for a user."""
    return lambda user: len(held_rows(user))


def when(event):
    return event["start"][11:16], event["end"][11:16]


def stored(person, event_id):
    return when(one(person.get(event_id)))


@BOTH
def test_an_event_is_moved_onto_free_time_only(person, move, leases):
    own, other = person.made()["id"], person.made(**TWELVE)["id"]

    assert conflicts(move(own, TWELVE)) == [("12:00", "13:00")]
    assert conflicts(move(own, meeting("11:30", "12:30"))) == [("12:00", "12:30")]
    assert stored(person, own) == ("09:00", "10:00")
    assert when(one(move(own, TEN))) == ("10:00", "11:00")
    assert stored(person, own) == ("10:00", "11:00")
    assert stored(person, other) == ("12:00", "13:00")
    assert leases(person.user) == 0


@BOTH
def test_an_event_that_begins_to_block_its_time_is_checked_like_a_move(person, move):
    own = person.made(showAs="free")["id"]
    person.made()
    refused = move(own, {"showAs": "busy"})
    assert refused.json["param"] == "start"
    assert error(refused, 400).startswith("start and end must be given too")
    assert conflicts(move(own, NINE | {"showAs": "busy"})) == [("09:00", "10:00")]


@BOTH
def test_own_time_of_an_event_is_free_and_another_event_in_it_is_not(person, move):
    own = person.made()["id"]

    assert when(one(move(own, HALF_PAST_NINE))) == ("09:30", "10:30")
    assert when(one(move(own, NINE))) == ("09:00", "10:00")
    person.made(**meeting("09:30", "09:45"))
    assert conflicts(move(own, HALF_PAST_NINE)) == [("09:30", "09:45")]
    assert conflicts(move(own, meeting("08:00", "09:40"))) == [("09:30", "09:40")]
    assert stored(person, own) == ("09:00", "10:00")
    assert when(one(move(own, meeting("09:00", "09:30")))) == ("09:00", "09:30")


@BOTH
def test_padding_and_overlaps_mean_the_same_as_for_creates(person, move):
    own = person.made()["id"]
    person.made(**TWELVE)

    # Its own time is free in its padding too.
    assert one(move(own, TEN, padding="60"))
    assert conflicts(move(own, meeting("11:00", "12:00"), padding="15")) == [("11:45", "12:00")]
    assert conflicts(move(own, TWELVE, maxOverlaps="0")) == [("12:00", "13:00")]
    assert one(move(own, meeting("11:30", "12:30"), maxOverlaps="1"))
    assert one(move(own, meeting("12:00", "12:30"), maxOverlaps="1"))


@BOTH
def test_events_that_do_not_make_busy_do_not_block_a_move(person, move):
    own = person.made()["id"]
    id_of_free = person.there.post(**FREE[person.provider])["id"]
    assert one(move(own, HALF_PAST_NINE))
    person.there.delete(id_of_free)
    assert one(move(own, NINE))


def test_an_event_that_its_guest_has_declined_does_not_block_a_move(new_person, api):
    person = new_person("google")
    own = person.made()["id"]
    declined = {"email": person.account.email, "responseStatus": "declined"}
    person.there.post(attendees=[declined])
    assert one(person.move(own, HALF_PAST_NINE))


@BOTH
def test_a_calendar_other_than_the_main_one(new_person, api, provider):
    person = new_person(provider, calendars=[{"primary": True}, {"id": "team@example.com"}])
    team = "team@example.com"

    def move(body):
        return person.move(own, body, calendar=team)

    own = one(person.create(calendar=team), 201)["id"]
    assert one(move(HALF_PAST_NINE))
    # Both calendars have to be free.
    person.made(**TWELVE)
    one(person.create(calendar=team, **meeting("14:00", "15:00")), 201)
    assert conflicts(move(TWELVE)) == [("12:00", "13:00")]
    assert conflicts(move(meeting("14:00", "15:00"))) == [("14:00", "15:00")]
    person.made(**HALF_PAST_NINE)
    assert conflicts(move(NINE)) == [("09:30", "10:00")]


@BOTH
def test_the_main_calendar_by_its_own_id(person, move):
    own = person.made()["id"]
    assert one(move(own, HALF_PAST_NINE, calendar=person.main))
    person.made(**TWELVE)
    assert conflicts(move(own, TWELVE, calendar=person.main)) == [("12:00", "13:00")]


@BOTH
def test_an_account_of_another_provider_has_to_be_free_too(api, sandbox, new_person, provider):
    person = new_person(provider)
    other = "microsoft" if provider == "google" else "google"
    connect(api, person.user, sandbox.account(other, "other@example.com", events=[TWELVE]))
    own = person.made()["id"]
    assert conflicts(person.move(own, TWELVE)) == [("12:00", "13:00")]
    assert one(person.move(own, HALF_PAST_NINE))


@BOTH
def test_one_edge_is_completed_from_the_stored_event(person, move):
    own = person.made()["id"]
    person.made(**TWELVE)

    assert conflicts(move(own, {"end": "2026-12-03T12:30:00Z"})) == [("12:00", "12:30")]
    assert when(one(move(own, {"end": "2026-12-03T12:00:00Z"}))) == ("09:00", "12:00")
    assert when(one(move(own, {"start": "2026-12-03T11:00:00Z"}))) == ("11:00", "12:00")
    assert error(move(own, {"start": "2026-12-03T12:30:00Z"}), 400) == "end must not be before start"
    assert error(move(own, {"start": "2026-12-03"}), 400).startswith("start and end must both be dates")


@BOTH
def test_an_update_that_moves_nothing_needs_no_free_time(person, move, sandbox):
    own = person.made()["id"]
    person.there.post()
    sandbox.forget_requests()
    assert one(move(own, {"subject": "New"}))["subject"] == "New"
    assert VIEW[person.provider] not in sandbox.requests().by_operation


@BOTH
def test_an_all_day_event_is_moved_by_the_days_of_its_calendar(new_person, api, provider):
    """Its day in Los Angeles is from eight to eight in UTC."""
    person = new_person(provider, time_zone="America/Los_Angeles")

    def move(first, last):
        return person.move(own, {"start": first, "end": last})

    own = person.made(start="2026-12-03", end="2026-12-04")["id"]
    person.made(start="2026-12-05T06:00Z", end="2026-12-05T07:00Z")
    assert conflicts(move("2026-12-04", "2026-12-05")) == [("06:00", "07:00")]
    assert one(move("2026-12-05", "2026-12-06"))["start"] == "2026-12-05T08:00:00.000Z"
    assert one(move("2026-12-05", "2026-12-07"))["end"] == "2026-12-07T08:00:00.000Z"
    assert error(person.move(own, {"end": "2026-12-08"}), 400).startswith("start must be given")


def test_an_all_day_event_in_an_unknown_zone_does_not_block_its_own_move(new_person, api, sandbox):
    """In the last zone, its day ends at noon of the next day in UTC."""
    person = new_person("microsoft")
    own = person.made(start="2026-12-03", end="2026-12-04")["id"]
    sandbox.fault(operation="microsoft.mailboxSettings.get", wild="noZone")
    morning = {"start": "2026-12-04T09:00:00Z", "end": "2026-12-04T10:00:00Z"}

    assert conflicts(person.book(morning)) == [("09:00", "10:00")]
    assert when(one(person.move(own, morning))) == ("09:00", "10:00")


@BOTH
def test_occurrences_are_moved_one_by_one(new_person, api, provider):
    series = NINE | {"recurrence": "RRULE:FREQ=DAILY;COUNT=3"}
    person = new_person(provider, events=[series])
    days = api.get(f"/users/{person.user}/calendar/events", start="2026-12-03", end="2026-12-05")
    first, second = days.json["data"]
    assert error(person.move(first["recurringEventId"], TWELVE), 400).startswith(
        "ifFree must not be given for a series"
    )
    assert one(person.move(first["id"], HALF_PAST_NINE))
    person.made(**TWELVE)
    assert conflicts(person.move(first["id"], TWELVE)) == [("12:00", "13:00")]
    assert one(person.get(second["id"]))["start"] == "2026-12-04T09:00:00.000Z"


@BOTH
def test_an_event_that_is_missing_or_has_changed_is_not_moved(person, move, leases):
    event = person.made()
    assert error(move("AAMk1", TEN), 404) == "Event not found"
    person.update(event["id"], subject="Another's")
    answer = move(event["id"], TEN, headers={"If-Match": event["etag"]})
    assert (answer.status_code, answer.json["code"]) == (412, "eventChanged")
    assert stored(person, event["id"]) == ("09:00", "10:00")
    assert leases(person.user) == 0


@BOTH
@pytest.mark.parametrize("call", ["view", "event"])
def test_a_calendar_that_cannot_be_read_is_not_free(api, person, move, leases, sandbox, call):
    own = person.made()["id"]
    sandbox.fault(operation={"view": VIEW, "event": GET}[call][person.provider], status=503, retry_after=60)
    answer = move(own, HALF_PAST_NINE)
    assert (answer.status_code, answer.json["code"]) == (502, "providerError")
    assert answer.json["failedCalendars"]
    sandbox.clear_faults()
    forget_patience(api)
    assert stored(person, own) == ("09:00", "10:00")
    assert leases(person.user) == 0


@BOTH
def test_a_move_that_the_provider_refuses_gives_the_time_back(person, move, leases, sandbox):
    own = person.made()["id"]
    sandbox.fault(operation=UPDATE[person.provider], status=403)
    assert move(own, TEN).status_code == 403
    sandbox.clear_faults()
    assert leases(person.user) == 0
    assert one(person.create(**TEN), 201)


@BOTH
def test_a_move_whose_outcome_is_unknown_keeps_its_time_and_can_be_repeated(
    api, person, move, leases, sandbox
):
    own = person.made()["id"]
    sandbox.fault(operation=UPDATE[person.provider], latency_ms=60_000)
    answer = move(own, HALF_PAST_NINE)
    assert (answer.status_code, answer.json["code"]) == (502, "outcomeUnknown")
    sandbox.clear_faults()
    forget_patience(api)
    assert leases(person.user) == 1
    assert conflicts(person.book(TEN)) == [("10:00", "10:30")]

    assert when(one(move(own, HALF_PAST_NINE))) == ("09:30", "10:30")
    assert leases(person.user) == 0


@GOOGLE
def test_a_move_that_redis_interrupts_can_be_repeated(person, move, leases, redis_interrupts):
    own = person.made()["id"]

    with redis_interrupts(executed=True):
        answer = move(own, TEN)

    assert (answer.status_code, answer.json["code"]) == (503, "outcomeUnknown")
    assert leases(person.user) == 1
    assert when(one(move(own, TEN))) == ("10:00", "11:00")
    assert leases(person.user) == 0


@GOOGLE
def test_a_move_to_another_time_leaves_the_time_of_a_lost_one_reserved(
    api, person, move, leases, redis_interrupts
):
    """The first move has lost its answer, so the provider may still execute it."""
    own = person.made()["id"]

    with redis_interrupts():
        assert move(own, TEN).status_code == 503

    assert one(move(own, TWELVE))
    assert leases(person.user) == 1
    assert conflicts(person.book(TEN)) == [("10:00", "11:00")]


@GOOGLE
def test_a_hold_of_others_blocks_a_move_and_cannot_be_used_by_one(api, person, move):
    own = person.made()["id"]
    held = api.post("/holds", {"users": [person.user], **TEN}).json["data"]["id"]

    assert conflicts(move(own, HALF_PAST_NINE)) == [("10:00", "10:30")]
    refused = api.put(person.path(own), TEN, query_string={"hold": held})
    assert (error(refused, 400), refused.json["param"]) == ("hold must not be given for an update", "hold")
    assert stored(person, own) == ("09:00", "10:00")


def test_a_unified_event_has_no_conditional_update(api, new_person):
    person = new_person("google")
    path = f"/users/{person.user}/calendar/events/meta"
    made = one(api.post(path, NINE), 201)
    refused = api.put(f"{path}/{made['metaId']}", TEN, query_string={"ifFree": "true"})
    assert refused.json["param"] == "ifFree"
    assert error(refused, 400).startswith("ifFree must not be given for a unified event")
    assert one(api.put(f"{path}/{made['metaId']}", TEN, query_string={"ifFree": "false"}))


# --- races


@pytest.fixture
def at_the_same_time(api) -> Callable[..., list[int]]:
    """Send requests at the same moment; returns their statuses."""

    def run(calls: Sequence[Callable[[Api], object]]) -> list[int]:
        gate = Barrier(len(calls))

        def one_of(call):
            caller = Api(api.client.application.test_client(), api.key)
            gate.wait(timeout=10)
            return call(caller).status_code

        with ThreadPoolExecutor(len(calls)) as threads:
            return list(threads.map(one_of, calls))

    return run


IF_FREE = {"query_string": {"ifFree": "true"}}


@BOTH
@pytest.mark.parametrize("rival", ["move", "create", "hold"])
@pytest.mark.parametrize("users", ["one", "two"])
def test_of_a_move_and_a_rival_for_its_slot_exactly_one_succeeds(
    api, person, new_user, at_the_same_time, rival, users
):
    """Two users may be connected to one mailbox."""
    other = person.user if users == "one" else new_user(person.account)
    path = f"/users/{other}/calendar/events/{person.provider}/primary"
    for number in range(ROUNDS):
        mine = person.made(**meeting("06:00", "06:30"))["id"]
        theirs = person.made(**meeting("07:00", "07:30"))["id"]
        slot = meeting(f"{10 + number}:00", f"{10 + number}:30")
        rivals = {
            "move": lambda caller, slot=slot, theirs=theirs: caller.put(f"{path}/{theirs}", slot, **IF_FREE),
            "create": lambda caller, slot=slot: caller.post(path, slot, **IF_FREE),
            "hold": lambda caller, slot=slot: caller.post("/holds", {"users": [other], **slot}),
        }

        statuses = at_the_same_time(
            [
                lambda caller, slot=slot, mine=mine: caller.put(person.path(mine), slot, **IF_FREE),
                rivals[rival],
            ]
        )

        assert sorted(statuses)[0] in (200, 201), statuses
        assert sorted(statuses)[1] == 409, statuses
        starts = [one(person.get(each))["start"] for each in (mine, theirs)]
        assert starts.count(f"2026-12-03T{10 + number}:00:00.000Z") <= 1
        for each in (mine, theirs):
            person.delete(each)
