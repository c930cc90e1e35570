"""The busy cache over HTTP: which reads call the provider, the age of answers, and what is refreshed."""

from __future__ import annotations

import dataclasses
import threading
import time

import pytest
import requests

from app.availability import jobs
from app.services import services
from providers.base import PRIMARY
from scheduling.intervals import Intervals
from store.cache.busy_cache import HEAD, BusyRead, CalendarKey
from store.sql.queries import connection_rows
from tests.app.answers import cached
from tests.app.at_provider import AtProvider
from tests.app.days import DAY, MORNING, PROVIDERS, meeting, periods, starts
from tests.conftest import Api, connect

pytestmark = pytest.mark.usefixtures("worker")

# Buckets of seven days begin on Thursdays; this is the one with the Thursday of these tests.
WEEK = {"start": "2026-12-03", "end": "2026-12-10"}


@pytest.fixture
def reads(sandbox):
    """The number of calendar reads since the last call; counts the parts of batches, not batches."""

    def count():
        counted = sandbox.requests().by_operation
        sandbox.forget_requests()
        return {name.split(".")[1]: n for name, n in counted.items() if name != "microsoft.batch"}

    return count


@pytest.fixture
def ada(sandbox, new_user):
    """A user with a Google account."""
    return new_user(sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")]))


@pytest.fixture
def connection(stores):
    """The id of a user's only connection."""

    def find(user):
        with stores.database.reading() as session:
            (ref,) = connection_rows.of_user(session, user, organization_id=None)
        return ref.id

    return find


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_second_request_touches_no_provider(api, sandbox, new_user, new_organization, provider):
    slug = new_organization()
    user = new_user(
        sandbox.account(provider, "ada@example.com", events=[meeting("09:00", "10:00")]), slugs=(slug,)
    )

    def ask():
        return [
            api.get(f"/users/{user}/calendar/busy", **DAY).json,
            api.get(f"/users/{user}/scheduling", **MORNING).json,
            api.get(f"/organizations/{slug}/calendar/busy", **DAY).json,
            api.get(f"/organizations/{slug}/scheduling", **MORNING).json,
            api.post("/users/scheduling", {"users": [{"id": user}]}, query_string=MORNING).json,
        ]

    first = ask()
    sandbox.forget_requests()
    assert ask() == first
    assert sandbox.requests().total == 0


def test_a_range_inside_a_cached_range_calls_no_provider(api, ada, reads):
    api.get(f"/users/{ada}/scheduling", **MORNING)
    reads()
    assert starts(api.get(f"/users/{ada}/scheduling", **(MORNING | {"end": "2026-12-03T11:00:00Z"}))) == [
        "10:00"
    ]
    api.get(f"/users/{ada}/scheduling", **WEEK)
    assert reads() == {}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_overlapping_range_reads_only_the_missing_weeks(api, sandbox, new_user, provider):
    account = sandbox.account(provider, "ada@example.com", events=[meeting("09:00", "10:00")])
    user = new_user(account)

    def busy(**query):
        return periods(api.get(f"/users/{user}/calendar/busy", primaryOnly="true", **query))

    assert busy(**WEEK) == [("09:00", "10:00")]
    # An event across the border of the two weeks, and one in the week that is cached.
    put_into(sandbox, account, "2026-12-09T23:00:00Z", "2026-12-10T01:00:00Z")
    put_into(sandbox, account, "2026-12-03T14:00:00Z", "2026-12-03T15:00:00Z")
    assert busy(start="2026-12-03", end="2026-12-11") == [
        ("09:00", "10:00"),
        ("2026-12-10 00:00", "2026-12-10 01:00"),
    ]


def put_into(sandbox, account, start, end):
    """Create an event at the provider, not through Almanac."""
    if account.provider == "google":
        url = "google/calendar/v3/calendars/primary/events"
        body = {"start": {"dateTime": start}, "end": {"dateTime": end}}
    else:
        url = "microsoft/v1.0/me/events"
        body = {
            name: {"dateTime": edge.removesuffix("Z"), "timeZone": "UTC"}
            for name, edge in (("start", start), ("end", end))
        }
    bearer = {"Authorization": f"Bearer {account.access_token}"}
    requests.post(f"{sandbox.url}/{url}", json=body, headers=bearer, timeout=5).raise_for_status()


def test_the_missing_part_is_read_as_one_hull(api, ada, reads):
    user = ada
    for start in ("2026-12-03", "2026-12-31"):
        api.get(f"/users/{user}/scheduling", start=start, end=f"{start}T12:00:00Z")
    reads()
    answer = api.get(f"/users/{user}/scheduling", start="2026-12-03", end="2027-01-02")
    assert answer.status_code == 200
    assert reads() == {"freebusy": 1}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_cached_week_that_is_read_again_shows_no_old_period(api, sandbox, new_user, provider):
    """One call reads both calendars over all weeks that either one lacks, even if the other has them."""
    calendars = [{"id": "main@example.com", "primary": True}, {"id": "side"}]
    old = [meeting("09:00", "10:00"), {"start": "2026-12-17T09:00:00Z", "end": "2026-12-17T10:00:00Z"}]
    account = sandbox.account(provider, "ada@example.com", calendars=calendars, events=old)
    user = new_user(account)

    def busy(ids, start, end):
        return periods(api.get(f"/users/{user}/calendar/busy", calendarIds=ids, start=start, end=end))

    assert busy("primary", "2026-12-03", "2026-12-10") == [("09:00", "10:00")]
    assert len(busy("primary", "2026-12-17", "2026-12-24")) == 1
    assert busy("side", "2026-12-10", "2026-12-24") == []
    there = AtProvider(sandbox, account)
    for event in there.events():
        there.delete(event["id"])
    put_into(sandbox, account, "2026-12-03T14:00:00Z", "2026-12-03T15:00:00Z")

    # Missing: the second week of the main calendar, the first of the other. The third is cached for both.
    assert busy("primary,side", "2026-12-03", "2026-12-24") == [
        ("14:00", "15:00"),
        ("2026-12-17 09:00", "2026-12-17 10:00"),
    ]


def test_no_cache_reads_again(api, sandbox, ada, reads):
    api.get(f"/users/{ada}/calendar/busy", **DAY)
    reads()
    for control in ("no-cache", "max-age=0", "No-Cache, max-age=60"):
        api.get(f"/users/{ada}/calendar/busy", headers={"Cache-Control": control}, **DAY)
        assert reads() == {"calendarList": 1, "freebusy": 1}


def test_max_age_holds_for_the_list_of_calendars_too(api, stores, ada, connection, reads):
    def ask(control):
        answer = api.get(f"/users/{ada}/calendar/busy", headers={"Cache-Control": control}, **DAY)
        return reads(), int(answer.headers["Age"])

    assert ask("") == ({"calendarList": 1, "freebusy": 1}, 0)
    assert ask("max-age=60") == ({}, 0)

    listed = stores.calendar_lists.load([connection(ada)])[connection(ada)]
    older = dataclasses.replace(listed, read_at=listed.read_at - 30_000)
    with stores.redis.pipeline() as pipe:
        stores.calendar_lists.store(pipe, connection(ada), older)
        pipe.execute()
    assert ask("max-age=60") == ({}, 30)
    assert ask("max-age=20") == ({"calendarList": 1, "freebusy": 1}, 0)


def test_max_age_reads_older_data_again(api, ada, reads):
    ask = lambda control: api.get(  # noqa: E731
        f"/users/{ada}/scheduling", headers={"Cache-Control": control}, **MORNING
    )
    ask("")
    reads()
    assert int(ask("max-age=60").headers["Age"]) < 60
    assert ask(f"max-age={10**30}").status_code == 200
    assert ask("max-age=soon").status_code == 200
    assert reads() == {}
    time.sleep(1.1)
    assert 1 <= int(ask("max-age=60").headers["Age"]) < 60
    assert reads() == {}
    assert ask("max-age=1").status_code == 200
    assert reads() == {"freebusy": 1}


@pytest.mark.parametrize("seconds", [10**16, 10**30])
@pytest.mark.parametrize("path", ["calendar/busy", "scheduling", "scheduling/explain"])
def test_max_age_of_any_length_is_answered_from_a_new_read(api, ada, path, seconds):
    moment = {"at": "2026-12-03T09:30:00Z", "slotDuration": "30"}
    answer = api.get(f"/users/{ada}/{path}", headers={"Cache-Control": f"max-age={seconds}"}, **DAY, **moment)

    assert answer.status_code == 200, answer.text


def test_an_answer_is_as_old_as_the_oldest_read_in_it(api, sandbox, new_user, new_organization):
    slug = new_organization()
    for name in ("ada", "bob"):
        user = new_user(sandbox.account("google", f"{name}@example.com"), name=name, slugs=(slug,))
        if name == "ada":
            api.get(f"/users/{user}/scheduling", **MORNING)
            time.sleep(1.1)
    assert int(api.get(f"/organizations/{slug}/scheduling", **MORNING).headers["Age"]) >= 1


def test_the_age_is_that_of_the_cached_week_when_another_week_is_read(api, stores, ada, connection):
    api.get(f"/users/{ada}/scheduling", **MORNING)
    (name,) = stores.redis.keys(f"busy:{connection(ada)}:*")
    value = stores.redis.get(name)
    form, read_at = HEAD.unpack_from(value)
    stores.redis.set(name, HEAD.pack(form, read_at - 30_000) + value[HEAD.size :], keepttl=True)

    both = api.get(f"/users/{ada}/scheduling", start="2026-12-03", end="2026-12-17")

    assert 30 <= int(both.headers["Age"]) < 60


def test_connection_deleted_and_posted_again_has_no_old_periods(api, sandbox, ada):
    assert starts(api.get(f"/users/{ada}/scheduling", **MORNING)) == ["10:00", "11:00"]
    api.delete(f"/users/{ada}/oauth/google")
    assert api.get(f"/users/{ada}/scheduling", **MORNING).status_code == 404
    connect(api, ada, sandbox.account("google", "eve@example.com", events=[meeting("11:00", "12:00")]))
    assert starts(api.get(f"/users/{ada}/scheduling", **MORNING)) == ["09:00", "10:00"]


def test_replaced_connection_has_no_periods_of_the_old_account(api, sandbox, ada, stores, connection):
    api.get(f"/users/{ada}/calendar/busy", **DAY)
    old = connection(ada)
    connect(api, ada, sandbox.account("google", "eve@example.com", events=[meeting("11:00", "12:00")]))
    assert periods(api.get(f"/users/{ada}/calendar/busy", **DAY)) == [("11:00", "12:00")]
    assert not cached(stores, [old])


@pytest.mark.parametrize(
    "planted", [b"", b"x", b"not sixteen bytes", b"{}" * 8, b"\x01" + bytes(15), b"\x02" + bytes(16)]
)
def test_an_invalid_cached_value_is_read_again(api, stores, ada, connection, reads, planted):
    api.get(f"/users/{ada}/scheduling", **MORNING)
    (name,) = stores.redis.keys(f"busy:{connection(ada)}:*")
    stores.redis.set(name, planted)
    reads()
    assert starts(api.get(f"/users/{ada}/scheduling", **MORNING)) == ["10:00", "11:00"]
    assert reads() == {"freebusy": 1}
    assert stores.redis.get(name) != planted


def test_data_that_the_cache_refuses_is_still_in_the_answer(api, stores, ada, connection):
    # The index has a value of another type: Redis answers WRONGTYPE in the middle of the writes.
    index = f"busy-of:{connection(ada)}"
    stores.redis.set(index, "foreign")
    assert starts(api.get(f"/users/{ada}/scheduling", **MORNING)) == ["10:00", "11:00"]
    # Writes of later tests to the same mailbox invalidate this connection too.
    stores.redis.delete(index)


def test_the_main_calendar_is_kept_once_whatever_it_is_called(api, stores, ada, connection, reads):
    ask = lambda **query: api.get(f"/users/{ada}/calendar/busy", **DAY, **query)  # noqa: E731
    ask()
    reads()
    for query in ({"primaryOnly": "true"}, {"calendarIds": "primary"}, {"calendarIds": "ada@example.com"}):
        assert periods(ask(**query)) == [("09:00", "10:00")]
    assert reads() == {}
    key = CalendarKey(connection(ada), PRIMARY)
    (kept,) = stores.redis.keys(f"busy:{key.connection}:*")
    assert kept.decode().startswith(f"busy:{key.connection}:{key.calendar}:")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_real_id_of_the_main_calendar_uses_what_is_cached_of_it(api, sandbox, new_user, reads, provider):
    main = {"google": "ada@example.com", "microsoft": "real-id"}[provider]
    calendars = [{"id": main, "primary": True}, {"id": "side"}]
    user = new_user(sandbox.account(provider, "ada@example.com", calendars=calendars))
    ask = lambda **query: api.get(f"/users/{user}/scheduling", slotDuration="30", **DAY, **query)  # noqa: E731
    first = ask().json
    reads()

    assert ask(calendarIds=main).json == first
    assert reads() == {}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_event_across_the_edge_of_what_is_cached_is_busy_as_a_whole(api, sandbox, new_user, provider):
    night = {"start": "2026-12-09T23:00:00Z", "end": "2026-12-10T01:00:00Z"}
    user = new_user(sandbox.account(provider, "ada@example.com", events=[night]))
    busy = lambda **edges: periods(api.get(f"/users/{user}/calendar/busy", primaryOnly="true", **edges))  # noqa: E731
    assert busy(**WEEK) == [("2026-12-09 23:00", "2026-12-10 00:00")]

    # The next week is not cached: its part of the event is joined to the cached one.
    assert busy(start="2026-12-03", end="2026-12-12") == [("2026-12-09 23:00", "2026-12-10 01:00")]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_event_at_the_edge_of_what_is_cached_stays_busy(api, sandbox, new_user, provider):
    """It begins when the part that is read ends."""
    night = meeting("00:00", "01:00")
    user = new_user(sandbox.account(provider, "ada@example.com", events=[night]))
    busy = lambda **edges: periods(api.get(f"/users/{user}/calendar/busy", primaryOnly="true", **edges))  # noqa: E731
    assert busy(**WEEK) == [("00:00", "01:00")]

    # The week before is not cached.
    assert busy(start="2026-11-30", end="2026-12-05") == [("00:00", "01:00")]


def test_a_failed_calendar_does_not_affect_the_cache_of_the_others(api, sandbox, new_user, reads):
    calendars = [{"primary": True}, {"id": "team"}]
    user = new_user(sandbox.account("google", "ada@example.com", calendars=calendars))
    sandbox.fault(calendar_id="team", reason="internalError", times=1)
    first = api.get(f"/users/{user}/calendar/busy", **DAY)
    assert [each["calendarId"] for each in first.json["failedCalendars"]] == ["team"]
    reads()
    second = api.get(f"/users/{user}/calendar/busy", **DAY)
    assert second.json["failedCalendars"] == []
    assert reads() == {"freebusy": 1}


SECOND = 1000
ONE_DAY = 86_400_000


@pytest.fixture
def lenient(new_app):
    """The web application of an installation that serves stale answers for a minute."""
    return new_app(busy_ttl_seconds=10.0, busy_stale_seconds=60.0)


def test_a_stale_calendar_is_read_again_unless_it_is_watched(lenient, unique):
    """The provider reports every change of a watched one."""
    fresh, stale, watched = (CalendarKey(unique("connection"), "primary") for _ in range(3))
    now = time.time_ns() // 1_000_000

    with lenient.app_context():
        busy, redis = services().stores.busy, services().stores.redis
        start, end = busy.hull(now, now + ONE_DAY)
        busy.watch(watched, "channel", 3600.0)
        ages = {fresh: SECOND, stale: 20 * SECOND, watched: 20 * SECOND}
        generations = busy.begin_reads([each.connection for each in ages], {})
        with redis.pipeline() as pipe:
            reads = [
                BusyRead(key, Intervals.of(()), start, end, now - age, generations[key.connection])
                for key, age in ages.items()
            ]
            busy.store(pipe, reads)
            pipe.execute()
        keys = list(ages)
        known = busy.load(keys, start, end)

        assert known.missing == {}
        assert jobs.stale_calendars(keys, known) == [keys.index(stale)]


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_connection_deleted_during_read_answers_once_more(api, app, sandbox, new_user, provider):
    user = new_user(sandbox.account(provider, "ada@example.com", events=[meeting("09:00", "10:00")]))
    sandbox.fault(email="ada@example.com", latency_ms=700)
    answers = []
    reader = threading.Thread(
        target=lambda: answers.append(
            Api(app.test_client(), api.key).get(f"/users/{user}/scheduling", **MORNING)
        )
    )
    sandbox.forget_requests()
    reader.start()
    while not sandbox.requests().total:
        time.sleep(0.01)
    assert api.delete(f"/users/{user}/oauth/{provider}").status_code == 200
    reader.join()
    # Google's grant is revoked during the request; the call in progress may succeed or fail.
    assert answers[0].status_code in (200, 401)
    if answers[0].status_code == 200:
        assert starts(answers[0]) == ["10:00", "11:00"]
    assert api.get(f"/users/{user}/scheduling", **MORNING).status_code == 404
