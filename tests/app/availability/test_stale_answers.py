"""Stale answers: served at once while a refresh runs in the background, unless the client forbids it."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.app.at_provider import AtProvider
from tests.app.days import DAY, PROVIDERS, meeting, periods
from tests.conftest import Api
from tests.waiting import no_read_is_under_way, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

FRESH = 0.3
PATIENCE = 20.0
BEFORE = [("11:00", "12:00")]
# The periods at the provider now: a new event starts at nine.
AFTER = [("09:00", "10:00"), ("11:00", "12:00")]


@pytest.fixture(params=PROVIDERS)
def account(request, sandbox, unique):
    # A mailbox of its own: no read is cached while a write of another test is under way.
    return sandbox.account(request.param, f"{unique('ada')}@example.com", events=[meeting("11:00", "12:00")])


@pytest.fixture
def user(new_user, account):
    return new_user(account)


@pytest.fixture
def lenient(new_app, api):
    """A client of an installation that serves, and whose worker caches, stale answers for a minute."""
    app = new_app(busy_ttl_seconds=FRESH, busy_stale_seconds=60.0)
    return Api(app.test_client(), api.key)


@pytest.fixture
def stale(sandbox, account, user, lenient):
    """The user's cached periods are stale and differ from the provider's."""
    assert periods(busy(lenient, user)) == BEFORE
    AtProvider(sandbox, account).post()
    time.sleep(FRESH + 0.01)
    sandbox.forget_requests()


def busy(api, user, headers=None, **query):
    answer = api.get(f"/users/{user}/calendar/busy", headers, **DAY, **query)
    assert answer.status_code == 200, answer.json
    return answer


def soon(ask, expected):
    """Repeat the request until the condition holds."""
    give_up = time.monotonic() + PATIENCE
    while (found := ask()) != expected:
        assert time.monotonic() < give_up, found
        time.sleep(0.02)


def reads(sandbox):
    counted = sandbox.requests().by_operation
    return counted.get("google.freebusy.query", 0) + counted.get("microsoft.calendarView.list", 0)


@pytest.mark.usefixtures("stale")
def test_a_stale_answer_comes_at_once_and_the_next_is_new(sandbox, lenient, user):
    # An answer that waited for the provider would have the new event.
    sandbox.fault(latency_ms=1000)
    assert periods(busy(lenient, user)) == BEFORE
    soon(lambda: periods(busy(lenient, user)), AFTER)


@pytest.mark.usefixtures("stale")
@pytest.mark.parametrize("directive", ["no-cache", "max-age=0"])
def test_a_no_cache_request_waits_for_the_provider(lenient, user, directive):
    assert periods(busy(lenient, user, {"Cache-Control": directive})) == AFTER


@pytest.mark.usefixtures("stale")
def test_an_answer_is_not_older_than_the_requested_age(lenient, user):
    time.sleep(1.0)
    assert periods(busy(lenient, user, {"Cache-Control": "max-age=1"})) == AFTER


@pytest.mark.usefixtures("stale")
def test_of_many_stale_answers_at_once_one_is_renewed(sandbox, lenient, user, stores):
    sandbox.fault(latency_ms=500)
    app = lenient.client.application
    with ThreadPoolExecutor(8) as threads:
        ask = lambda _: periods(busy(Api(app.test_client(), lenient.key), user))  # noqa: E731
        assert list(threads.map(ask, range(8))) == [BEFORE] * 8
    # Each request has enqueued its refresh before its answer.
    until(lambda: no_read_is_under_way(stores.redis))
    assert reads(sandbox) == 1


@pytest.mark.usefixtures("stale")
def test_the_main_calendar_alone_is_renewed_without_the_list(sandbox, lenient, user):
    assert periods(busy(lenient, user, primaryOnly="true")) == BEFORE
    soon(lambda: periods(busy(lenient, user, primaryOnly="true")), AFTER)
    listing = {"google.calendarList.list", "microsoft.calendars.list"}
    assert not listing & set(sandbox.requests().by_operation)


@pytest.mark.usefixtures("stale")
def test_a_provider_that_fails_leaves_the_stale_answer(sandbox, lenient, user):
    sandbox.fault(status=500)
    for _ in range(3):
        answer = busy(lenient, user)
        assert periods(answer) == BEFORE
        assert answer.json["failedCalendars"] == []
        time.sleep(0.2)
    assert int(answer.headers["Age"]) <= 60
    sandbox.clear_faults()
    soon(lambda: periods(busy(lenient, user)), AFTER)


@pytest.mark.usefixtures("stale")
def test_a_broker_that_is_down_leaves_the_stale_answer(new_app, api, user, caplog):
    app = new_app(busy_ttl_seconds=FRESH, busy_stale_seconds=60.0, broker_url="redis://127.0.0.1:1/0")
    assert periods(busy(Api(app.test_client(), api.key), user)) == BEFORE
    assert "stale calendars could not be refreshed: OperationalError" in caplog.text


@pytest.mark.usefixtures("stale")
def test_a_stale_list_is_refreshed_also_with_uncached_ranges(sandbox, lenient, user):
    later = {"start": "2027-01-07T00:00:00Z", "end": "2027-01-08T00:00:00Z"}
    assert lenient.get(f"/users/{user}/calendar/busy", **later).status_code == 200
    lists = {"google.calendarList.list", "microsoft.calendars.list"}
    soon(lambda: sum(n for name, n in sandbox.requests().by_operation.items() if name in lists), 1)
