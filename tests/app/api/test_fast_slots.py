"""Which requests for slots the event loop answers itself, and which it passes to the plain path.

``tests.app.availability.test_warm_path_oracle`` compares the answers of both.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from app.http import authentication
from store.cache.busy_cache import CalendarKey
from store.cache.fast_redis import EventLoopRedis
from store.cache.versioned_cache import VERSION_KEY
from store.coordination.api_rate_limiter import RemainingQuota
from store.sql.models import now
from store.sql.queries import api_keys, connections
from tests.app.cached_people import MONDAYS, SEED, Person, cache, create
from tests.app.fast_client import FastClient
from tests.conftest import Api, stores_of
from tests.waiting import until

PATH = "/users/plain-0-0/scheduling"
ORIGIN = "https://calendar.example"
DAY = {"start": MONDAYS[0], "end": f"{MONDAYS[0]}T18:00:00", "slotDuration": "60"}


@pytest.fixture
def warm(fast, api, cached_people):
    """A client whose key and user are cached in this process."""
    # A worker that changes a connection meanwhile invalidates what this process has cached.
    until(lambda: api.get(PATH, **DAY).status_code == 200 and fast.get(PATH, **DAY) is not None)
    return fast


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"Cache-Control": "no-cache"}, {}),
        ({"Transfer-Encoding": "chunked"}, {}),
        ({"Content-Length": "2"}, {}),
        ({"X-Timezone": "Mars/Olympus"}, {}),
        ({"Authorization": "Bearer unknown"}, {}),
        ({"Authorization": "Basic abc"}, {}),
        ({}, {"calendarIds": "primary"}),
        ({}, {"slotDuration": "0"}),
        ({}, {"end": MONDAYS[0]}),
        ({}, {"provider": "microsoft"}),
        ({}, {"provider[]": "google"}),
        ({}, {"timeZone": "Mars/Olympus"}),
        # Not cached.
        ({}, {"end": "2027-07-01", "slotDuration": "10080"}),
        # Too many slots, and too many buckets.
        ({}, {"end": "2026-11-20", "slotDuration": "15"}),
        ({}, {"start": "2026-11-01", "end": "2027-05-30", "slotDuration": "10080"}),
        # Too long a query.
        ({}, {"other": "x" * 2048}),
    ],
)
def test_requests_that_need_more_take_the_plain_path(warm, headers, query):
    assert warm.get(PATH, headers, **{**DAY, **query}) is None


@pytest.mark.parametrize("path", ["/users/nobody-here/scheduling", "/users/%70lain-0-0/scheduling", "/users"])
def test_other_paths_take_the_plain_path(warm, path):
    assert warm.get(path, **DAY) is None


def test_other_methods_take_the_plain_path(warm):
    assert warm.get(PATH, method="HEAD", **DAY) is None


def test_a_repeated_header_takes_the_plain_path(warm):
    assert warm.get(PATH, {"X-Request-Id": "one"}, **DAY) is not None
    assert warm.get(PATH, {"X-Request-Id": "one", "x-request-id": "two"}, **DAY) is None


def test_long_answers_are_compressed_for_clients_that_accept_gzip(warm, api):
    week = {**DAY, "end": MONDAYS[1]}
    plain = api.get(PATH, **week)

    short = warm.get(PATH, {"Accept-Encoding": "gzip"}, **DAY)
    long = warm.get(PATH, {"Accept-Encoding": "deflate, GZIP"}, **week)

    assert "Content-Encoding" not in short.headers
    assert long.headers["Content-Encoding"] == "gzip"
    assert int(long.headers["Content-Length"]) == len(long.body) < len(plain.data) // 4
    assert long.json == plain.json


@pytest.mark.parametrize(("sent", "kept"), [("a-request.1", True), ("not valid", False), ("", False)])
def test_the_client_s_request_id_is_kept_if_it_is_valid(warm, sent, kept):
    answer = warm.get(PATH, {"X-Request-Id": sent}, **DAY)

    assert (answer.headers["X-Request-Id"] == sent) is kept
    assert answer.headers["X-Request-Id"]


def test_a_revoked_key_stops_counting_at_once(warm, api, stores):
    with stores.database.writing() as session:
        assert len(api_keys.revoke(session, api.key, prefix="alm_")) == 1

    assert warm.get(PATH, **DAY) is None
    assert api.get(PATH, **DAY).status_code == 401


def test_a_key_that_is_revoked_during_the_load_does_not_count(warm, api, new_api, stores, monkeypatch):
    """Another request may have cached rows of the new version by then."""
    other, load = new_api(), warm.fast._load

    async def late(parsed):
        with stores.database.writing() as session:
            api_keys.revoke(session, api.key, prefix="alm_")
        assert other.get(PATH, **DAY).status_code == 200
        return await load(parsed)

    monkeypatch.setattr(warm.fast, "_load", late)

    assert warm.get(PATH, **DAY) is None


def test_an_expired_key_does_not_count(new_api, app, cached_people):
    expires_at = now() + timedelta(seconds=1)
    short = new_api(expires_at=expires_at)
    assert short.get(PATH, **DAY).status_code == 200
    with FastClient(app, short.key) as client:
        until(lambda: now() > expires_at)

        assert client.get(PATH, **DAY) is None


def test_a_key_of_another_organization_gets_the_plain_path(new_api, app, cached_people):
    other = new_api(organization="plain-1")
    assert other.get(PATH, **DAY).status_code == 404
    with FastClient(app, other.key) as client:
        assert client.get(PATH, **DAY) is None


@pytest.fixture
def somebody(stores, unique):
    """A user of the test's own, whose periods were read ten seconds ago."""
    person = Person(Random(SEED), unique("somebody"))
    create(stores, unique("somebodys-team"), person)
    cache(stores, person, age=10_000)
    return person


