"""Event creates that need free or held time."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from redis.exceptions import ConnectionError as RedisDown

from app.events import bookings, conditions, worker_calls
from store.cache.versioned_cache import version_key
from store.sql.queries import connection_rows, connections, holds
from tests.app.answers import error
from tests.app.at_provider import INSERT, NINE, AtProvider, conflicts, one
from tests.app.days import PROVIDERS, meeting
from tests.app.two_accounts import Both
from tests.conftest import connect, stores_of
from workers.fanout.admission import QueueFull

pytestmark = pytest.mark.usefixtures("worker", "in_november")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
GOOGLE = pytest.mark.parametrize("provider", ["google"])
TEN = meeting("10:00", "11:00")
TWELVE = meeting("12:00", "13:00")


@pytest.fixture
def create(person):
    """Create an event at nine, if it is free."""

    def create(body=None, *, key=None, **more):
        headers = {} if key is None else {"Idempotency-Key": key}
        return person.book({"subject": "Once"} | (body or {}), headers=headers, **more)

    return create


@pytest.fixture
def hold(api, person):
    def hold(**body):
        answer = api.post("/holds", {"users": [person.user], **NINE, **body})
        assert answer.status_code == 201, answer.json
        return answer.json["data"]["id"]

    return hold


@pytest.fixture
def rows(person, held_rows):
    return lambda: held_rows(person.user)


@BOTH
def test_an_event_is_created_once_in_free_time(person, create, rows):
    assert one(create(), 201)["subject"] == "Once"

    assert conflicts(create(meeting("09:30", "10:30"))) == [("09:30", "10:00")]
    assert conflicts(create(TEN, padding="15")) == [("10:00", "10:15")]
    assert create(TEN, padding="0").status_code == 201
    assert create(meeting("09:30", "10:30"), maxOverlaps="1").status_code == 201
    assert len(person.there.events()) == 3
    assert rows() == []


@BOTH
def test_a_hold_is_used_up_by_its_event(api, person, create, hold, rows):
    first, other = hold(), hold(**TEN)

    assert conflicts(create()) == [("09:00", "10:00")]
    assert conflicts(create(meeting("09:30", "10:30"), hold=first)) == [("10:00", "10:30")]
    assert conflicts(create(hold=other)) == [("09:00", "10:00")]
    assert one(create(meeting("09:00", "09:30"), hold=first), 201)
    assert api.get(f"/holds/{first}").status_code == 404
    assert conflicts(create(meeting("09:30", "10:00"), hold=first)) == [("09:30", "10:00")]
    assert create(meeting("09:30", "10:00")).status_code == 201
    assert [row.id for row in rows()] == [other]


@GOOGLE
def test_a_hold_of_another_user_does_not_count(new_person, create, api, provider):
    stranger = new_person("microsoft")
    answer = api.post("/holds", {"users": [stranger.user], **NINE})

    assert conflicts(create(hold=answer.json["data"]["id"])) == [("09:00", "10:00")]


@BOTH
def test_a_create_that_the_provider_refuses_gives_the_time_back(
    api, person, create, hold, rows, sandbox, provider
):
    sandbox.fault(operation=INSERT[provider], status=403, times=2)
    mine = hold(**TEN)

    assert create().status_code == 403
    assert create(TEN, hold=mine).status_code == 403
    assert [(row.id, row.claim) for row in rows()] == [(mine, None)]
    assert create(TEN, hold=mine).status_code == 201
    assert create().status_code == 201


@GOOGLE
@pytest.mark.parametrize("by", ["ifFree", "hold"])
def test_a_create_that_no_worker_may_take_gives_the_time_back(create, hold, rows, monkeypatch, by):
    """It is refused before anything is sent."""
    mine = hold() if by == "hold" else None
    query = {"hold": mine} if mine else {}

    def full(*_args, **_named):
        raise QueueFull

    with monkeypatch.context() as patched:
        patched.setattr(worker_calls, "write_events", full)
        answer = create(**query)

    assert (answer.status_code, answer.json["code"]) == (503, "overloaded")
    assert [(row.id, row.claim) for row in rows()] == ([(mine, None)] if mine else [])
    assert create(**query).status_code == 201


@BOTH
@pytest.mark.parametrize("repeatable", ["key", "metaId"])
@pytest.mark.parametrize("by", ["ifFree", "hold"])
def test_a_create_whose_answer_was_lost_can_be_repeated(
    person, create, hold, rows, redis_interrupts, repeatable, by, unique
):
    name = unique("once")
    body = {"metaId": name} if repeatable == "metaId" else {}
    query = {"hold": hold()} if by == "hold" else {}
    more = query | ({"key": name} if repeatable == "key" else {})
    with redis_interrupts(executed=True):
        assert create(body, **more).status_code == 503
    assert len(person.there.events()) == 1
    # The lease of the first attempt keeps others away, and the repetition replaces it.
    assert len(rows()) == 1
    assert conflicts(create({"subject": "other"})) == [("09:00", "10:00")]

    assert one(create(body, **more), 201)["subject"] == "Once"
    assert len(person.there.events()) == 1
    assert rows() == []


@GOOGLE
@pytest.mark.parametrize("by", ["ifFree", "hold"])
def test_a_repetition_that_fails_leaves_the_time_to_the_first_attempt(
    create, hold, rows, redis_interrupts, sandbox, provider, by, unique
):
    """The first attempt has lost its answer, so its event may still be written."""
    more = {"key": unique("twice")} | ({"hold": hold()} if by == "hold" else {})

    with redis_interrupts():
        assert create(**more).status_code == 503
    (left,) = rows()
    sandbox.fault(operation=INSERT[provider], status=403, times=1)

    assert create(**more).status_code == 403

    (kept,) = rows()
    assert kept.expires_at >= left.expires_at
    assert kept.claim == left.claim
    assert conflicts(create({"subject": "other"})) == [("09:00", "10:00")]
    assert create(**more).status_code == 201
    assert rows() == []


@GOOGLE
def test_after_its_lease_a_lost_create_is_still_found(api, person, create, rows, redis_interrupts, unique):
    key = unique("late")
    with redis_interrupts(executed=True):
        create(key=key)
    with stores_of(api.client.application).database.writing() as session:
        holds.renew(session, rows()[0].id, expires_at=1, now=0)

    assert one(create(key=key), 201)["metaId"]
    assert len(person.there.events()) == 1


@GOOGLE
@pytest.mark.parametrize("by", ["ifFree", "hold"])
def test_an_event_that_cannot_be_read_back_keeps_its_time(create, hold, rows, sandbox, provider, by):
    """It exists, although the create has failed."""
    query = {"hold": hold()} if by == "hold" else {}
    sandbox.fault(operation=INSERT[provider], body="html")

    answer = create(**query)

    assert (answer.status_code, answer.json["code"]) == (422, "eventUnreadable")
    (kept,) = rows()
    assert (kept.claim is not None) == (by == "hold")


@GOOGLE
def test_slot_of_a_killed_process_is_free_after_its_lease(api, person, create, rows, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*_args, **_named):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(worker_calls, "write_events", killed)
        with pytest.raises(Killed):
            create()
    (left,) = rows()
    assert left.expires_at < time.time() * 1000 + 60_000
    assert conflicts(create()) == [("09:00", "10:00")]
    with stores_of(api.client.application).database.writing() as session:
        holds.renew(session, left.id, expires_at=int(time.time() * 1000), now=0)

    assert create().status_code == 201
    assert len(person.there.events()) == 1


@GOOGLE
def test_a_lease_that_ends_during_the_read_writes_nothing(api, person, create, rows, monkeypatch):
    busy = bookings.busy

    def slow(*args, **named):
        with stores_of(api.client.application).database.writing() as session:
            holds.renew(session, rows()[0].id, expires_at=1, now=0)
        return busy(*args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(bookings, "busy", slow)
        assert create().status_code == 503
    assert person.there.events() == []
    assert rows() == []


@GOOGLE
def test_a_calendar_that_cannot_be_read_fails_the_create(api, person, create, rows, sandbox):
    sandbox.fault(provider="google", status=503, retry_after=60)

    assert create().status_code == 502
    sandbox.clear_faults()
    assert person.there.events() == []
    assert rows() == []


@GOOGLE
@pytest.mark.parametrize("repeatable", ["once", "metaId"])
def test_the_lease_is_renewed_for_the_whole_create(
    api, create, rows, monkeypatch, repeatable, unique, person, provider
):
    """After the read it lasts as long as the create can take, and longer for a unified event."""
    ends: list[float] = []

    def kept(*_args, **_named):
        # That of the first create, at nine, is still there when the second one is made.
        lease = max(rows(), key=lambda row: row.starts)
        ends.append(lease.expires_at / 1000 - time.time())
        raise RedisDown

    deadline = stores_of(api.client.application).settings.fanout_deadline_seconds
    body = {"metaId": unique("m")} if repeatable == "metaId" else {}
    monkeypatch.setattr(worker_calls, "write_events", kept)
    create(body)
    path = f"/users/{person.user}/calendar/events/meta"
    api.post(path, TEN | body, query_string={"ifFree": "true"})
    one, unified = ends
    margin = 3.0
    assert conditions.ONE_EVENT * deadline + margin < one
    assert conditions.UNIFIED * deadline + margin < unified


@GOOGLE
def test_another_key_with_the_same_meta_id_does_not_replace_the_lease(
    api, new_api, person, create, rows, redis_interrupts, unique, provider
):
    body = {"metaId": unique("same")}
    with redis_interrupts():
        assert create(body).status_code == 503
    (left,) = rows()

    other = replace(person, api=new_api())
    assert conflicts(other.book(body)) == [("09:00", "10:00")]
    assert [row.id for row in rows()] == [left.id]
    assert person.there.events() == []


@GOOGLE
@pytest.mark.parametrize("ending", ["used", "given back"])
def test_the_end_of_a_hold_is_announced_before_its_commit(
    api, create, hold, monkeypatch, sandbox, provider, ending
):
    """Otherwise a request could read periods without the event, and then held time without the hold."""
    stores = stores_of(api.client.application)
    mine = hold()
    with stores.database.reading() as session:
        keys = [*map(version_key, holds.names(session, mine))]
    seen: list[object] = []
    name = "release" if ending == "used" else "release_claim"
    end = getattr(holds, name)
    if ending == "given back":
        sandbox.fault(operation=INSERT[provider], status=403, times=1)

    def noted(*args, **named):
        seen.append(stores.redis.mget(keys))
        return end(*args, **named)

    write = worker_calls.write_events

    def written(*args, **named):
        seen.append(stores.redis.mget(keys))
        return write(*args, **named)

    monkeypatch.setattr(holds, name, noted)
    monkeypatch.setattr(worker_calls, "write_events", written)
    create(hold=mine)
    seen.append(stores.redis.mget(keys))

    during_the_create, before_the_commit, after = seen
    assert all(a != b for a, b in zip(during_the_create, before_the_commit, strict=True))
    assert all(a != b for a, b in zip(before_the_commit, after, strict=True))


@GOOGLE
def test_a_bound_key_does_not_use_a_hold_of_another_tenant(api, new_api, person, hold, new_organization):
    slug = new_organization()
    api.post(f"/organizations/{slug}/members", {"userIds": [person.user]})

    answer = new_api(organization=slug).post(person.path(), NINE, query_string={"hold": hold()})

    assert conflicts(answer) == [("09:00", "10:00")]
    assert person.there.events() == []


@BOTH
def test_another_calendar_than_the_main_one_has_to_be_free_too(new_person, api, provider):
    person = new_person(provider, calendars=[{"primary": True}, {"id": "team@example.com"}])
    assert person.book(calendar="team@example.com").status_code == 201
    assert conflicts(person.book(calendar="team@example.com")) == [("09:00", "10:00")]


@BOTH
def test_named_accounts_count_and_always_that_of_the_event(api, sandbox, new_user, provider):
    accounts = {name: sandbox.account(name, f"ada@{name}.example") for name in PROVIDERS}
    user = new_user(*accounts.values())
    path = f"/users/{user}/calendar/events/{provider}/primary"
    (other,) = set(PROVIDERS) - {provider}

    def create(when, **query):
        return api.post(path, when, query_string={"ifFree": "true"} | query)

    AtProvider(sandbox, accounts[provider]).post()
    assert conflicts(create(NINE, provider=other)) == [("09:00", "10:00")]
    assert create(TEN, provider=other).status_code == 201

    connect(api, user, sandbox.account(other, "busy@example.com", events=[TWELVE]))
    assert conflicts(create(TWELVE)) == [("12:00", "13:00")]
    assert create(TWELVE, provider=provider).status_code == 201


@GOOGLE
def test_bad_conditions_are_refused(create, person):
    assert error(create({"end": NINE["start"]}), 400) == "end must be after start"
    both = create(hold=f"hold_{0:024x}", ifFree="true")
    assert error(both, 400) == "hold must not be given together with ifFree"
    assert conflicts(create(hold="hold_1"))
    assert error(create({"end": "2028-12-03T10:00:00Z"}), 400).startswith("The time from start to end")
    assert person.there.events() == []


@BOTH
def test_an_all_day_event_needs_the_day_of_its_calendar(new_person, api, provider, unique):
    """Its day in Los Angeles is from eight to eight in UTC, whatever the zone of the request."""
    day = {"start": "2026-12-03", "end": "2026-12-04"}
    before, evening = meeting("06:00", "07:00"), {"start": "2026-12-04T06:00Z", "end": "2026-12-04T07:00Z"}

    def create(*events):
        return new_person(provider, time_zone="America/Los_Angeles", events=list(events)).book(day)

    assert create(before).status_code == 201
    assert conflicts(create(evening)) == [("06:00", "07:00")]


def test_the_zone_of_the_main_calendar_does_not_count_for_another_one(new_person, api, sandbox):
    """In the first zone, the day begins at ten in the morning of the day before."""
    day = {"start": "2026-12-03", "end": "2026-12-04"}
    person = new_person(
        "microsoft",
        time_zone="America/Los_Angeles",
        calendars=[{"primary": True}, {"id": "AAMk-team"}],
        events=[{"start": "2026-12-02T11:00Z", "end": "2026-12-02T12:00Z"}],
    )
    with stores_of(api.client.application).database.writing() as session:
        (ref,) = connection_rows.of_user(session, person.user, organization_id=None)
        connections.identify(
            session,
            ref.id,
            main_calendar_id=person.main,
            mailbox=person.account.email,
            time_zone="America/Los_Angeles",
        )
    sandbox.fault(operation="microsoft.mailboxSettings.get", wild="noZone")

    assert conflicts(person.book(day, calendar="AAMk-team")) == [("11:00", "12:00")]


@GOOGLE
def test_an_all_day_event_needs_the_day_in_all_zones_if_its_zone_is_unknown(
    new_person, api, sandbox, provider
):
    day = {"start": "2026-12-03", "end": "2026-12-04"}
    # In the first zone, the day begins at ten in the morning of the day before. In the last, it ends at noon
    # of the day after.
    outside = [{"start": f"{each}T11:00Z", "end": f"{each}T12:00Z"} for each in ("2026-12-02", "2026-12-04")]
    person = new_person(provider, events=outside)
    sandbox.fault(operation="google.calendarList.list", status=403, times=2)

    refused = person.book(day)
    held = api.post("/holds", {"users": [person.user], **day}).json["data"]["id"]

    assert conflicts(refused) == [("11:00", "12:00")] * 2
    # Its client has chosen the time, so the zone of the request counts.
    assert person.book(day, hold=held).status_code == 201


@pytest.mark.parametrize(
    ("booked", "status", "left"), [(False, 201, ["Both"]), (True, 409, ["Another's"])], ids=["free", "booked"]
)
def test_a_missing_copy_is_created_only_in_free_time(api, sandbox, new_user, booked, status, left):
    """Its other copy makes the user busy, and does not count."""
    both = Both.connected(api, sandbox, new_user)
    there = both.there["microsoft"]

    def create():
        return both.create(query={"ifFree": "true"}, subject="Both", metaId="m-1").status_code

    assert create() == 201
    (copy,) = there.events()
    there.delete(copy["id"])
    if booked:
        there.post(subject="Another's")

    assert create() == status
    assert there.subjects() == left


def test_a_unified_event_that_was_deleted_again_gives_the_time_back(api, sandbox, new_user):
    """Nothing of it exists, although one copy was written and could not be read back."""
    both = Both.connected(api, sandbox, new_user)
    sandbox.fault(operation=INSERT["google"], body="html", times=1)

    answer = both.create(query={"ifFree": "true"}, metaId="m-1")

    assert (answer.status_code, answer.json["code"]) == (422, "eventUnreadable")
    assert "were deleted again" in answer.json["error"]
    assert both.create(query={"ifFree": "true"}, metaId="m-2").status_code == 201


def test_a_unified_event_needs_all_calendars_of_the_user(api, new_user_with_two_accounts, monkeypatch):
    user = new_user_with_two_accounts()
    path = f"/users/{user}/calendar/events/meta"

    def create(**query):
        body = {**NINE, "subject": "Both", "metaId": query.pop("metaId", "m-1")}
        return api.post(path, body | query.pop("body", {}), query_string={"ifFree": "true"} | query)

    # Both accounts are busy at ten.
    assert conflicts(create(body=TEN)) != []
    assert create().status_code == 201
    # The repetition finds its own copies.
    assert create().status_code == 201
    assert conflicts(create(metaId="m-2")) == [("09:00", "10:00")]
    eleven = meeting("12:00", "13:00")
    mine = api.post("/holds", {"users": [user], **eleven}).json["data"]["id"]
    assert api.post(path, eleven, query_string={"hold": mine}).status_code == 201
    assert api.get(f"/holds/{mine}").status_code == 404
    assert conditions.UNIFIED > conditions.ONE_EVENT
