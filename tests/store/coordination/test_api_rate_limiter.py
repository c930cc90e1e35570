"""The rate limiter of API keys: a sliding minute by Redis's clock, in one round trip."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from functools import partial

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from store.cache.fast_redis import FastRedis
from store.coordination import api_rate_limiter
from store.coordination.api_rate_limiter import Limits, RequestLimit


@pytest.fixture
def key(redis: Redis) -> Iterator[int]:
    """The id of a key that no other test uses."""
    number = secrets.randbits(48)
    yield number
    redis.delete(*names(number))


def of_key(key: int, most: int) -> Limits:
    return (RequestLimit(str(key), most),)


def names(key: int | str) -> tuple[str, str]:
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
    take = partial(api_rate_limiter.take, FastRedis(redis))

    taken = [take(of_key(key, 3)) for _ in range(4)]

    assert [each.refused for each in taken] == [False, False, False, True]
    assert [each.remaining for each in taken] == [2, 1, 0, 0]
    assert {each.limit for each in taken} == {3}
    assert all(50 <= each.reset <= 60 for each in taken)


def test_another_key_has_its_own(redis, key):
    take = partial(api_rate_limiter.take, FastRedis(redis))
    assert not take(of_key(key, 1)).refused
    assert take(of_key(key, 1)).refused
    other = key + 1
    assert not take(of_key(other, 1)).refused
    redis.delete(*names(other))


def test_request_after_reset_is_accepted(redis, key):
    take = partial(api_rate_limiter.take, FastRedis(redis))
    for _ in range(4):
        take(of_key(key, 4))
    refused = take(of_key(key, 4))
    assert refused.refused

    # At the moment itself the counter may not have moved yet.
    pass_time(redis, key, refused.reset + 0.01)

    again = take(of_key(key, 4))
    assert not again.refused
    # The window slides: quota grows again one by one, as requests of a minute ago recede.
    assert take(of_key(key, 4)).refused
    assert again.reset <= 60 // 4


def test_the_older_minute_counts_for_less_and_less(redis, key):
    take = partial(api_rate_limiter.take, FastRedis(redis))
    for _ in range(10):
        take(of_key(key, 10))

    pass_time(redis, key, 90)

    # Half of the minute before is half over.
    assert sum(not take(of_key(key, 10)).refused for _ in range(10)) in (5, 6, 7)


def test_two_minutes_of_silence_leave_nothing(redis, key):
    take = partial(api_rate_limiter.take, FastRedis(redis))
    take(of_key(key, 2))
    assert 0 < redis.pttl(names(key)[1]) <= 120_000

    pass_time(redis, key, 120)

    assert redis.exists(*names(key)) == 0
    assert take(of_key(key, 2)).remaining == 1


def test_a_request_is_counted_in_one_round_trip(redis, key, monkeypatch):
    fast_redis = FastRedis(redis)
    fast_redis.mget(["anything"])
    sent: list[object] = []
    connection = fast_redis._connection()
    send = connection.send_packed_command
    monkeypatch.setattr(
        connection, "send_packed_command", lambda packed, **more: (sent.append(packed), send(packed, **more))
    )

    assert not api_rate_limiter.take(fast_redis, of_key(key, 5)).refused

    assert len(sent) == 1


def test_a_refusal_of_redis_does_not_answer_the_next_question(redis, key):
    fast_redis = FastRedis(redis)
    with pytest.raises(ResponseError):
        fast_redis.execute(("NO-SUCH-COMMAND",), ("SET", f"quota:{key}:now", 1, "PX", 1000))
    assert fast_redis.mget(["nothing of that name"]) == [None]


@pytest.fixture
def two(redis, key) -> Iterator[tuple[Limits, Limits]]:
    """The limits of two keys of one organization, with three and ten requests, and four together."""
    together = RequestLimit(f"organization:{key}", 4, of_organization=True)
    yield (RequestLimit(str(key), 3), together), (RequestLimit(str(key + 1), 10), together)
    redis.delete(*names(key + 1), *names(f"organization:{key}"))


def test_the_keys_of_an_organization_share_its_limit(redis, two):
    first, second = two
    take = partial(api_rate_limiter.take, FastRedis(redis))

    taken = [take(each) for each in (first, first, second, second, second)]

    assert [each.refused for each in taken] == [False, False, False, False, True]
    # The quota is that of the limit with fewer requests left.
    told = [(each.limit, each.remaining, each.of_organization) for each in taken]
    assert told == [(3, 2, False), (3, 1, False), (4, 1, True), (4, 0, True), (4, 0, True)]


def test_what_one_limit_refuses_uses_up_nothing_of_the_other(redis, key, two):
    first, second = two
    take = partial(api_rate_limiter.take, FastRedis(redis))

    refused = [take(first) for _ in range(9)][-1]
    others = [take(second) for _ in range(5)]

    assert (refused.refused, refused.of_organization) == (True, False)
    assert [each.refused for each in others] == [False, True, True, True, True]
    assert redis.mget(names(key)[1], names(key + 1)[1], names(f"organization:{key}")[1]) == [b"3", b"1", b"4"]
