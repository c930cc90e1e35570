"""Percentiles estimated from buckets, compared with exact ones."""

from __future__ import annotations

from math import ceil, inf

import hypothesis.strategies as st
import pytest
from hypothesis import given

from store.metrics.counters import BOUNDS, Histogram, bucket

# In seconds; some on the bounds themselves, some beyond the last.
times = st.one_of(st.sampled_from([bound / 1000 for bound in BOUNDS[:-1]]), st.floats(0, 20))


def latency_of(seconds):
    return Histogram(tuple(sum(bucket(each) == place for each in seconds) for place in range(len(BOUNDS))))


def exact(seconds, percent):
    """The exact percentile, in milliseconds."""
    done = sorted(seconds)
    return next(each for n, each in enumerate(done, 1) if n * 100 >= len(done) * percent) * 1000


@given(seconds=st.floats(0, 1000))
def test_a_time_lies_between_the_bounds_of_its_bucket(seconds):
    place = bucket(seconds)

    assert (BOUNDS[place - 1] if place else -1) < seconds * 1000 <= BOUNDS[place]


@given(seconds=st.lists(times, min_size=1, max_size=300), percent=st.integers(0, 100))
def test_a_percentile_lies_in_the_bucket_of_the_exact_one(seconds, percent):
    place = bucket(exact(seconds, percent) / 1000)
    low, high = BOUNDS[place - 1] if place else 0, BOUNDS[place]

    found = latency_of(seconds).percentile(percent)

    assert low <= found <= high
    if high == inf:
        assert found == low


@given(seconds=st.lists(times, min_size=1, max_size=100))
def test_a_higher_percentile_is_never_lower(seconds):
    latency = latency_of(seconds)
    found = [latency.percentile(percent) for percent in range(101)]

    assert found == sorted(found)


@pytest.mark.parametrize("percent", [50, 95, 99])
def test_within_a_bucket_times_count_as_evenly_spread(percent):
    # One after each millisecond from 101 to 200: the estimate is exact.
    latency = latency_of([(100 + n) / 1000 for n in range(1, 101)])

    assert latency.percentile(percent) == pytest.approx(100 + ceil(percent))


def test_of_nothing_there_is_no_percentile():
    assert Histogram().percentile(50) is None
    assert Histogram().total == 0


@given(one=st.lists(times, max_size=50), other=st.lists(times, max_size=50))
def test_latencies_add_up(one, other):
    assert latency_of(one) + latency_of(other) == latency_of(one + other)
