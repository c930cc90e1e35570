"""The adapter at real servers, with a client that is not ours on the other side."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from providers.base import PRIMARY, Failed, Read
from providers.caldav import identifiers
from providers.caldav.client import CalDav
from providers.errors import (
    AuthorizationInvalid,
    EventChanged,
    EventExists,
    EventNotFound,
    EventRefused,
    NotFound,
    Reason,
)
from providers.events import Changes, Day, Draft, EventStatus, Guest, Moment, Response, ResponseStatus, ShowAs
from tests.providers.caldav.conftest import account_of, opened, soon
from tests.providers.caldav.scripted import event
from tests.providers.event_calls import EVERYTHING


def at(hour: int, minute: int = 0, day: int = 30) -> int:
    """A moment in November 2026."""
    return round(datetime(2026, 11, day, hour, minute, tzinfo=UTC).timestamp() * 1000)


ADAPTER = CalDav(allow_private=True)
DAY_30 = (at(0), at(23, 59))
REVIEW = Changes(subject="Review; of, all", start=Moment(at(9)), end=Moment(at(10)))


def draft(content: Changes = REVIEW, key: str = "a") -> Draft:
    return Draft(content, key=key * 64, fingerprint=f"{key}f" * 32)


def busy(place, start=DAY_30[0], end=DAY_30[1]):
    found = place.adapter.busy(place.account, [place.id], start, end, deadline=soon())[place.id]
    assert isinstance(found, Read), found
    return [tuple(each) for each in zip(found.busy.starts.tolist(), found.busy.ends.tolist(), strict=True)]


def listed(place, start=DAY_30[0], end=DAY_30[1]):
    found = place.adapter.events(place.account, [place.id], start, end, deadline=soon())[place.id]
    assert not isinstance(found, Failed), found
    return found


# Accounts.


def test_an_account_is_opened_and_lists_its_calendars(server):
    found = opened(server.url)
    calendars = {each.id: each for each in ADAPTER.calendars(account_of(found), deadline=soon())}
    assert found.main is not None
    assert calendars[found.main.id].primary
    assert [each.primary for each in calendars.values()].count(True) == 1
    assert {each.access_role for each in calendars.values()} == {"owner"}
    assert ADAPTER.main_calendar(account_of(found), deadline=soon()) == found.main


def test_the_calendar_of_an_address_is_the_main_one(server, place):
    found = opened(str(place.outside.url))
    assert found.main is not None
    assert found.main.id == place.id
    assert found.account_id == opened(server.url).account_id


def test_a_wrong_password_is_refused(server):
    if not server.checks_passwords:
        pytest.skip("the server has no passwords")
    with pytest.raises(AuthorizationInvalid):
        opened(server.url, password="wrong")


def test_a_password_that_was_changed_ends_the_connection(server, place):
    if not server.checks_passwords:
        pytest.skip("the server has no passwords")
    text = place.account.tokens.token.reveal.replace("battery", "staple")
    place.account.tokens.token = replace(place.account.tokens.token, reveal=text)
    with pytest.raises(AuthorizationInvalid, match="connect the account again"):
        place.adapter.busy(place.account, [place.id, PRIMARY], *DAY_30, deadline=soon())


def test_secrets_are_not_shown(server):
    assert "battery" not in repr(opened(server.url))


# Reads.


def test_events_of_another_client_are_busy(place):
    place.write(event("one"))
    place.write(event("two", "20261130T120000Z", "20261130T130000Z", "TRANSP:TRANSPARENT"))
    place.write(event("three", "20261130T140000Z", "20261130T150000Z", "STATUS:CANCELLED"))
    place.write(event("four", "20261201T140000Z", "20261201T150000Z"))
    assert busy(place) == [(at(9), at(10))]
    assert [(each.id, each.show_as) for each in listed(place)] == [
        ("one", ShowAs.BUSY),
        ("two", ShowAs.FREE),
    ]


def test_an_empty_calendar_is_free_and_a_missing_one_is_not(place):
    assert busy(place) == []
    missing = identifiers.calendar_id(f"{str(place.outside.url).rstrip('/')}x/")
    home = identifiers.calendar_id(str(place.outside.url).rstrip("/").rpartition("/")[0] + "/")
    found = place.adapter.busy(place.account, [place.id, missing, home, "!"], *DAY_30, deadline=soon())
    assert isinstance(found[place.id], Read)
    assert found[missing].reason is Reason.NOT_FOUND
    assert found[home].reason in (Reason.NOT_FOUND, Reason.ACCESS_DENIED)
    assert found["!"].reason is Reason.INVALID_CALENDAR_ID


SERIES = ("RRULE:FREQ=DAILY;COUNT=5", "EXDATE:20261202T090000Z")


def test_series_recur_without_their_exceptions(place):
    place.write(event("daily", "20261130T090000Z", "20261130T100000Z", *SERIES))
    week = (at(0), at(0) + 7 * 86_400_000)
    starts = [start for start, _ in busy(place, *week)]
    assert starts == [at(9) + 86_400_000 * days for days in (0, 1, 3, 4)]
    found = listed(place, *week)
    assert [each.id for each in found][:2] == ["daily_20261130T090000Z", "daily_20261201T090000Z"]
    assert {each.recurring_event_id for each in found} == {"daily"}
    for each in found:
        assert place.adapter.event(place.account, place.id, each.id, deadline=soon()) == each
    series = place.adapter.event(place.account, place.id, "daily", deadline=soon())
    assert series.is_series
    assert series.start == at(9)
    with pytest.raises(EventNotFound):
        place.adapter.event(place.account, place.id, "daily_20261202T090000Z", deadline=soon())


def test_a_day_is_local(place):
    text = event("day").replace("DTSTART:20261130T090000Z", "DTSTART;VALUE=DATE:20261130")
    place.write(text.replace("DTEND:20261130T100000Z", "DTEND;VALUE=DATE:20261201"))
    assert busy(place, at(12, day=29), at(12) + 86_400_000) == [(at(0), at(0) + 86_400_000)]
    (found,) = listed(place)
    assert found.all_day


def test_busy_times_without_one_event(place):
    place.write(event("daily", "20261130T090000Z", "20261130T100000Z", *SERIES))
    place.write(event("one", "20261130T093000Z", "20261130T110000Z"))

    def without(event_id):
        found = place.adapter.busy_without(place.account, place.id, event_id, *DAY_30, deadline=soon())
        return list(zip(found.busy.starts.tolist(), found.busy.ends.tolist(), strict=True))

    assert without("one") == [(at(9), at(10))]
    assert without("daily") == without("daily_20261130T090000Z") == [(at(9, 30), at(11))]
    assert without("daily_20261201T090000Z") == [(at(9), at(11))]


# Writes.


def test_an_event_is_created_once(place):
    first = place.adapter.create_event(place.account, place.id, draft(), deadline=soon())
    second = place.adapter.create_event(place.account, place.id, draft(), deadline=soon())
    assert (first.made, second.made) == (True, False)
    assert first.event.id == second.event.id
    (text,) = place.texts()
    assert r"SUMMARY:Review\; of\, all" in text
    assert busy(place) == [(at(9), at(10))]
    other = replace(draft(), fingerprint="0" * 64)
    with pytest.raises(EventExists):
        place.adapter.create_event(place.account, place.id, other, deadline=soon())
    assert len(place.texts()) == 1


def test_an_event_that_was_deleted_is_created_again(place):
    first = place.adapter.create_event(place.account, place.id, draft(), deadline=soon())
    place.adapter.delete_event(place.account, place.id, first.event.id, notify=None, deadline=soon())
    assert place.texts() == []
    assert place.adapter.create_event(place.account, place.id, draft(), deadline=soon()).made


META = 'a; "b", ü, c\\d and ]]> &amp; <e> '


def test_an_event_is_found_by_its_meta_id(place):
    made = place.adapter.create_event(
        place.account, place.id, draft(replace(REVIEW, meta_id=META)), deadline=soon()
    ).event
    place.write(event("other", "20261130T120000Z", "20261130T130000Z"))
    assert made.meta_id == META
    assert place.adapter.find_event(place.account, place.id, META, deadline=soon()) == made
    changed = Changes(meta_id="second")
    place.adapter.update_event(place.account, place.id, "other", changed, deadline=soon())
    assert place.adapter.find_event(place.account, place.id, "second", deadline=soon()).id == "other"
    for missing in ("third", "SECOND", META.upper()):
        with pytest.raises(EventNotFound):
            place.adapter.find_event(place.account, place.id, missing, deadline=soon())
    again = draft(replace(REVIEW, meta_id="second"), key="b")
    with pytest.raises(EventExists):
        place.adapter.create_event(place.account, place.id, again, deadline=soon())


def test_a_whole_event_is_written_and_read(place):
    content = Changes(
        subject="Review",
        description="One\nTwo, three",
        location="Room 1; left",
        start=Moment(at(9), "Europe/Berlin"),
        end=Moment(at(10), "Europe/Berlin"),
        meeting_url="https://meet.example.org/a,b;c",
        meta_id="m1",
    )
    made = place.adapter.create_event(place.account, place.id, draft(content), deadline=soon()).event
    assert (made.subject, made.description, made.location) == ("Review", "One\nTwo, three", "Room 1; left")
    assert (made.start, made.end, made.all_day) == (at(9), at(10), False)
    assert made.meeting_url == "https://meet.example.org/a,b;c"
    assert made.etag is not None
    (text,) = place.texts()
    assert "DTSTART;TZID=Europe/Berlin:20261130T100000" in text
    assert "BEGIN:VTIMEZONE" in text
    (seen,) = place.outside.events()
    assert seen.icalendar_component.start == datetime(2026, 11, 30, 9, tzinfo=UTC)


def test_days_are_written(place):
    content = Changes(subject="Off", start=Day("2026-11-30"), end=Day("2026-12-02"))
    made = place.adapter.create_event(place.account, place.id, draft(content), deadline=soon()).event
    assert (made.all_day, made.end - made.start) == (True, 2 * 86_400_000)
    moved = Changes(end=Day("2026-12-01"))
    assert (
        place.adapter.update_event(place.account, place.id, made.id, moved, deadline=soon()).end
        == made.start + 86_400_000
    )


def test_a_meeting_moves_with_its_address(place):
    content = replace(REVIEW, meeting_url="https://meet.example.org/a,b;c")
    made = place.adapter.create_event(place.account, place.id, draft(content), deadline=soon()).event
    assert made.location == made.meeting_url
    changes = Changes(meeting_url="https://meet.example.org/2")
    found = place.adapter.update_event(place.account, place.id, made.id, changes, deadline=soon())
    assert (found.meeting_url, found.location) == ("https://meet.example.org/2",) * 2
    (text,) = place.texts()
    assert text.count("\nCONFERENCE") == 1


FOREIGN = (
    "SUMMARY:Old",
    'X-OTHER-PROGRAM;X-P="a;b":kept\\, as it is',
    "CLASS:PRIVATE",
    "CATEGORIES:A,B",
    "BEGIN:VALARM",
    "ACTION:DISPLAY",
    "DESCRIPTION:Old",
    "TRIGGER:-PT15M",
    "END:VALARM",
)


def test_an_update_keeps_what_it_does_not_write(place):
    place.write(event("one", "20261130T090000Z", "20261130T100000Z", *FOREIGN))
    before = place.adapter.event(place.account, place.id, "one", deadline=soon())
    changes = Changes(subject="New", start=Moment(at(11)))
    with pytest.raises(EventChanged):
        place.adapter.update_event(place.account, place.id, "one", changes, etag='W/"no"', deadline=soon())
    changes = replace(changes, end=Moment(at(12)))
    after = place.adapter.update_event(
        place.account, place.id, "one", changes, etag=before.etag, deadline=soon()
    )
    assert (after.subject, after.start, after.end) == ("New", at(11), at(12))
    assert after.etag != before.etag
    assert after.updated_at is not None
    (text,) = place.texts()
    for each in FOREIGN[1:]:
        assert each in text.replace("\r\n ", "")
    assert "SEQUENCE:1" in text


# What other applications write: unknown properties and parameters, and alarms that are no reminders.
UNKNOWN = (
    "CATEGORIES:Red",
    "X-CRM-ID;X-KIND=deal:42",
    "ATTACH:https://files.example.org/1",
    "ORGANIZER;CN=Ada:mailto:ada@example.org",
)
BOB = "ATTENDEE;X-NUM-GUESTS=2;PARTSTAT=ACCEPTED;ROLE=REQ-PARTICIPANT:mailto:bob@example.com"
ALARMS = (
    *("BEGIN:VALARM", "ACTION:EMAIL", "SUMMARY:Soon", "DESCRIPTION:Soon", "ATTENDEE:mailto:ada@example.org"),
    *("TRIGGER:-PT1H", "X-KEPT:1", "END:VALARM"),
    *("BEGIN:VALARM", "ACTION:AUDIO", "TRIGGER;RELATED=END:PT5M", "END:VALARM"),
    *("BEGIN:VALARM", "ACTION:DISPLAY", "DESCRIPTION:Old", "TRIGGER:-PT15M", "END:VALARM"),
)


def test_a_change_of_every_field_keeps_those_of_other_applications(place):
    place.write(event("one", "20261130T090000Z", "20261130T100000Z", "SUMMARY:Old", *UNKNOWN, BOB, *ALARMS))

    after = place.adapter.update_event(place.account, place.id, "one", Changes(**EVERYTHING), deadline=soon())

    assert (after.subject, after.shown_as) == ("New", ShowAs.FREE)
    (text,) = place.texts()
    known = text.replace("\r\n", "\n").replace("\n ", "").split("\n")
    for each in (*UNKNOWN, "ACTION:EMAIL", "X-KEPT:1", "TRIGGER:-PT1H", "TRIGGER;RELATED=END:PT5M"):
        assert each in known
    assert "TRIGGER:-PT15M" not in known
    (bob,) = [each for each in known if each.endswith(":mailto:bob@example.com")]
    assert {"X-NUM-GUESTS=2", "PARTSTAT=ACCEPTED", "CN=Bob"} <= set(bob.partition(":")[0].split(";"))


def test_one_occurrence_is_changed_and_another_deleted(place):
    place.write(event("daily", "20261130T090000Z", "20261130T100000Z", "SUMMARY:Old", SERIES[0]))
    second, third = "daily_20261201T090000Z", "daily_20261202T090000Z"
    moved = Changes(subject="Moved", start=Moment(at(11) + 86_400_000), end=Moment(at(12) + 86_400_000))
    found = place.adapter.update_event(place.account, place.id, second, moved, deadline=soon())
    assert (found.id, found.subject, found.start) == (second, "Moved", at(11) + 86_400_000)
    again = place.adapter.update_event(
        place.account, place.id, second, Changes(location="Room"), deadline=soon()
    )
    assert (again.subject, again.location) == ("Moved", "Room")
    place.adapter.delete_event(place.account, place.id, third, notify=None, deadline=soon())
    with pytest.raises(EventNotFound):
        place.adapter.delete_event(place.account, place.id, third, notify=None, deadline=soon())
    week = (at(0), at(0) + 7 * 86_400_000)
    assert [start for start, _ in busy(place, *week)] == [
        at(9),
        at(11) + 86_400_000,
        at(9) + 3 * 86_400_000,
        at(9) + 4 * 86_400_000,
    ]
    place.adapter.delete_event(place.account, place.id, second, notify=None, deadline=soon())
    assert len(busy(place, *week)) == 3
    assert len(place.texts()) == 1
    with pytest.raises(EventRefused, match="start and end"):
        place.adapter.update_event(place.account, place.id, "daily", moved, deadline=soon())
    place.adapter.delete_event(place.account, place.id, "daily", notify=None, deadline=soon())
    assert place.texts() == []


def test_what_has_gone_is_missing(place):
    for event_id in ("none", "none_20261201T090000Z", "none_20261399", "a\x00b", "~"):
        with pytest.raises(EventNotFound):
            place.adapter.event(place.account, place.id, event_id, deadline=soon())
        with pytest.raises(EventNotFound):
            place.adapter.delete_event(place.account, place.id, event_id, notify=None, deadline=soon())
        with pytest.raises(EventNotFound):
            place.adapter.update_event(
                place.account, place.id, event_id, Changes(subject="a"), deadline=soon()
            )
    missing = identifiers.calendar_id(f"{str(place.outside.url).rstrip('/')}x/")
    with pytest.raises(NotFound) as raised:
        place.adapter.create_event(place.account, missing, draft(), deadline=soon())
    assert raised.value.problem is None


def test_a_meeting_of_the_provider_is_refused(place):
    content = replace(REVIEW, meeting=True)
    with pytest.raises(EventRefused, match="meeting"):
        place.adapter.create_event(place.account, place.id, draft(content), deadline=soon())
    assert place.texts() == []


def test_attendees_keep_their_responses(place):
    attendee = 'ATTENDEE;CN="B, C";PARTSTAT=ACCEPTED;X-NUM=1:mailto:bob@example.org'
    organizer = "ORGANIZER:mailto:ada@example.org"
    place.write(event("one", "20261130T090000Z", "20261130T100000Z", organizer, attendee))
    changes = Changes(attendees=("Bob@example.org", "carl@example.org"))
    found = place.adapter.update_event(place.account, place.id, "one", changes, deadline=soon())
    assert [(each.email, each.response_status) for each in found.attendees] == [
        ("bob@example.org", ResponseStatus.ACCEPTED),
        ("carl@example.org", ResponseStatus.NEEDS_ACTION),
    ]
    (text,) = place.texts()
    assert "X-NUM=1" in text.replace("\r\n ", "")
    assert found.status in (None, EventStatus.CONFIRMED)
    with pytest.raises(EventRefused, match="attendees"):
        place.adapter.delete_event(place.account, place.id, "one", notify=False, deadline=soon())
    place.adapter.delete_event(place.account, place.id, "one", notify=True, deadline=soon())
    assert place.texts() == []


def test_the_attendees_of_an_answer_can_be_sent_again(place):
    room = "ATTENDEE;CUTYPE=ROOM;ROLE=NON-PARTICIPANT;PARTSTAT=ACCEPTED:mailto:room@example.org"
    bob = "ATTENDEE;CUTYPE=GROUP;ROLE=CHAIR;PARTSTAT=ACCEPTED:mailto:bob@example.org"
    people = ("ORGANIZER:mailto:ada@example.org", room, bob)
    place.write(event("one", "20261130T090000Z", "20261130T100000Z", *people))

    def parameters(**stated):
        room, bob = (Guest(f"{name}@example.org", **stated[name]) for name in ("room", "bob"))
        changes = Changes(attendees=(room, bob))
        place.adapter.update_event(place.account, place.id, "one", changes, deadline=soon())
        (text,) = place.texts()
        unfolded = "\n".join(text.splitlines()).replace("\n ", "").splitlines()
        lines = [each.partition(":mailto:") for each in unfolded if each.startswith("ATTENDEE")]
        return {address: {*stated.split(";")[1:]} for stated, _, address in lines}

    same = {"optional": False, "resource": True}, {"optional": False, "resource": False}
    assert parameters(room=same[0], bob=same[1]) == {
        "room@example.org": {"CUTYPE=ROOM", "ROLE=NON-PARTICIPANT", "PARTSTAT=ACCEPTED"},
        "bob@example.org": {"CUTYPE=GROUP", "ROLE=CHAIR", "PARTSTAT=ACCEPTED"},
    }
    assert parameters(room={"resource": False}, bob={"optional": True, "resource": True}) == {
        "room@example.org": {"CUTYPE=INDIVIDUAL", "ROLE=NON-PARTICIPANT", "PARTSTAT=ACCEPTED"},
        "bob@example.org": {"CUTYPE=RESOURCE", "ROLE=OPT-PARTICIPANT", "PARTSTAT=ACCEPTED"},
    }


def of_boss(*attendees):
    lines = (f"ATTENDEE;PARTSTAT=NEEDS-ACTION:mailto:{each}@example.com" for each in attendees)
    return ("ORGANIZER:mailto:boss@example.com", *lines)


def test_a_response_to_a_series_reaches_the_occurrences_that_have_the_account(place):
    account = replace(place.account, email="ada@example.com")
    day = 86_400_000
    parts = [
        event("daily", "20261130T090000Z", "20261130T100000Z", SERIES[0], *of_boss("ada")),
        event(
            "daily",
            "20261201T110000Z",
            "20261201T120000Z",
            "RECURRENCE-ID:20261201T090000Z",
            *of_boss("ada", "bob"),
        ),
        event(
            "daily", "20261202T110000Z", "20261202T120000Z", "RECURRENCE-ID:20261202T090000Z", *of_boss("bob")
        ),
    ]
    inner = "".join(each[each.index("BEGIN:VEVENT") : each.index("END:VCALENDAR")] for each in parts)
    place.write(f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{inner}END:VCALENDAR\r\n")

    def respond(event_id, status):
        response = Response(status, notify=False)
        place.adapter.respond_to_event(account, place.id, event_id, response, deadline=soon())

    def states():
        found = place.adapter.events(account, [place.id], at(0), at(0) + 5 * day, deadline=soon())[place.id]
        return [[each.response_status for each in one.attendees if each.is_self] for one in found]

    respond("daily", ResponseStatus.DECLINED)
    assert states() == [
        [ResponseStatus.DECLINED],
        [ResponseStatus.DECLINED],
        [],
        *[[ResponseStatus.DECLINED]] * 2,
    ]
    (text,) = place.texts()
    assert text.count("mailto:bob@example.com") == text.count("PARTSTAT=NEEDS-ACTION") == 2

    # The id of an occurrence answers for this one only.
    respond("daily_20261201T090000Z", ResponseStatus.ACCEPTED)
    assert states()[:2] == [[ResponseStatus.DECLINED], [ResponseStatus.ACCEPTED]]
