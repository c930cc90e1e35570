"""How Lua scripts are loaded and run: their headers, and what happens when Redis has forgotten them."""

from __future__ import annotations

import secrets

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from store.lua import STORE, Script, json_argument
from store.stores import Stores

FRAGMENTS = {"clock.lua", "limits.lua", "readers.lua"}
BEGIN_READS = "cache/scripts/begin_reads.lua"


@pytest.fixture
def redis(stores: Stores) -> Redis:
    return stores.redis


@pytest.fixture
def key() -> str:
    """A prefix of keys that no other test uses."""
    return secrets.token_hex(6)


def beginning(generation: str, readers: list[list[str]] | None = None) -> bytes:
    seconds = {"generation_seconds": 60, "readers_seconds": 90}
    return json_argument(generation=generation, connections=1, readers=readers or [], **seconds)


def test_every_script_has_a_header_and_no_include_is_left():
    files = [*STORE.glob("*/scripts/*.lua")]

    assert len(files) > len(FRAGMENTS)
    for file in files:
        header = file.read_text().split("\n\n")[0]
        assert header.startswith("-- "), file
        assert "--" not in Script(str(file.relative_to(STORE))).text, file
        if file.name not in FRAGMENTS:
            assert "KEYS" in header, file
            assert "ARGV" in header, file
            assert "Reply" in header, file


def test_a_script_that_redis_has_not_cached_is_sent_with_its_text(redis):
    redis.script_flush()

    for _ in range(2):
        assert Script(BEGIN_READS).run(redis, ["a"], beginning("new")) == [b"new"]


def test_a_pipeline_sends_scripts_that_redis_has_lost_with_their_text(redis, key):
    script = Script(BEGIN_READS)
    flushes = iter((True, False, True))

    for number, flush in enumerate(flushes):
        if flush:
            redis.script_flush()
        with redis.pipeline(transaction=False) as pipe:
            script.queue(pipe, [f"{key}:{number}"], beginning("first"))
            pipe.set(f"{key}:set:{number}", number)
            script.queue(pipe, [f"{key}:{number}"], beginning("second"))
            results = pipe.execute()

        assert results == [[b"first"], True, [b"first"]]
        assert redis.get(f"{key}:set:{number}") == b"%d" % number


def test_a_script_that_fails_in_a_pipeline_is_not_repeated(redis, key):
    script = Script(BEGIN_READS)
    redis.set(f"{key}:number", 0)
    redis.script_flush()
    redis.rpush(f"{key}:list", "no set")

    for raises in (True, False):
        with redis.pipeline(transaction=False) as pipe:
            pipe.incr(f"{key}:number")
            script.queue(
                pipe, [f"{key}:generation", f"{key}:list", f"{key}:writes"], beginning("new", [["reader"]])
            )
            if raises:
                with pytest.raises(ResponseError, match="WRONGTYPE"):
                    pipe.execute()
            else:
                assert isinstance(pipe.execute(raise_on_error=False)[1], ResponseError)
    assert redis.get(f"{key}:number") == b"2"


def test_arguments_that_are_none_are_left_out():
    assert json_argument(now=None, left=0) == b'{"left":0}'
