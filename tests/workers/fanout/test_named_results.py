"""The results of a pipeline are read by name."""

from __future__ import annotations

import pytest

from workers.fanout.named_results import NamedResults


@pytest.mark.parametrize("transaction", [True, False])
def test_a_name_has_the_result_of_the_command_before_it(runtime, transaction):
    with runtime.stores.redis.pipeline(transaction=transaction) as pipe:
        results = NamedResults(pipe)
        pipe.set("key", "value")
        pipe.get("key")
        results.name("value")
        pipe.delete("key")
        pipe.exists("key")
        results.name("left")
        named = results.by_name(pipe.execute())
    assert named == {"value": b"value", "left": 0}
