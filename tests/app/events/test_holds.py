"""Holds: time that is kept free, and what counts it as busy."""

from __future__ import annotations

import time

import pytest
from redis.exceptions import ConnectionError as RedisDown
from sqlalchemy.exc import OperationalError

from app.availability.parameters import now_ms
from providers.sandbox.client import Sandbox
from store.sql.models import HeldTime, User
from store.sql.queries import holds
from tests.app.answers import error
from tests.app.days import MORNING, NOVEMBER, PROVIDERS, meeting, starts
from tests.conftest import Api, stores_of

pytestmark = pytest.mark.usefixtures("worker", "in_november")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
GOOGLE = pytest.mark.parametrize("provider", ["google"])
NINE = meeting("09:00", "10:00")
TEN = meeting("10:00", "11:00")


@pytest.fixture
def take(api):
    """Hold time of users, nine to ten by default."""

    def take(*users, body=None, **more):
        return api.post("/holds", {"users": list(users)} | NINE | (body or {}), **more)

    return take


def held(answer):
    assert answer.status_code == 201, answer.json
    return answer.json["data"]


def conflicts(answer):
    """The user and the clock times of each conflict."""
    assert answer.status_code == 409, answer.json
    assert answer.json["code"] == "slotTaken"
    return [(each["userId"], each["start"][11:16], each["end"][11:16]) for each in answer.json["conflicts"]]


@BOTH
def test_held_time_is_offered_by_no_route_until_it_is_released(api, person, take, new_organization):
    user, slug = person.user, new_organization()
    assert api.post(f"/organizations/{slug}/members", {"userIds": [user]}).status_code == 201
    # Warm before the hold: its answer makes cached data old.
    assert starts(api.get(f"/users/{user}/scheduling", **MORNING)) == ["09:00", "10:00", "11:00"]

    hold = held(take(user, body=TEN | {"note": "cart 4711"}))

    assert hold["users"] == [user]
    assert (hold["start"], hold["end"]) == ("2026-12-03T10:00:00.000Z", "2026-12-03T11:00:00.000Z")
    assert hold["note"] == "cart 4711"
    for _ in range(2):
        assert starts(api.get(f"/users/{user}/scheduling", **MORNING)) == ["09:00", "11:00"]
        assert starts(api.get(f"/organizations/{slug}/scheduling", **MORNING)) == ["09:00", "11:00"]
        several = api.post("/users/scheduling", {"users": [{"id": user}]}, query_string=MORNING)
        assert len(several.json["data"][0]["availableSlots"]) == 2
        padded = api.get(f"/users/{user}/scheduling", **MORNING, padding=30)
        assert starts(padded) == []
        assert starts(api.get(f"/users/{user}/scheduling", **MORNING, maxOverlaps=1))[:2] == [
            "09:00",
            "10:00",
        ]
    busy = api.get(f"/users/{user}/calendar/busy", start=MORNING["start"], end=MORNING["end"])
    assert busy.json["data"] == []
    explained = api.get(f"/users/{user}/scheduling/explain", **MORNING, at="2026-12-03T10:20:00Z").json[
        "data"
    ]
    assert explained["reason"] == "busy"
    assert "the time is held from 10:00 to 11:00. The hold expires at " in explained["sentence"]
    assert explained["blockedBy"] == []
    assert explained["heldBy"][0]["expiresAt"] == hold["expiresAt"]
    whole = api.get(f"/organizations/{slug}/scheduling/explain", **MORNING, at="2026-12-03T10:20:00Z")
    assert whole.json["data"]["members"][0]["heldBy"][0]["start"] == hold["start"]

    assert api.get(f"/holds/{hold['id']}").json["data"] == hold
    assert api.get("/holds", user=user).json["data"] == [hold]
    assert api.delete(f"/holds/{hold['id']}").json["data"] == {"success": True}
    assert api.delete(f"/holds/{hold['id']}").status_code == 404
    assert api.get("/holds", user=user).json["data"] == []
    assert starts(api.get(f"/users/{user}/scheduling", **MORNING)) == ["09:00", "10:00", "11:00"]


@GOOGLE
def test_a_renamed_user_is_still_held(api, person, take, unique):
    held(take(person.user, body=TEN))
    assert starts(api.get(f"/users/{person.user}/scheduling", **MORNING)) == ["09:00", "11:00"]
    renamed = unique("renamed")

    assert api.put(f"/users/{person.user}", {"userId": renamed}).status_code == 200

    assert starts(api.get(f"/users/{renamed}/scheduling", **MORNING)) == ["09:00", "11:00"]


