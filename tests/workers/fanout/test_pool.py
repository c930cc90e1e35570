"""The thread pool never runs more work than it has places, and the share with fewest places comes first."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

from hypothesis import given
from hypothesis import strategies as st

from workers.fanout.pool import FairPool, PoolShare


def soon(seconds: float = 10.0) -> float:
    return time.monotonic() + seconds


def granted(share: PoolShare) -> int:
    """How many places a share has been granted by now."""
    return share.wait(0.0)[1]


def wanting(places: FairPool, wanted: int) -> PoolShare:
    share = places.share()
    share.request(wanted)
    return share


def test_one_share_alone_has_all_places_and_no_spare_one():
    places = FairPool(64)
    assert granted(wanting(places, 1000)) == 64


def test_a_share_has_no_more_than_it_wants():
    places = FairPool(8)
    share = wanting(places, 3)
    assert granted(share) == 3
    share.request(2)
    assert granted(share) == 2
    share.request(0)
    assert granted(share) == 0


def test_work_that_finishes_soon_after_the_first_is_returned_with_it():
    share = wanting(FairPool(2), 2)
    assert granted(share) == 2
    first = threading.Event()
    share.run(lambda: first.set() or "first")
    share.run(lambda: (first.wait() and time.sleep(0.05)) or "second")
    assert share.wait(soon(), linger=0.5)[0] == ["first", "second"]


def test_granted_places_are_returned_at_once():
    share = wanting(FairPool(2), 2)
    before = time.monotonic()
    assert share.wait(soon(), linger=60.0) == ([], 2)
    assert time.monotonic() - before < 30


def test_a_released_place_goes_to_a_new_share_first():
    places = FairPool(4)
    large, spare, newcomer = wanting(places, 10), wanting(places, 1), places.share()
    assert (granted(large), granted(spare)) == (4, 1)
    large.request(6)
    newcomer.request(1)
    assert granted(newcomer) == 0
    # The first makes up for the spare place in use; the second is free.
    large.release(2)
    assert (granted(newcomer), granted(large)) == (1, 0)


def test_when_all_places_hang_a_new_share_gets_the_spare_one():
    places = FairPool(32)
    hanging = wanting(places, 100)
    assert granted(hanging) == 32
    newcomers = [wanting(places, 5) for _ in range(3)]
    assert [granted(each) for each in newcomers] == [1, 1, 0]
    newcomers[0].close()
    assert granted(newcomers[2]) == 1
    assert granted(hanging) == 0


def test_a_tenant_whose_reads_hang_leaves_places_to_others():
    places = FairPool(32)
    hanging = [places.share(tenant=1) for _ in range(50)]
    for share in hanging:
        share.request(1)
    # The regular places, and the spare ones for shares without a place.
    assert sum(granted(each) for each in hanging) == 34
    other = places.share(tenant=2)
    other.request(10)
    assert granted(other) == 4
    # Then places that become free go to the tenant with fewer.
    for share in hanging[:6]:
        share.release(1)
    assert granted(other) == 2
    assert sum(granted(each) for each in hanging) == 0


def test_tenants_get_the_same_number_of_places():
    places = FairPool(12)
    many = [places.share(tenant=1) for _ in range(20)]
    for share in many:
        share.request(1)
    one = places.share(tenant=2)
    one.request(100)
    for share in many:
        if share.places_held:
            share.release(1)
            share.request(1)
    assert one.places_held >= 6


def test_one_tenant_alone_gets_no_spare_places_of_tenants():
    places = FairPool(32)
    shares = [places.share(tenant=1) for _ in range(50)]
    for share in shares:
        share.request(1)
    assert sum(granted(each) for each in shares) == 34


def test_large_shares_get_about_the_same_number_of_places():
    places = FairPool(12)
    first = wanting(places, 100)
    assert granted(first) == 12
    others = [wanting(places, 100) for _ in range(2)]
    for _ in range(12):
        first.release(1)
    assert [share.places_held for share in (first, *others)] == [4, 4, 4]


def test_finished_work_releases_its_place_and_returns_its_result():
    places = FairPool(1)
    share = wanting(places, 1)
    finished, places_granted = share.wait(soon())
    assert (finished, places_granted) == ([], 1)
    share.request(1)
    share.run(lambda: "done")
    results, more = share.wait(soon())
    while not more:
        more = share.wait(soon())[1]
    assert (results, more) == (["done"], 1)


def test_waiting_ends_at_its_moment_and_at_the_news():
    places = FairPool(1)
    holder, waiting = wanting(places, 1), places.share()
    assert waiting.wait(time.monotonic() - 1) == ([], 0)
    assert waiting.wait(time.monotonic() + 0.01) == ([], 0)
    spare = wanting(places, 1)
    assert (granted(holder), granted(spare)) == (1, 1)
    waiting.request(1)
    threading.Timer(0.02, holder.close).start()
    threading.Timer(0.02, spare.close).start()
    assert waiting.wait(soon()) == ([], 1)


def test_a_closed_share_holds_only_the_places_of_running_work():
    places = FairPool(3)
    share, gate = wanting(places, 3), threading.Event()
    assert granted(share) == 3
    share.run(gate.wait)
    share.request(5)
    share.close()
    other = wanting(places, 3)
    assert granted(other) == 2
    gate.set()
    assert other.wait(soon()) == ([], 1)


def test_work_that_raises_gives_its_place_back(caplog):
    places = FairPool(1)
    share = places.share()

    def fail():
        raise RuntimeError("planted")

    for _ in range(5):
        share.request(1)
        assert share.wait(soon()) == ([], 1)
        share.run(fail)
    share.request(1)
    assert share.wait(soon()) == ([], 1)
    assert "planted" in caplog.text


@given(
    size=st.integers(1, 40),
    steps=st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["want", "back", "close"]), st.integers(0, 9))
    ),
)
def test_slots_are_granted_by_the_fairness_rule(size, steps):
    places = FairPool(size)
    spare = max(1, size // 16)
    shares = [places.share() for _ in range(5)]
    for number, what, count in steps:
        share = shares[number]
        if what == "want":
            share.request(count)
        elif what == "back":
            share.release(min(count, granted(share)))
        else:
            share.close()
            shares[number] = places.share()
        held = sum(each.places_held for each in shares)
        assert held <= size + spare
        hungry = [each for each in shares if each.wants]
        # No share waits while a place is free, or a spare one for a share without places.
        assert not hungry or held >= size
        assert held == size + spare or all(each.places_held for each in hungry)


def test_pool_runs_all_work_within_its_size():
    places = FairPool(3)
    running, most, counts = 0, 0, Counter()
    guard = threading.Lock()

    def work(name):
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
            counts[name] += 1
        time.sleep(0.001)
        with guard:
            running -= 1
        return name

    def fan_out(name):
        share, left, done = places.share(), 40, 0
        while done < 40:
            share.request(left)
            finished, got = share.wait(soon())
            done += len(finished)
            used = min(got, left, 2)
            for _ in range(used):
                share.run(lambda: work(name))
            left -= used
            share.release(got - used)
        share.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(fan_out, range(6)))
    assert counts == dict.fromkeys(range(6), 40)
    assert most <= 4
    assert granted(wanting(places, 9)) == 3


def test_work_runs_in_the_context_of_its_owner():
    whose = ContextVar("whose", default="nobody's")
    places = FairPool(1)
    first, second = wanting(places, 1), places.share()
    assert granted(first) == 1
    # The spare place is taken too.
    other = wanting(places, 1)
    assert granted(other) == 1
    whose.set("the second's")
    second.request(1)
    second.prefetch(whose.get)
    whose.set("the first's")
    first.run(whose.get)

    assert first.wait(soon())[0] == ["the first's"]
    other.close()
    assert second.wait(soon())[0] == ["the second's"]
