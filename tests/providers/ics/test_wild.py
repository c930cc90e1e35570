"""Feeds in the shapes that applications export, with values of our own; times are in UTC."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from providers.base import Read
from providers.ical.busy import busy_periods
from providers.ical.events import Reader, events
from tests.providers.ical.texts import at, parsed, shown, soon

FEEDS = Path(__file__).parent / "feeds"
RANGE = (at("2026-03-01"), at("2026-06-01"))

# The busy periods of a person in Berlin; a time alone is on the day before it.
BUSY = {
    "airbnb": ["03-12 23:00 - 03-15 23:00", "03-19 23:00 - 03-20 23:00"],
    # An all-day event that ends as it begins is its day.
    "booking": ["03-31 22:00 - 04-04 22:00"],
    "thunderbird": ["03-02 13:00 - 13:30", "03-05 13:00 - 13:30"],
    "canvas-deadlines": ["03-01 23:00 - 03-02 23:00"],
    "google-busy-only": ["03-02 14:00 - 15:00", "03-03 05:00 - 03-04 05:00"],
    "google-holidays": [],
    "google-private": [
        "03-02 08:00 - 08:30",
        "03-04 08:00 - 08:30",
        "03-11 13:00 - 13:30",
        "03-16 08:00 - 08:30",
        "03-18 08:00 - 08:30",
        "03-23 08:00 - 08:30",
        "03-25 08:00 - 08:30",
        "03-30 07:00 - 07:30",
    ],
    "icloud-family": [
        "03-07 00:00 - 01:30",
        "03-09 23:00 - 03-11 23:00",
        "03-13 23:00 - 03-14 00:30",
        "03-20 23:00 - 03-21 00:30",
    ],
    "icloud-shared-series": [
        "03-02 07:00 - 07:45",
        "03-04 07:00 - 07:45",
        "03-05 06:00 - 06:30",
        "03-06 06:00 - 06:30",
    ],
    "meetup": ["04-16 17:30 - 20:00"],
    "moodle": ["03-03 09:15 - 10:45", "03-04 23:00 - 03-05 23:00"],
    "nextcloud-public": [
        "03-02 17:00 - 18:00",
        "03-28 21:00 - 03-29 02:00",
        "03-31 16:00 - 17:00",
        "04-30 16:00 - 17:00",
        "05-29 16:00 - 17:00",
    ],
    "outlook-custom-zone": [
        "03-27 09:00 - 10:00",
        "03-28 09:00 - 10:00",
        "03-29 08:00 - 09:00",
        "03-30 08:00 - 09:00",
    ],
    "outlook-desktop": ["03-02 08:00 - 09:00", "04-01 08:00 - 09:00"],
    "outlook-published": [
        "03-03 09:00 - 10:00",
        "03-09 08:00 - 16:00",
        "03-17 09:00 - 10:00",
        "03-24 09:00 - 10:00",
    ],
    "school-holidays-raw-lines": ["03-02 18:00 - 19:30", "03-29 22:00 - 04-10 22:00"],
    "sports-fixtures": ["03-07 15:00 - 17:00", "04-04 14:00 - 16:00"],
    "teamup": ["03-02 12:00 - 14:00", "03-15 23:00 - 03-16 23:00", "04-06 11:00 - 13:00"],
    "vrbo-without-uid": ["03-01 00:00 - 03-02 23:00", "03-04 23:00 - 03-05 23:00"],
    "webuntis-timetable": ["03-02 07:00 - 08:30"],
}


def text(start: int, end: int) -> str:
    first, last = shown(start)[5:], shown(end)[5:]
    return f"{first} - {last.removeprefix(first[:6])}"


def test_every_feed_has_expectations():
    assert {each.stem for each in FEEDS.glob("*.ics")} == set(BUSY)
    assert len(BUSY) >= 20


@pytest.mark.parametrize("name", BUSY)
def test_busy_times_of_a_feed(name):
    calendar = parsed((FEEDS / f"{name}.ics").read_bytes())
    periods = busy_periods(calendar, *RANGE, zone=ZoneInfo("Europe/Berlin"), deadline=soon())
    found = Read.of_each({name: periods}, *RANGE)[name].busy

    assert [text(*each) for each in found.pairs()] == BUSY[name]


@pytest.mark.parametrize("name", BUSY)
def test_events_of_a_feed_can_be_shown(name):
    calendar = parsed((FEEDS / f"{name}.ics").read_bytes())
    found = events(calendar, Reader("ics", "feed"), *RANGE, deadline=soon())

    assert found
    assert all(each.subject for each in found)
