"""Creating a deleted event again in Google Calendar restores it under the same id."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from providers.errors import Unavailable
from providers.events import Changes, CreateResult, Day, Moment
from tests.providers.event_calls import HOUR, NINE, TEN, TIMED, bare
from tests.providers.google.google_calls import FULL, PUT


def test_a_deleted_event_is_restored_with_all_fields(calls):
    first = calls.create(FULL, key="k").event
    calls.delete(first.id)
    content = Changes(subject="New", start=Moment(TEN), end=Moment(TEN + HOUR))
    second = calls.create(content, key="k", fingerprint="another")
    assert second.made
    assert second.event.id == first.id
    assert bare(second.event) == replace(
        bare(first),
        mark=second.event.mark,
        updated_at=second.event.updated_at,
        etag=second.event.etag,
        subject="New",
        description="",
        location="",
        start=TEN,
        end=TEN + HOUR,
        attendees=(),
        meeting_url=None,
        meta_id=None,
    )
    assert calls.listed() == [second.event]
    assert calls.create(content, key="k", fingerprint="another") == CreateResult(second.event, made=False)


def test_what_was_moved_before_it_was_deleted_comes_back(calls):
    first = calls.create(TIMED, key="k").event
    calls.update(first.id, start=Moment(NINE + HOUR), end=Moment(TEN + HOUR))
    calls.delete(first.id)
    again = calls.create(TIMED, key="k")
    assert again.made
    assert (again.event.start, again.event.end) == (NINE, TEN)


def test_days_come_back_as_a_time(new):
    calls = new(time_zone="Asia/Tokyo")
    first = calls.create(Changes(start=Day("2026-12-03"), end=Day("2026-12-04")), key="k").event
    calls.delete(first.id)
    event = calls.create(TIMED, key="k").event
    assert (event.all_day, event.start, event.end) == (False, NINE, TEN)


def test_an_online_meeting_that_comes_back_has_a_link_of_its_own(calls):
    first = calls.create(FULL, key="k").event
    calls.delete(first.id)
    second = calls.create(FULL, key="k").event
    assert second.meeting_url not in (None, first.meeting_url)


@pytest.mark.parametrize("fault", [{"body": "reset"}, {"status": 412}, {"status": 503}], ids=str)
def test_a_revival_that_fails_for_a_moment_is_made_once(sandbox, calls, fault):
    first = calls.create(TIMED, key="k").event
    calls.delete(first.id)
    sandbox.fault(operation=PUT, times=1, **fault)
    created = calls.create(TIMED, key="k")
    assert created.made
    assert calls.listed() == [created.event]


def test_of_revivals_at_once_one_has_made_the_event(calls):
    calls.delete(calls.create(TIMED, key="k").event.id)
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(lambda _: calls.create(TIMED, key="k"), range(6)))
    assert [outcome.made for outcome in outcomes].count(True) == 1


def test_what_never_holds_still_is_not_brought_back(sandbox, calls, is_fit_for_people):
    calls.delete(calls.create(TIMED, key="k").event.id)
    sandbox.fault(operation=PUT, status=412)
    with pytest.raises(Unavailable, match="others are changing") as raised:
        calls.create(TIMED, key="k")
    is_fit_for_people(raised.value)
