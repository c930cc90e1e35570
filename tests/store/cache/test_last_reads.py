"""The result of the last read of a connection, and the time since which reads fail."""

from __future__ import annotations

import uuid

import pytest

from store.cache.last_reads import LastRead, LastReads


@pytest.fixture
def unique():
    """Names that earlier runs on this server have not used either."""
    return lambda name: f"{name}-{uuid.uuid4().hex}"


def note(redis, *reads):
    with redis.pipeline(transaction=False) as pipe:
        LastReads(redis).note(pipe, reads)
        pipe.execute()


def test_a_run_of_failures_keeps_its_beginning_until_a_read_succeeds(redis, unique):
    one, other = unique("connection"), unique("connection")
    kept = LastReads(redis)
    assert kept.load([one, other]) == {}

    note(redis, (one, LastRead(1_000)), (other, LastRead(1_000, "notFound", "It is gone")))
    assert kept.load([one, other]) == {
        one: LastRead(1_000),
        other: LastRead(1_000, "notFound", "It is gone", 1_000),
    }

    note(
        redis, (one, LastRead(2_000, "rateLimited", "Wait")), (one, LastRead(3_000, "providerError", "Down"))
    )
    assert kept.load([one])[one] == LastRead(3_000, "providerError", "Down", 2_000)

    note(redis, (one, LastRead(4_000)))
    assert kept.load([one])[one] == LastRead(4_000)
    note(redis, (one, LastRead(5_000, "providerError", "Down")))
    assert kept.load([one])[one].since == 5_000


def test_an_earlier_read_that_ends_later_changes_nothing(redis, unique):
    connection = unique("connection")
    note(redis, (connection, LastRead(2_000)), (connection, LastRead(1_000, "providerError", "Down")))

    assert LastReads(redis).load([connection])[connection].ok


def test_a_forgotten_connection_has_no_last_read(redis, unique):
    connection = unique("connection")
    note(redis, (connection, LastRead(1_000)))

    LastReads(redis).forget([connection])

    assert LastReads(redis).load([connection]) == {}


def test_failed_reads_are_counted_by_provider_and_reason(redis, unique):
    one, other, third = (unique("connection") for _ in range(3))
    kept, counted = LastReads(redis), ("caldav", unique("reason"))

    def failed(at):
        return LastRead(at, counted[1], "No", provider=counted[0])

    assert kept.failing_counts().get(counted, 0) == 0
    note(redis, (one, failed(1)), (other, failed(1)), (third, LastRead(1, provider="caldav")))
    assert kept.failing_counts()[counted] == 2

    note(redis, (one, LastRead(2, provider="caldav")))
    assert kept.failing_counts()[counted] == 1
    kept.forget([other])
    assert counted not in kept.failing_counts()


def test_connections_whose_reads_fail_are_listed_until_they_are_read_or_forgotten(redis, unique):
    one, other, third = (unique("connection") for _ in range(3))
    kept = LastReads(redis)
    for each, at in ((one, 1), (other, 3), (third, 2)):
        note(redis, (each, LastRead(at, "providerError", "Down")))
    assert [each for each in kept.failing(1_000) if each in {one, other, third}] == [other, third, one]
    # A further failure of a run does not begin it again, and an earlier success ends none.
    note(redis, (one, LastRead(9, "providerError", "Down")), (third, LastRead(1)))
    assert [each for each in kept.failing(1_000) if each in {one, other, third}] == [other, third, one]

    note(redis, (other, LastRead(10)))
    kept.forget([third])
    assert [each for each in kept.failing(1_000) if each in {one, other, third}] == [one]
