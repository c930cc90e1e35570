"""The rate limit of each API key: on every keyed route, for every status, and off without the setting."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from store.cache.versioned_cache import CachedRows
from store.config import embedded_redis
from store.stores import Stores
from tests.app.days import DAY
from tests.conftest import Api, stores_of

HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")


@pytest.fixture
def limited(new_app: Callable[..., Flask], new_api: Callable[..., Api]) -> Callable[..., Api]:
    """Make a caller with its own key and this many requests a minute."""

    def make(limit: int, **rights: object) -> Api:
        return Api(new_app(rate_limit=limit).test_client(), new_api(**rights).key)

    return make


def limits(answer: TestResponse) -> list[str | None]:
    return [answer.headers.get(name) for name in HEADERS]


def test_requests_over_the_limit_get_retry_after(limited):
    api = limited(3)

    answers = [api.get("/users") for _ in range(4)]

    assert [each.status_code for each in answers] == [200, 200, 200, 429]
    assert [limits(each)[:2] for each in answers] == [["3", "2"], ["3", "1"], ["3", "0"], ["3", "0"]]
    refused = answers[-1]
    seconds = refused.json["retryAfter"]
    assert 0 < seconds <= 60
    assert refused.headers["Retry-After"] == refused.headers["RateLimit-Reset"] == str(seconds)
    sentence = f"This API key is limited to 3 requests a minute; try again in {seconds} s"
    assert refused.json == {
        "data": None,
        "error": sentence,
        "code": "keyRateLimited",
        "retryAfter": seconds,
    }


def test_each_key_has_a_limit_of_its_own(limited, new_api):
    first = limited(1)
    second = Api(first.client, new_api().key)
    assert first.get("/users").status_code == 200
    assert first.get("/users").status_code == 429
    assert second.get("/users").status_code == 200


def test_an_organization_has_a_limit_for_all_its_keys(api, new_api, new_app, new_organization):
    slug = new_organization()
    first, other = new_api(organization=slug), new_api()
    # In another process, with caches of its own.
    second = Api(new_app().test_client(), new_api(organization=slug).key)
    assert second.get("/users").status_code == 200
    assert limits(first.get("/users")) == [None, None, None]
    api.put(f"/organizations/{slug}", {"quotas": {"requestsPerMinute": 3}})

    answers = [each.get("/users") for each in (first, second, first, second)]

    assert [each.status_code for each in answers] == [200, 200, 200, 429]
    assert [limits(each)[:2] for each in answers] == [["3", "2"], ["3", "1"], ["3", "0"], ["3", "0"]]
    refused = answers[-1]
    seconds = refused.json["retryAfter"]
    assert refused.headers["Retry-After"] == refused.headers["RateLimit-Reset"] == str(seconds)
    assert refused.json == {
        "data": None,
        "error": "The API keys of this organization have used up its requests of this minute; "
        f"try again in {seconds} s",
        "code": "quotaExceeded",
        "quota": "requestsPerMinute",
        "retryAfter": seconds,
    }
    assert other.get("/users").status_code == 200
    # A change counts from the next request on, in each process.
    api.put(f"/organizations/{slug}", {"quotas": {"requestsPerMinute": 4}})
    assert second.get("/users").status_code == 200
    api.put(f"/organizations/{slug}", {"quotas": {"requestsPerMinute": None}})
    assert limits(second.get("/users")) == [None, None, None]


def test_a_key_has_its_own_limit_or_the_usual_one(new_app, new_api):
    client = new_app(rate_limit=600).test_client()
    told = [limits(Api(client, new_api(rate_limit=own).key).get("/users"))[0] for own in (None, 3, 9000)]
    assert told == ["600", "3", "9000"]


def test_a_key_keeps_its_own_limit_within_that_of_its_organization(api, new_api, new_organization):
    slug = new_organization()
    api.put(f"/organizations/{slug}", {"quotas": {"requestsPerMinute": 5}})
    small, large = new_api(organization=slug, rate_limit=2), new_api(organization=slug)

    codes = [small.get("/users").json.get("code") for _ in range(9)]

    assert codes == [None] * 2 + ["keyRateLimited"] * 7
    # Requests over the limit of one key take nothing from the others.
    assert [large.get("/users").status_code for _ in range(4)] == [200] * 3 + [429]


def test_what_takes_no_key_is_not_counted(new_app):
    app = new_app(rate_limit=1)
    client: FlaskClient = app.test_client()
    for path in ("/healthz", "/metrics", "/v1/openapi.json", "/v1/docs", "/dashboard/sign-in"):
        answers = [client.get(path) for _ in range(3)]
        assert 429 not in [each.status_code for each in answers], path
        assert limits(answers[0]) == [None, None, None], path


def test_a_key_that_is_unknown_is_not_counted(limited):
    api = limited(1)
    stranger = Api(api.client, "alm_unknown")
    answers = [stranger.get("/users") for _ in range(3)]
    assert {each.status_code for each in answers} == {401}
    assert limits(answers[0]) == [None, None, None]


def test_a_read_only_key_counts_what_it_may_not_do(limited):
    api = limited(1, read_only=True)
    assert api.post("/users", {"id": "somebody"}).status_code == 403
    assert api.post("/users", {"id": "somebody"}).status_code == 429


def test_the_bare_list_of_events_refuses_by_a_bare_string(limited):
    api = limited(1)
    dates = {"minDate": "2026-12-03", "maxDate": "2026-12-04"}
    assert api.get("/users/nobody/calendar/events", **dates).status_code == 404
    refused = api.get("/users/nobody/calendar/events", **dates)
    assert refused.status_code == 429
    assert refused.json.startswith("This API key is limited to 1 ")
    assert refused.headers["Retry-After"]


def test_replayed_answer_has_the_current_rate_limit_headers(limited, unique):
    api = limited(5)
    body, headers = {"id": unique("repeated")}, {"Idempotency-Key": "once"}
    first = api.post("/users", body, headers=headers)
    again = api.post("/users", body, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert [limits(each)[1] for each in (first, again)] == ["4", "3"]
    assert len(again.headers.getlist("RateLimit-Remaining")) == 1


def test_concurrent_requests_over_the_limit_are_429(limited):
    api = limited(10)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: _status(api), range(40)))
    assert sorted(answers) == [200] * 10 + [429] * 30


def _status(api: Api) -> int:
    return Api(api.client.application.test_client(), api.key).get("/organizations").status_code


def test_without_a_limit_nothing_is_counted(api, stores: Stores):
    before = set(stores.redis.scan_iter("quota:*"))
    answer = api.get("/users")
    assert answer.status_code == 200
    assert limits(answer) == [None, None, None]
    assert set(stores.redis.scan_iter("quota:*")) == before


def test_without_redis_what_needs_none_is_answered(new_app, api, tmp_path, caplog, monkeypatch):
    socket = tmp_path / "redis.sock"
    redis = embedded_redis.start(tmp_path, socket)
    app = new_app(rate_limit=2, redis_url=f"unix://{socket}")
    caller = Api(app.test_client(), api.key)
    assert caller.get("/users").headers["RateLimit-Remaining"] == "1"
    redis.kill()
    redis.wait()

    answers = [caller.get("/users") for _ in range(4)]

    assert {each.status_code for each in answers} == {200}
    assert limits(answers[0]) == [None, None, None]
    # Redis was reachable while the version was read.
    rows = CachedRows(b"of before")
    monkeypatch.setattr(stores_of(app).versioned_cache, "current", lambda: rows)
    late = caller.get("/users/nobody/scheduling", **DAY)
    assert late.status_code == 404
    assert "request not counted for the rate limit, Redis failed" in caplog.text
