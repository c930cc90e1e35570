"""Shares: what one tenant may use of what all tenants use, and what the metrics show of it."""

from __future__ import annotations

import fakeredis
import pytest

from store.coordination import shares
from store.coordination.shares import (
    REPORT_SECONDS,
    REPORTS,
    UNBOUND,
    Exhausted,
    Quota,
    QuotaExceeded,
    SharedPlaces,
    share_of,
)

ACME, RIVAL, THIRD = 1, 2, 3


@pytest.fixture
def places() -> SharedPlaces:
    """Ten places, of which one tenant has at most six."""
    return SharedPlaces(Quota.BODY_BYTES, 10, 6)


@pytest.mark.parametrize(
    ("total", "percent", "share"), [(10, 50, 5), (9, 50, 4), (10, 100, 10), (1, 50, 1), (0, 50, 1)]
)
def test_a_share_is_a_part_of_the_total_and_at_least_one(total, percent, share):
    assert share_of(total, percent) == share


def test_a_tenant_has_no_more_than_its_share(places):
    places.take(ACME, 6)

    with pytest.raises(QuotaExceeded) as refused:
        places.take(ACME)

    assert refused.value.quota is Quota.BODY_BYTES
    assert not places.has_room(ACME)
    assert (places.used_by(ACME), places.largest, places.is_full) == (6, 6, False)
    # Nothing of it was counted.
    places.take(RIVAL, 4)
    assert places.is_full


def test_all_tenants_have_no_more_than_there_is(places):
    places.take(ACME, 6)
    places.take(RIVAL, 3)

    with pytest.raises(Exhausted):
        places.take(THIRD, 2)

    assert places.used_by(THIRD) == 0
    assert places.has_room(THIRD)
    places.take(THIRD)
    assert not places.has_room(RIVAL)


def test_what_is_released_can_be_taken_again(places):
    places.take(ACME, 6)
    places.release(ACME, 2)
    places.take(UNBOUND, 6)
    assert (places.used_by(ACME), places.used_by(UNBOUND), places.largest) == (4, 6, 6)

    places.release(ACME, 4)
    places.release(UNBOUND, 6)

    assert (places.largest, places.is_full) == (0, False)


def test_a_share_of_everything_is_none():
    """The total decides then: its error says that the service is busy, and not that a tenant is."""
    places = SharedPlaces(Quota.WAITING_READS, 2, 2)
    places.take(ACME, 2)
    with pytest.raises(Exhausted):
        places.take(ACME)


def test_the_metrics_show_the_most_that_a_tenant_uses_in_one_process(places):
    redis = fakeredis.FakeRedis()
    other = SharedPlaces(Quota.BODY_BYTES, 10, 6)
    turns = SharedPlaces(Quota.WEBHOOK_TURNS, 10, 6)
    places.take(ACME, 2)
    places.take(RIVAL, 3)
    other.take(ACME, 5)

    shares.report(redis, "web-1", places, turns)
    shares.report(redis, "web-2", other)

    assert shares.reported(redis) == {Quota.BODY_BYTES: 5, Quota.WEBHOOK_TURNS: 0}


def test_the_report_of_a_process_that_has_ended_does_not_count(places):
    redis = fakeredis.FakeRedis()
    places.take(ACME, 2)
    shares.report(redis, "web-1", places)
    seconds, _ = redis.time()
    old = int(seconds - REPORT_SECONDS - 2)
    redis.hset(REPORTS, f"{Quota.BODY_BYTES}:gone", f"{old}:6")

    assert shares.reported(redis) == {Quota.BODY_BYTES: 2}
    assert redis.hkeys(REPORTS) == [b"bodyBytes:web-1"]
