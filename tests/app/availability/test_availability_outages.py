"""Outages of Almanac's own services, and concurrent changes: 503 or a correct answer, never an empty one."""

from __future__ import annotations

import threading
import time

import pytest

from store.config import embedded_redis
from tests.app.days import DAY, MORNING, PROVIDERS, meeting, starts
from tests.conftest import Api, application, settings_of

pytestmark = pytest.mark.slow


@pytest.fixture
def without_redis(environment, settings, database, api, tmp_path):
    """The application with the shared database, and a Redis that has just stopped."""
    changed = settings_of(
        environment
        | {
            "ALMANAC_REDIS_URL": f"unix://{tmp_path}/redis.sock",
            "ALMANAC_DATABASE_URL": settings.database_url,
            "ALMANAC_SECRET_KEY": settings.secret_key,
            "ALMANAC_ENCRYPTION_KEYS": "A" * 43 + "=",
        }
    )
    redis = embedded_redis.start(tmp_path, tmp_path / "redis.sock")
    redis.kill()
    redis.wait()
    with application(changed) as app:
        yield Api(app.test_client(), api.key)


@pytest.mark.parametrize("path", ["/users/{}/scheduling", "/users/{}/calendar/busy"])
def test_without_redis_the_answer_is_503_and_not_free_time(without_redis, sandbox, new_user, path):
    user = new_user(sandbox.account("google", "ada@example.com"))
    answer = without_redis.get(path.format(user), **DAY)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json["data"] is None
    assert "redis" not in answer.text.lower()


@pytest.fixture
def without_database(environment, settings, api, database, tmp_path):
    """The application on an empty database."""
    changed = settings_of(environment | {"ALMANAC_DATA_DIR": str(tmp_path)})
    with application(changed) as app:
        yield Api(app.test_client(), api.key)


def test_without_a_database_the_answer_is_503(without_database):
    answer = without_database.get("/users/ada/scheduling", **DAY)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert "sql" not in answer.text.lower()


@pytest.mark.usefixtures("worker")
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
