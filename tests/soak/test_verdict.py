"""The conditions under which a soak fails."""

from __future__ import annotations

import pytest

from tests.soak.measures import MIB, Sample
from tests.soak.records import Records
from tests.soak.verdict import failings, processes

WARM, OVER = 100, 300
FAULTS = {"503": 3}


def looks(memory, files=lambda at: 20, over=OVER):
    """A process sampled until it is at rest; both by the moment."""
    return {"web": [Sample(at, int(memory(at) * MIB), files(at), 4, at / 5) for at in range(0, over + 20, 2)]}


def failings_of(memory=lambda at: 100, files=lambda at: 20, faults=FAULTS, over=OVER, **records):
    judged = processes(looks(memory, files, over), WARM, over)
    return list(failings(Records(**{"checked": 1, "answered": 100, **records}), faults, judged))


def test_a_quiet_run_passes():
    assert failings_of(named=5) == []


def test_growth_under_load_fails():
    assert failings_of(lambda at: 100 + at / 40) == ["web grows by 1.50 MiB a minute"]


def test_growth_that_comes_to_an_end_is_none():
    assert failings_of(lambda at: 100 + min(at, WARM + 110) / 40) == []


LONG = 30 * 60


def test_slow_growth_fails_only_a_long_run():
    assert failings_of(lambda at: 100 + at * 0.3 / 60) == []
    assert failings_of(lambda at: 100 + at * 0.3 / 60, over=LONG) == ["web grows by 0.30 MiB a minute"]


def test_long_run_may_grow_slowly_or_warm_up_in_first_half():
    assert failings_of(lambda at: 100 + at * 0.1 / 60, over=LONG) == []
    assert failings_of(lambda at: 100 + min(at, LONG / 2) / 60, over=LONG) == []


def test_a_process_that_was_started_late_still_warms_up():
    late = {
        "web": [each for each in looks(lambda at: 100 + at * 0.3 / 60, over=LONG)["web"] if each.at > 900]
    }
    (web,) = processes(late, WARM, LONG)
    assert web.is_long_enough
    assert not web.grows


def test_warm_up_and_memory_released_at_rest_are_no_growth():
    assert failings_of(lambda at: min(at, WARM) if at <= OVER else 500) == []


def test_a_short_run_shows_no_growth():
    assert failings_of(lambda at: 100 + at / 40, over=WARM + 60) == []


def test_the_processor_share_is_that_under_load():
    (web,) = processes(looks(lambda at: 100), WARM, OVER)
    assert web.busy == pytest.approx(0.2)


def test_files_that_stay_open_fail():
    assert failings_of(files=lambda at: 20 if at <= OVER else 29) == ["web leaks files or threads"]
    assert failings_of(files=lambda at: 20 if at <= OVER else 28) == []


def test_a_run_that_proves_nothing_fails():
    assert failings_of(checked=0, faults={}, over=WARM - 1) == [
        "no answer was compared",
        "no provider had a fault",
        "no process was looked at once it was warm",
    ]


def test_wrong_answers_and_too_many_failures_fail():
    assert failings_of(wrong=["a slot"], named=6) == [
        "1 wrong answers",
        "5.66% of the answers were named as failed, and 5% may be",
    ]