@GOOGLE
def test_overlapping_time_is_taken(person, take):
    held(take(person.user))

    assert conflicts(take(person.user)) == [(person.user, "09:00", "10:00")]
    assert conflicts(take(person.user, body=meeting("09:30", "10:30"))) == [(person.user, "09:30", "10:00")]
    assert conflicts(take(person.user, body=TEN | {"padding": 15})) == [(person.user, "10:00", "10:15")]
    held(take(person.user, body=TEN))


@BOTH
def test_busy_time_cannot_be_held(person, take):
    person.there.post()
    after = meeting("09:30", "10:30")

    assert conflicts(take(person.user, body=after)) == [(person.user, "09:30", "10:00")]
    assert conflicts(take(person.user, body=TEN, query_string={"padding": "15"})) == [
        (person.user, "10:00", "10:15")
    ]
    held(take(person.user, body=after | {"maxOverlaps": 1}))


@GOOGLE
def test_a_conflict_with_held_time_has_the_padding_of_its_side(person, take):
    held(take(person.user, body=TEN))
    both = {"paddingBefore": 15, "paddingAfter": 30}

    assert conflicts(take(person.user, body=both)) == [(person.user, "09:45", "10:00")]
    after = meeting("11:00", "12:00") | both
    assert conflicts(take(person.user, body=after)) == [(person.user, "11:00", "11:30")]


@GOOGLE
def test_busy_time_of_another_program_is_seen_past_the_cache(api, person, take):
    assert starts(api.get(f"/users/{person.user}/scheduling", **MORNING))[0] == "09:00"
    person.there.post()

    assert conflicts(take(person.user)) == [(person.user, "09:00", "10:00")]


@GOOGLE
def test_all_users_are_held_or_none(person, new_person, take, api):
    other = new_person("microsoft")
    other.there.post()

    assert conflicts(take(person.user, other.user)) == [(other.user, "09:00", "10:00")]
    assert api.get("/holds", user=person.user).json["data"] == []
    hold = held(take(person.user, other.user, person.user, body=TEN))
    assert hold["users"] == sorted([person.user, other.user])


@GOOGLE
def test_a_user_that_cannot_be_read_is_not_held(api, person, new_person, take, sandbox: Sandbox):
    other = new_person("microsoft")
    sandbox.fault(provider="microsoft", status=503, retry_after=60)

    answer = take(person.user, other.user)

    assert answer.status_code == 502
    assert answer.json["reason"] == "providerError"
    assert [each["userId"] for each in answer.json["failedUsers"]] == [other.user]
    assert api.get("/holds", user=person.user).json["data"] == []
    with stores_of(api.client.application).database.reading() as session:
        assert session.query(HeldTime).join(User).filter_by(custom_id=person.user).count() == 0


@GOOGLE
def test_bad_input_is_refused(person, take, new_user):
    user = person.user
    past = {"start": "2026-11-19T09:00:00Z", "end": "2026-11-19T10:00:00Z"}
    for body, sentence in (
        (past, "end must not be in the past"),
        ({"end": NINE["start"]}, "start must be before end"),
        ({"end": "2026-12-04T09:00:01Z"}, "end must be at most 24 hours after start"),
        ({"expiresIn": 29}, "expiresIn must be between 30 and 3600"),
        ({"expiresIn": 3601}, "expiresIn must be between 30 and 3600"),
        ({"note": "x" * 257}, "note must have 0 to 256 characters"),
        ({"users": []}, "users must have 1 to 100 elements"),
        ({"users": [f"user-{n}" for n in range(101)]}, "users must have 1 to 100 elements"),
    ):
        assert error(take(user, body=body), 400) == sentence
    assert error(take(user, "nobody"), 404) == "User not found"
    assert error(take(user, new_user()), 404) == "User has no connected calendars"
    held(take(user, body={"start": "2026-12-03", "end": "2026-12-04"}))


@GOOGLE
def test_held_time_may_have_begun_and_not_ended(person, take, monkeypatch):
    half_past_nine = NOVEMBER + (13 * 24 * 60 + 570) * 60_000
    monkeypatch.setattr("app.events.holds.is_past", lambda moment: moment <= half_past_nine)

    assert error(take(person.user, body=meeting("08:00", "09:00")), 400) == "end must not be in the past"
    held(take(person.user))


@GOOGLE
def test_the_minimum_notice_holds_for_holds_and_creates(person, take):
    a_year = 366 * 24 * 60

    assert conflicts(take(person.user, body={"minimumNotice": a_year})) == [(person.user, "09:00", "10:00")]
    assert person.book(minimumNotice=str(a_year)).status_code == 409
    assert person.book().status_code == 201