def test_the_age_is_that_of_the_cached_periods(fast, api, somebody):
    path = f"/users/{somebody.id}/scheduling"
    until(lambda: api.get(path, **DAY).status_code == 200 and fast.get(path, **DAY) is not None)

    assert 10 <= int(fast.get(path, **DAY).headers["Age"]) < 60


def test_a_fast_answer_is_a_use_of_the_calendar(fast, app, api, somebody, monkeypatch):
    """Watched calendars are audited only while requests use them."""
    path, noted = f"/users/{somebody.id}/scheduling", []
    until(lambda: api.get(path, **DAY).status_code == 200 and fast.get(path, **DAY) is not None)
    monkeypatch.setattr(stores_of(app).asked_calendars, "note", lambda keys, _used: noted.extend(keys))

    assert fast.get(path, **DAY) is not None

    assert noted == [CalendarKey(somebody.connection, "primary")]


def test_a_user_whose_account_has_ended_gets_the_plain_path(fast, api, somebody, stores):
    """Its periods are still cached."""
    path = f"/users/{somebody.id}/scheduling"
    with stores.database.writing() as session:
        connections.mark_dead(session, somebody.connection, "the grant has ended")

    assert api.get(path, **DAY).status_code == 401
    assert fast.get(path, **DAY) is None


def test_nothing_is_answered_while_redis_has_no_version(warm, stores):
    stores.redis.delete(VERSION_KEY)

    assert warm.get(PATH, **DAY) is None


def test_nothing_is_answered_while_redis_is_down(app, api, cached_people):
    with pytest.MonkeyPatch.context() as patch, FastClient(app, api.key) as client:
        assert api.get(PATH, **DAY).status_code == 200
        # The fast path has connections of its own.
        patch.setattr(client.fast, "_redis", EventLoopRedis("redis://127.0.0.1:1", seconds=1))
        assert client.get(PATH, **DAY) is None


def test_the_fast_path_pauses_after_a_failure_of_redis(app, api, cached_people, monkeypatch, caplog):
    with FastClient(app, api.key) as client:
        assert api.get(PATH, **DAY).status_code == 200
        with monkeypatch.context() as patch:
            patch.setattr(client.fast, "_redis", EventLoopRedis("redis://127.0.0.1:1", seconds=1))
            assert client.get(PATH, **DAY) is None
        assert client.get(PATH, **DAY) is None

        # A writing worker invalidates the cached rows, which the plain path reads again.
        until(lambda: client.get(PATH, **DAY) is not None, meanwhile=lambda: api.get(PATH, **DAY))

    assert [record.getMessage() for record in caplog.records if record.name.endswith("fast_slots")] == [
        "fast path paused, Redis failed: ConnectionError"
    ]


def test_an_error_inside_is_logged_and_the_plain_path_answers(warm, monkeypatch, caplog):
    def broken(*_):
        raise ValueError("planted")

    monkeypatch.setattr("app.api.fast_slots.slots_of_user", broken)

    assert warm.get(PATH, **DAY) is None
    assert "planted" in caplog.text


