"""A feed in the real service: its age, and the zone of its floating times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.installation.builder import installed
from tests.providers.ical.texts import calendar, event
from tests.waiting import until

pytestmark = pytest.mark.slow

DAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=7)
HOURS = {"start": (DAY + timedelta(hours=9)).isoformat(), "end": (DAY + timedelta(hours=12)).isoformat()}
FRESH = {"Cache-Control": "no-cache"}


@pytest.fixture(scope="module")
def made(environment, tmp_path_factory):
    """An installation that may call servers on this machine."""
    folder = tmp_path_factory.mktemp("installed")
    with installed(
        environment, folder, ALMANAC_ICS_ALLOW_PRIVATE="true", ALMANAC_ICS_REFRESH_SECONDS="300"
    ) as made:
        yield made


@pytest.fixture
def subscribed(made, server, unique):
    """A user with a feed of one event."""

    def subscribe(lines: str) -> str:
        user = made.user(unique("ada"))
        body = {"provider": "ics", "url": server.put(calendar(event(lines)), f"/{user}.ics")}
        answer = made.call("POST", f"/users/{user}/connections", json=body)
        assert answer.status_code == 201, answer.text
        return user

    return subscribe


def busy(made, user):
    answer = made.get(f"/users/{user}/calendar/busy", FRESH, **HOURS)
    assert answer.status_code == 200, answer.text
    return answer


def hours_of(answer):
    return [datetime.fromisoformat(each["start"]).hour for each in answer.json()["data"]]


def test_the_age_is_that_of_the_feed_that_a_worker_kept(made, server, subscribed):
    user = subscribed(f"DTSTART:{DAY:%Y%m%d}T100000Z\nDTEND:{DAY:%Y%m%d}T110000Z")
    assert hours_of(busy(made, user)) == [10]

    until(lambda: int(busy(made, user).headers["Age"]) >= 2)


def test_times_without_a_zone_count_in_that_of_the_profile(made, subscribed):
    user = subscribed(f"DTSTART:{DAY:%Y%m%d}T100000\nDTEND:{DAY:%Y%m%d}T110000")
    assert hours_of(busy(made, user)) == [10]
    path = f"/users/{user}/availability"
    # Arizona has no daylight time: 10:00 is 17:00 UTC.
    assert made.call("PUT", path, json={"timeZone": "America/Phoenix"}).status_code == 200
    late = {"start": (DAY + timedelta(hours=9)).isoformat(), "end": (DAY + timedelta(hours=20)).isoformat()}
    cached = made.get(f"/users/{user}/calendar/busy", **late)
    assert hours_of(cached) == [17]
    assert made.call("DELETE", path).status_code == 200
    assert hours_of(made.get(f"/users/{user}/calendar/busy", **late)) == [10]


def test_changes_are_followed(made, subscribed):
    user = subscribed(f"DTSTART:{DAY:%Y%m%d}T100000Z\nDTEND:{DAY:%Y%m%d}T110000Z")
    path = f"/users/{user}/calendar/changes"
    first = made.get(path, start=HOURS["start"], end=HOURS["end"]).json()
    (entry,) = first["data"]
    assert (entry["type"], entry["event"]["id"]) == ("updated", "one")
    assert made.get(path, cursor=first["cursor"]).json()["data"] == []