@GOOGLE
def test_an_expired_hold_blocks_nothing(api, person, take, monkeypatch):
    hold = held(take(person.user, body={"expiresIn": 30}))
    stores = stores_of(api.client.application)
    with stores.database.writing() as session:
        holds.renew(session, hold["id"], expires_at=int(time.time() * 1000) + 300, now=0)
        names = holds.names(session, hold["id"])
    stores.held_times.invalidate(names)
    assert starts(api.get(f"/users/{person.user}/scheduling", **MORNING)) == ["10:00", "11:00"]

    time.sleep(0.4)

    assert starts(api.get(f"/users/{person.user}/scheduling", **MORNING))[0] == "09:00"
    assert api.get(f"/holds/{hold['id']}").status_code == 404
    held(take(person.user))


@GOOGLE
@pytest.mark.parametrize("calendars", [None, ["primary"]])
def test_a_repeated_request_has_one_hold(api, person, take, calendars):
    key = {"Idempotency-Key": f"hold-{person.user}"}
    user = person.user if calendars is None else {"id": person.user, "calendarIds": calendars}
    first = take(user, headers=key)
    again = take(user, headers=key)

    assert held(first) == held(again)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert len(api.get("/holds", user=person.user).json["data"]) == 1


@GOOGLE
def test_a_hold_names_no_user_who_has_left_the_organization(
    api, new_api, person, new_person, new_organization
):
    slug, other = new_organization(), new_person("microsoft")
    both = [person.user, other.user]
    api.post(f"/organizations/{slug}/members", {"userIds": both})
    bound = new_api(organization=slug)
    hold = held(bound.post("/holds", {"users": both, **NINE}))
    assert hold["users"] == sorted(both)

    api.delete(f"/organizations/{slug}/members", {"userIds": [other.user]})

    assert bound.get(f"/holds/{hold['id']}").json["data"]["users"] == [person.user]
    path = f"/users/{other.user}/calendar/events/microsoft/primary"
    assert conflicts(api.post(path, NINE, query_string={"ifFree": "true"})) == [
        (other.user, "09:00", "10:00")
    ]
    assert bound.delete(f"/holds/{hold['id']}").status_code == 200


@GOOGLE
def test_holds_are_audited_and_listed_by_start(api, person, take):
    later, first = held(take(person.user, body=TEN)), held(take(person.user))

    assert [each["id"] for each in api.get("/holds", user=person.user).json["data"]] == [
        first["id"],
        later["id"],
    ]
    page = api.get("/holds", user=person.user, limit=1).json
    assert page["data"] == [first]
    assert api.get("/holds", user=person.user, cursor=page["nextCursor"]).json["data"] == [later]


@GOOGLE
def test_hold_without_cache_invalidation_is_503_and_not_stored(api, person, take, monkeypatch):
    def down(_self, _names):
        raise RedisDown

    with monkeypatch.context() as patched:
        patched.setattr("store.cache.versioned_cache.HeldTimes.invalidate", down)
        assert take(person.user).status_code == 503

    assert api.get("/holds", user=person.user).json["data"] == []
    held(take(person.user))


@GOOGLE
def test_database_failure_during_a_hold_creates_no_hold(api, person, take, monkeypatch):
    """The rows that were written before are a lease without a promise, which ends by itself."""

    def down(*_args, **_options):
        raise OperationalError("UPDATE holds", None, Exception("server closed the connection"))

    with monkeypatch.context() as patched:
        for function in ("promise", "remove"):
            patched.setattr(f"store.sql.queries.holds.{function}", down)
        assert take(person.user).status_code == 503

    assert api.get("/holds", user=person.user).json["data"] == []
    assert take(person.user).json["code"] == "slotTaken"
    after_the_lease = now_ms() + 60_000
    monkeypatch.setattr("app.events.holds.now_ms", lambda: after_the_lease)
    held(take(person.user))


@GOOGLE
def test_a_request_is_not_blocked_by_its_own_attempt_that_was_cut_off(api, person, take, monkeypatch):
    """The first attempt has left its lease."""
    key = {"Idempotency-Key": f"hold-{person.user}"}

    def down(*_args, **_options):
        raise OperationalError("UPDATE holds", None, Exception("server closed the connection"))

    with monkeypatch.context() as patched:
        for function in ("promise", "remove"):
            patched.setattr(f"store.sql.queries.holds.{function}", down)
        assert take(person.user, headers=key).status_code == 503

    assert conflicts(take(person.user)) == [(person.user, "09:00", "10:00")]
    held(take(person.user, headers=key))


