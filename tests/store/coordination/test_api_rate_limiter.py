"""The rate limiter of API keys: a sliding minute by Redis's clock, in one round trip."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from store.cache.fast_redis import FastRedis
from store.coordination.api_rate_limiter import ApiRateLimiter


@pytest.fixture
def key(redis: Redis) -> Iterator[int]:
    """The id of a key that no other test uses."""
    number = secrets.randbits(48)
    yield number
    redis.delete(*names(number))


def names(key: int) -> tuple[str, str]:
    return f"quota:{key}:before", f"quota:{key}:now"


def pass_time(redis: Redis, key: int, seconds: float) -> None:
    """Age both counters by ``seconds``."""
    for name in names(key):
        left = redis.pttl(name) - int(seconds * 1000)
        if left > 0:
            redis.pexpire(name, left)
        else:
            redis.delete(name)


def test_a_key_has_so_many_requests_and_no_more(redis, key):
    quotas = ApiRateLimiter(FastRedis(redis), 3)

    taken = [quotas.take(key) for _ in range(4)]

    assert [each.refused for each in taken] == [False, False, False, True]
    assert [each.remaining for each in taken] == [2, 1, 0, 0]
    assert {each.limit for each in taken} == {3}
    assert all(50 <= each.reset <= 60 for each in taken)


def test_another_key_has_its_own(redis, key):
    quotas = ApiRateLimiter(FastRedis(redis), 1)
    assert not quotas.take(key).refused
    assert quotas.take(key).refused
    other = key + 1
    assert not quotas.take(other).refused
    redis.delete(*names(other))


def test_request_after_reset_is_accepted(redis, key):
    quotas = ApiRateLimiter(FastRedis(redis), 4)
    for _ in range(4):
        quotas.take(key)
    refused = quotas.take(key)
    assert refused.refused

    # At the moment itself the counter may not have moved yet.
    pass_time(redis, key, refused.reset + 0.01)

    again = quotas.take(key)
    assert not again.refused
    # The window slides: quota grows again one by one, as requests of a minute ago recede.
    assert quotas.take(key).refused
    assert again.reset <= 60 // 4


def test_the_older_minute_counts_for_less_and_less(redis, key):
    quotas = ApiRateLimiter(FastRedis(redis), 10)
    for _ in range(10):
        quotas.take(key)

    pass_time(redis, key, 90)

    # Half of the minute before is half over.
    assert sum(not quotas.take(key).refused for _ in range(10)) in (5, 6, 7)


def test_two_minutes_of_silence_leave_nothing(redis, key):
    quotas = ApiRateLimiter(FastRedis(redis), 2)
    quotas.take(key)
    assert 0 < redis.pttl(names(key)[1]) <= 120_000

    pass_time(redis, key, 120)

    assert redis.exists(*names(key)) == 0
    assert quotas.take(key).remaining == 1


def test_a_request_is_counted_in_one_round_trip(redis, key, monkeypatch):
    fast_redis = FastRedis(redis)
    fast_redis.mget(["anything"])
    sent: list[object] = []
    connection = fast_redis._connection()
    send = connection.send_packed_command
    monkeypatch.setattr(
        connection, "send_packed_command", lambda packed, **more: (sent.append(packed), send(packed, **more))
    )

    assert not ApiRateLimiter(fast_redis, 5).take(key).refused

    assert len(sent) == 1


def test_a_refusal_of_redis_does_not_answer_the_next_question(redis, key):
    fast_redis = FastRedis(redis)
    with pytest.raises(ResponseError):
        fast_redis.execute(("NO-SUCH-COMMAND",), ("SET", f"quota:{key}:now", 1, "PX", 1000))
    assert fast_redis.mget(["nothing of that name"]) == [None]
