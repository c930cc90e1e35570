"""The changes of a feed."""

from __future__ import annotations

import pytest

from providers.base import PRIMARY
from providers.ics.client import SubscribedCalendars
from providers.ics.feeds import Feeds, FeedSettings
from providers.timestamps import instant
from tests.providers.ical.texts import calendar
from tests.providers.ics.server import account, soon

RANGE = instant("2026-12-03T00:00:00Z"), instant("2026-12-10T00:00:00Z")


@pytest.fixture
def page(server):
    """The next page of a feed with these events, each by its UID and lines."""
    adapter = SubscribedCalendars(Feeds(FeedSettings(0, allow_private=True)))

    def read(sync_token, stamp="20260101T000000Z", **events):
        parts = [
            f"BEGIN:VEVENT\nUID:{uid}\nDTSTAMP:{stamp}\n{lines}\nEND:VEVENT" for uid, lines in events.items()
        ]
        feed = account(server.put(calendar(*parts)))
        found = adapter.changes(feed, PRIMARY, *RANGE, sync_token, deadline=soon())
        return found.sync_token, [each.id for each in found.updated], list(found.deleted)

    return read


ONE = "DTSTART:20261203T090000Z\nDTEND:20261203T100000Z"
DAILY = f"{ONE}\nRRULE:FREQ=DAILY;COUNT=2"


def test_the_time_of_the_request_in_a_feed_is_no_change(page):
    token, updated, _ = page(None, a=ONE)
    assert updated == ["a"]
    assert page(token, stamp="20260202T000000Z", a=ONE)[1:] == ([], [])
    assert page(token, a=f"{ONE}\nCATEGORIES:Work")[1:] == (["a"], [])


def test_a_series_is_replaced_as_a_whole(page):
    token, updated, deleted = page(None, a=DAILY)
    assert (updated, deleted) == (["a_20261203T090000Z", "a_20261204T090000Z"], [])
    token, updated, deleted = page(token, a=f"{DAILY}\nEXDATE:20261203T090000Z")
    assert (updated, deleted) == (["a_20261204T090000Z"], ["a"])
    assert page(token, a=ONE)[1:] == (["a"], [])


def test_a_missing_event_is_deleted(page):
    token, *_ = page(None, a=ONE, b=ONE)
    assert page(token, a=ONE)[1:] == ([], ["b"])