@GOOGLE
def test_an_endpoint_learns_the_end_of_a_hold_that_could_not_be_announced(
    api, person, take, monkeypatch, no_webhook_endpoints
):
    """It saw the hold before Redis failed."""
    wanted = ["hold.created", "hold.released"]
    # Nothing listens there: the attempts fail, and stay in the log.
    endpoint = api.post("/webhooks", {"url": "http://127.0.0.1:9/", "events": wanted}).json["data"]["id"]

    def down(_self, _names):
        raise RedisDown

    with monkeypatch.context() as patched:
        patched.setattr("store.cache.versioned_cache.HeldTimes.invalidate", down)
        assert take(person.user).status_code == 503

    log = api.get(f"/webhooks/{endpoint}/deliveries").json["data"]
    assert sorted(each["payload"]["type"] for each in log) == wanted


def test_the_fast_path_sees_a_hold_at_once(api, fast, sandbox, new_user):
    user = new_user(sandbox.account("google", "fast@example.com"))

    def first():
        """The first slot, and whether the fast path answered."""
        answer = fast.get(f"/users/{user}/scheduling", **MORNING)
        plain = answer or api.get(f"/users/{user}/scheduling", **MORNING)
        return starts(plain)[0], answer is not None

    first()
    assert first() == ("09:00", True)
    hold = held(api.post("/holds", {"users": [user], **NINE}))
    # The plain path loads held time again; then the fast path answers.
    assert [first() for _ in range(3)] == [("10:00", False), ("10:00", True), ("10:00", True)]
    api.delete(f"/holds/{hold['id']}")
    assert [first() for _ in range(2)] == [("09:00", False), ("09:00", True)]


@GOOGLE
def test_an_organization_holds_a_limited_number_of_users(
    api, new_api, new_app, person, new_person, new_organization
):
    slug, rival, other = new_organization(), new_organization(), new_person("microsoft")
    both = [person.user, other.user]
    for each in (slug, rival):
        api.post(f"/organizations/{each}/members", {"userIds": both})
    client = new_app(max_held_users=3).test_client()
    bound, stranger = (Api(client, new_api(organization=each).key) for each in (slug, rival))
    held(bound.post("/holds", {"users": both, **NINE}))

    refused = bound.post("/holds", {"users": both, **TEN})

    assert (refused.status_code, refused.json["code"], refused.json["quota"]) == (
        429,
        "quotaExceeded",
        "heldUsers",
    )
    # When the first of its holds expires.
    assert 250 < refused.json["retryAfter"] <= 300
    assert refused.headers["Retry-After"] == str(refused.json["retryAfter"])
    # Nothing of it is held, one user more may be, and others have a quota of their own.
    held(bound.post("/holds", {"users": [person.user], **TEN}))
    held(stranger.post("/holds", {"users": [other.user], **TEN}))
    # An organization can have another quota than the others.
    eleven, noon = meeting("11:00", "12:00"), meeting("12:00", "13:00")
    assert bound.post("/holds", {"users": [other.user], **eleven}).status_code == 429
    api.put(f"/organizations/{slug}", {"quotas": {"heldUsers": 4}})
    held(bound.post("/holds", {"users": [other.user], **eleven}))
    api.put(f"/organizations/{rival}", {"quotas": {"heldUsers": 1}})
    assert stranger.post("/holds", {"users": [other.user], **noon}).json["quota"] == "heldUsers"


@BOTH
def test_named_calendars_are_read_and_held_instead_of_the_main_ones(provider, api, sandbox, new_user, take):
    domain = {"google": "resource.calendar.google.com", "microsoft": "rooms.example"}[provider]
    room = sandbox.account(provider, f"room@{domain}")
    people = [sandbox.account(provider, f"{name}@example.com", events=[TEN]) for name in ("ada", "bruno")]
    ada, bruno = (
        {"id": new_user(account), "calendarIds": [sandbox.share(room, account)]} for account in people
    )

    # The main calendars are busy from ten, the room is not.
    hold = held(take(ada, body=TEN))

    assert hold["users"] == [ada["id"]]
    assert conflicts(take(bruno, body=TEN)) == [(bruno["id"], "10:00", "11:00")]
    # The main calendar of the other user is not held, and the room is free at nine.
    held(take(bruno["id"], bruno["id"]))
    held(take(ada, ada["id"], body=meeting("11:00", "12:00")))


@BOTH
def test_a_busy_named_calendar_cannot_be_held(provider, person, take):
    person.there.post()
    main = {"id": person.user, "calendarIds": ["primary"]}

    assert conflicts(take(main)) == [(person.user, "09:00", "10:00")]
    unknown = {"id": person.user, "calendarIds": ["no-such@example.com"]}
    assert take(unknown).status_code in (400, 403, 404)
    assert take({"id": person.user, "calendarIds": ["."]}).json["param"] == "users.0.calendarIds.0"
