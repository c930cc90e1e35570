"""Events of a calendar in the neutral form."""

from __future__ import annotations

import pytest

from providers.events import EventStatus, ResponseStatus, ShowAs
from providers.ical.events import Reader, event, events
from tests.providers.ical.texts import at, calendar, parsed, soon
from tests.providers.ical.texts import event as component

READER = Reader("ics", "feed", frozenset({"ada@example.com"}))
RANGE = (at("2026-03-01"), at("2026-04-01"))
WHOLE = """DTSTART;TZID=Europe/Berlin:20260302T100000
DTEND;TZID=Europe/Berlin:20260302T110000
SUMMARY:Tea\\, cake\\nand more
DESCRIPTION;LANGUAGE=en:A \\; B \\\\ C
LOCATION:Room "4"
STATUS:TENTATIVE
ORGANIZER;CN="Bob; the first":mailto:Bob@example.com
ATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@example.com
ATTENDEE;PARTSTAT=DECLINED;CN=Cy:MAILTO:cy@example.com
ATTENDEE:urn:uuid:1234
URL:https://example.com/tea
X-GOOGLE-CONFERENCE:https://meet.example.com/abc
LAST-MODIFIED:20260101T120000Z
X-ALMANAC-META-ID:m-1
BEGIN:VALARM
DESCRIPTION:of the alarm
SUMMARY:of the alarm
TRIGGER:-PT10M
END:VALARM"""


def shown(*components, start=RANGE[0], end=RANGE[1]):
    return events(parsed(calendar(*components)), READER, start, end, deadline=soon())


def test_every_field():
    (found,) = shown(component(WHOLE))

    assert (found.id, found.calendar_id, found.provider, found.meta_id) == ("one", "feed", "ics", "m-1")
    assert found.subject == "Tea, cake\nand more"
    assert found.description == "A ; B \\ C"
    assert found.location == 'Room "4"'
    assert (found.start, found.end) == (at("2026-03-02 09:00"), at("2026-03-02 10:00"))
    assert found.status is EventStatus.TENTATIVE
    assert found.show_as is ShowAs.BUSY
    assert found.organizer is not None
    assert (found.organizer.email, found.organizer.name) == ("bob@example.com", "Bob; the first")
    assert [(each.email, each.is_self, each.response_status) for each in found.attendees] == [
        ("ada@example.com", True, ResponseStatus.ACCEPTED),
        ("cy@example.com", False, ResponseStatus.DECLINED),
        ("", False, ResponseStatus.NEEDS_ACTION),
    ]
    assert found.web_link == "https://example.com/tea"
    assert found.meeting_url == "https://meet.example.com/abc"
    assert found.updated_at == at("2026-01-01 12:00")
    assert found.recurring_event_id is None
    assert not found.all_day
    assert found.original["icalendar"].startswith("BEGIN:VEVENT\nUID:one\n")
    assert found.original["icalendar"].endswith("END:VALARM\nEND:VEVENT")


def test_a_bare_event_has_empty_texts():
    (found,) = shown(component("DTSTART;VALUE=DATE:20260302"))

    assert (found.subject, found.description, found.location) == ("", "", "")
    assert (found.status, found.organizer, found.web_link, found.updated_at) == (None, None, None, None)
    assert found.all_day


SERIES = "DTSTART:20260302T090000Z\nDURATION:PT1H\nSUMMARY:weekly\nRRULE:FREQ=WEEKLY;COUNT=3"
MOVED = "RECURRENCE-ID:20260309T090000Z\nDTSTART:20260310T090000Z\nDURATION:PT1H\nSUMMARY:moved"


def test_occurrences_have_ids_that_find_them_again():
    text = parsed(calendar(component(SERIES), component(MOVED)))
    found = events(text, READER, *RANGE, deadline=soon())

    assert [(each.id, each.subject) for each in found] == [
        ("one_20260302T090000Z", "weekly"),
        ("one_20260309T090000Z", "moved"),
        ("one_20260316T090000Z", "weekly"),
    ]
    assert {each.recurring_event_id for each in found} == {"one"}
    assert [event(text, READER, each.id, deadline=soon()) for each in found] == found
    series = event(text, READER, "one", deadline=soon())
    assert series is not None
    assert series.is_series
    assert (series.id, series.start) == ("one", at("2026-03-02 09:00"))


def test_all_day_occurrences_have_dates_in_their_ids():
    text = parsed(calendar(component("DTSTART;VALUE=DATE:20260302\nRRULE:FREQ=DAILY;COUNT=2")))
    found = events(text, READER, *RANGE, deadline=soon())

    assert [each.id for each in found] == ["one_20260302", "one_20260303"]
    assert [event(text, READER, each.id, deadline=soon()) for each in found] == found


@pytest.mark.parametrize("name", ["", "other", "one_20260303T090000Z", "one_20269999", "one_2026", "one_"])
def test_an_id_of_no_event(name):
    assert event(parsed(calendar(component(SERIES))), READER, name, deadline=soon()) is None


def test_cancelled_events_are_left_out_and_free_ones_are_shown():
    free = component("DTSTART:20260303T090000Z\nDURATION:PT1H\nTRANSP:TRANSPARENT", "free")
    gone = component("DTSTART:20260304T090000Z\nDURATION:PT1H\nSTATUS:CANCELLED", "gone")
    text = parsed(calendar(free, gone))

    assert [(each.id, each.show_as) for each in events(text, READER, *RANGE, deadline=soon())] == [
        ("free", ShowAs.FREE)
    ]
    assert event(text, READER, "gone", deadline=soon()) is None


@pytest.mark.parametrize(
    "lines", ["STATUS:CONFIRMED\nSTATUS:CANCELLED", "STATUS:CANCELLED\nSTATUS:CONFIRMED"]
)
def test_an_event_that_is_cancelled_and_is_not_is_shown_and_not_as_cancelled(lines):
    (found,) = shown(component(f"DTSTART:20260304T090000Z\nDURATION:PT1H\n{lines}"))

    assert found.status is not EventStatus.CANCELLED


@pytest.mark.parametrize(("first", "second"), [("FREE", "BUSY"), ("BUSY", "FREE")])
def test_an_event_that_outlook_calls_free_and_busy_is_shown_as_busy(first, second):
    lines = f"X-MICROSOFT-CDO-BUSYSTATUS:{first}\nX-MICROSOFT-CDO-BUSYSTATUS:{second}"
    (found,) = shown(component(f"DTSTART:20260304T090000Z\nDURATION:PT1H\n{lines}"))

    assert found.show_as is ShowAs.BUSY


def test_an_event_without_length_counts_by_its_start():
    lines = component("DTSTART:20260302T090000Z")

    assert len(shown(lines, start=at("2026-03-02 09:00"))) == 1
    assert shown(lines, end=at("2026-03-02 09:00")) == []