def test_a_long_answer_is_sent_in_pieces(warm, api, monkeypatch):
    monkeypatch.setattr("app.server.wsgi_adapter.PIECE", 100)

    assert warm.get(PATH, **DAY).body == api.get(PATH, **DAY).data


def test_stale_periods_take_the_plain_path_which_refreshes_them(new_app, api, stores, unique):
    app = new_app(busy_ttl_seconds=0.001, busy_stale_seconds=3600)
    # A user of its own: the refresh, which a worker of other tests may make, ends the connection.
    person = Person(Random(SEED), unique("stale"))
    create(stores, unique("stale-team"), person)
    cache(stores_of(app), person)
    path = f"/users/{person.id}/scheduling"
    with FastClient(app, api.key) as client:
        assert Api(app.test_client(), api.key).get(path, **DAY).status_code == 200

        assert client.get(path, **DAY) is None


@pytest.fixture
def production(new_app, new_api, cached_people):
    """Clients of both paths in an installation with a rate limit and CORS; their key has ten requests."""
    app, key = new_app(rate_limit=10, cors_origins=(ORIGIN,)), new_api().key
    plain = Api(app.test_client(), key)
    with FastClient(app, key) as client:
        assert plain.get(PATH, **DAY).status_code == 200
        yield plain, client


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": ORIGIN},
        {"Origin": "https://other.example"},
        {"Accept-Encoding": "gzip, deflate, br, zstd", "Origin": ORIGIN},
        {"Accept-Encoding": "gzip;q=0"},
        {"Cache-Control": "max-age=3600"},
    ],
)
def test_every_setting_is_served_as_on_the_plain_path(production, headers):
    plain, client = production
    week = {**DAY, "end": MONDAYS[1]}

    expected, quick = plain.get(PATH, headers, **week), client.get(PATH, headers, **week)

    assert quick.body == expected.data
    found = [{name.lower(): value for name, value in each.headers.items()} for each in (expected, quick)]
    for each in found:
        del each["x-request-id"], each["age"], each["ratelimit-reset"]
    remaining = [int(each.pop("ratelimit-remaining")) for each in found]
    assert found[0] == found[1]
    assert remaining == [8, 7]


def test_both_paths_count_for_one_limit_and_each_request_once(production):
    plain, client = production
    for _ in range(9):
        assert client.get(PATH, **DAY).status_code == 200

    assert client.get(PATH, **DAY) is None
    assert client.scope[authentication.COUNTED].refused
    assert plain.get(PATH, **DAY).status_code == 429
    counted = RemainingQuota(refused=True, limit=10, remaining=0, reset=7)
    refused = plain.call("GET", PATH, environ_overrides={authentication.COUNTED: counted}, query_string=DAY)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "7")


def test_both_paths_count_for_the_limit_of_an_organization(
    app, api, new_api, new_organization, cached_people
):
    slug = new_organization()
    api.post(f"/organizations/{slug}/members", {"userIds": ["plain-0-0"]})
    key = new_api(organization=slug).key
    plain = Api(app.test_client(), key)
    with FastClient(app, key) as client:
        until(lambda: plain.get(PATH, **DAY).status_code == 200 and client.get(PATH, **DAY) is not None)

        api.put(f"/organizations/{slug}", {"quotas": {"requestsPerMinute": 3}})

        # The first request after a change loads the key again.
        until(lambda: plain.get(PATH, **DAY).headers.get("RateLimit-Limit") == "3")
        answer = client.get(PATH, **DAY)
        assert (answer.headers["RateLimit-Limit"], answer.headers["RateLimit-Remaining"]) == ("3", "1")
        assert client.get(PATH, **DAY).headers["RateLimit-Remaining"] == "0"
        assert client.get(PATH, **DAY) is None
        assert client.scope[authentication.COUNTED].of_organization
    refused = plain.get(PATH, **DAY)
    assert (refused.status_code, refused.json["quota"]) == (429, "requestsPerMinute")


def test_a_fast_request_is_logged(warm, api, caplog):
    with caplog.at_level("INFO", logger="app.http.requests"):
        warm.get(PATH, **DAY)

    (record,) = caplog.records
    assert record.getMessage() == "request answered: GET /v1/users/{userId}/scheduling 200"
    assert api.key.startswith(record.key)
    assert record.status == 200
