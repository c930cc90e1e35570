"""Writes the content of events into the text of calendar objects; pure functions.

https://www.rfc-editor.org/rfc/rfc5545 and https://www.rfc-editor.org/rfc/rfc7986 (CONFERENCE)
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from urllib.parse import quote
from zoneinfo import ZoneInfo

from icalendar import Timezone, vText

from providers.caldav import lines
from providers.caldav.errors import PROVIDER
from providers.caldav.lines import Component, line
from providers.caldav.xml import UNWRITABLE
from providers.errors import EventRefused
from providers.events import (
    Changes,
    Day,
    Draft,
    Guest,
    Moment,
    Recurrence,
    Response,
    ShowAs,
    Visibility,
    When,
)
from providers.ical.alarms import minutes_before
from providers.ical.clocks import Clock, clock, naive
from providers.ical.events import BUSY_STATUS, MEETING_URL, META_ID, REQUEST, SHOWN, is_optional, is_resource
from providers.ical.lines import divide, plain
from scheduling.zones import iana_zone

# A hash of the metaId, which servers can search for whatever the text has in it. Stored events have it, so it
# must never change.
META_KEY = "X-ALMANAC-META-KEY"
CONFERENCE = "CONFERENCE"

# What belongs to a series, and not to an occurrence that is changed.
OF_SERIES = ("RRULE", "RDATE", "EXDATE", "EXRULE")

# Characters of a metaId that are stored as they are, because they need no escape in a text.
_UNQUOTED = "!#$&'()*+/:<=>?@[]^_`{|}~"

PRODUCT = "-//Almanac//CalDAV//EN"
# Years for which the rules of a zone are written with an event.
_ZONE_YEARS = 10


@dataclass(frozen=True, slots=True)
class Author:
    """The account that writes: its addresses, the first of which organizes meetings, and the operation."""

    addresses: tuple[str, ...]
    operation: str

    def refused(self, words: str) -> EventRefused:
        """The error for content that an event cannot have."""
        return EventRefused(f"{PROVIDER} {words}", operation=self.operation)


def meta_key(meta_id: str) -> str:
    """The value that a search for a metaId compares."""
    return hashlib.sha256(meta_id.encode()).hexdigest()


def uid_of(draft: Draft, calendar: str) -> str:
    """The UID of the event of a draft.

    With a metaId it is made of that, so that the event is found by it on servers that cannot search for
    properties of other programs, and of the calendar, because a server may refuse one UID in two of them.
    """
    return draft.key if draft.content.meta_id is None else meta_uid(draft.content.meta_id, calendar)


def meta_uid(meta_id: str, calendar: str) -> str:
    """The UID of the event that was created with a metaId in the calendar with that id."""
    return hashlib.sha256(f"{calendar} {meta_id}".encode()).hexdigest()


def created(draft: Draft, uid: str, author: Author) -> str:
    """The text of a new event."""
    whole = Component("VCALENDAR", ["VERSION:2.0", f"PRODID:{PRODUCT}"])
    event = Component("VEVENT", [f"UID:{uid}", f"CREATED:{_now()}", "SEQUENCE:0"])
    whole.parts.append(event)
    event.replace(REQUEST, _text(REQUEST, draft.mark))
    _apply(whole, event, draft.content, author)
    return whole.text()


@dataclass(frozen=True, slots=True)
class Times:
    """When an event is, and the zone in which it states that: its name there, and its rules.

    Without ``tzid`` it states UTC, a day, or a time without a zone, which is then read in ``zone``.
    """

    start: When
    end: When
    tzid: str | None = None
    zone: Clock | None = None
    floats: bool = False


def change(whole: Component, event: Component, changes: Changes, author: Author, now: Times) -> None:
    """Write ``changes`` into an event of a calendar object. ``now`` is when it is at present."""
    if changes.has_time:
        start, end = changes.start or now.start, changes.end or now.end
        _move(whole, event, replace(now, start=start, end=end))
    _apply(whole, event, changes, author, with_time=False)
    _revise(event, author)


def override_of(whole: Component, master: Component, recurrence: str, times: Times) -> Component:
    """An occurrence of a series as an event of its own, added to the object (RFC 5545, 3.8.4.4).

    ``recurrence`` is the line that identifies it.
    """
    event = master.without(*OF_SERIES, "RECURRENCE-ID")
    event.replace("RECURRENCE-ID", recurrence)
    _move(whole, event, times)
    whole.parts.append(event)
    return event


def exclude(master: Component, recurrence: str, author: Author) -> None:
    """Take an occurrence out of a series; ``recurrence`` is its line RECURRENCE-ID (RFC 5545, 3.8.5.1)."""
    master.parts.insert(
        _after(master, "EXDATE", "RRULE", "DTSTART"), "EXDATE" + recurrence[len("RECURRENCE-ID") :]
    )
    _revise(master, author)


def recurrence_line(at: When, times: Times) -> str:
    """The line RECURRENCE-ID of an occurrence, in the form of the start of its series (RFC 5545, 3.8.4.4)."""
    match at:
        case Day(day):
            return line("RECURRENCE-ID", day.replace("-", ""), VALUE="DATE")
        case Moment(instant):
            wall = None if times.zone is None else _wall(instant, times.zone)
            if wall is not None and times.tzid is not None:
                return line("RECURRENCE-ID", wall, TZID=times.tzid)
            return line("RECURRENCE-ID", wall if wall is not None and times.floats else _utc(instant))


def later_part(whole: Component, master: Component, draft: Draft, author: Author, now: Times) -> str:
    """The text of a series that continues another one, with all its lines but for the changes.

    ``whole`` is the object of the other one, of which ``now`` is the time.
    """
    made = Component("VCALENDAR", [each for each in whole.parts if isinstance(each, str)])
    made.parts += whole.components("VTIMEZONE")
    dropped = ("UID", "CREATED", "SEQUENCE", "RECURRENCE-ID", META_ID, META_KEY, *OF_SERIES)
    event = master.without(*dropped)
    event.parts[:0] = [f"UID:{draft.key}", f"CREATED:{_now()}", "SEQUENCE:0"]
    event.replace(REQUEST, _text(REQUEST, draft.mark))
    made.parts.append(event)
    change(made, event, draft.content, author, now)
    return made.text()


def end_series(master: Component, ended: Recurrence, author: Author) -> None:
    """Give a series an end."""
    _recur(master, ended)
    _revise(master, author)


def _recur(event: Component, given: Recurrence) -> None:
    """Write a recurrence; its dates have the form of the start (RFC 5545, 3.8.5.1)."""
    first = event.first("DTSTART")
    tzid = lines.parts(first)[0].get("TZID") if first else None
    zone = iana_zone(str(tzid)) if tzid else None

    def dates(name: str, found: Sequence[When]) -> list[str]:
        made = []
        for each in found:
            if isinstance(each, Day):
                made.append(line(name, each.date.replace("-", ""), VALUE="DATE"))
            else:
                wall = _wall(each.at, clock(ZoneInfo(zone))) if zone else None
                made.append(line(name, _utc(each.at)) if wall is None else line(name, wall, TZID=str(tzid)))
        return made

    event.replace("RRULE", f"RRULE:{given.rule}")
    event.replace("RDATE", *dates("RDATE", given.added))
    event.replace("EXDATE", *dates("EXDATE", given.removed))
    event.replace("EXRULE")


def _after(event: Component, *names: str) -> int:
    """The position after the last line of the first of these properties that the event has."""
    for name in names:
        found = [
            at for at, each in enumerate(event.parts) if isinstance(each, str) and lines.name_of(each) == name
        ]
        if found:
            return found[-1] + 1
    return 0


def _move(whole: Component, event: Component, times: Times) -> None:
    event.replace("DTSTART", _edge(whole, "DTSTART", times.start, times))
    event.replace("DTEND", _edge(whole, "DTEND", times.end, times))
    event.replace("DURATION")


def _edge(whole: Component, name: str, when: When, times: Times) -> str:
    match when:
        case Day(day):
            return line(name, day.replace("-", ""), VALUE="DATE")
        case Moment(at, None) if times.tzid is not None and times.zone is not None:
            # The event keeps its zone, which its object defines.
            wall = _wall(at, times.zone)
            return line(name, _utc(at)) if wall is None else line(name, wall, TZID=times.tzid)
        case Moment(at, zone):
            return _moment(whole, name, at, zone)


def _moment(whole: Component, name: str, at: int, zone: str | None) -> str:
    wall = None if zone in (None, "UTC") else _wall(at, clock(ZoneInfo(zone)))
    if zone is None or wall is None:
        return line(name, _utc(at))
    if not _has_zone(whole, zone):
        whole.insert(_zone(zone, _datetime(at).year), before="VEVENT")
    return line(name, wall, TZID=zone)


def _has_zone(whole: Component, tzid: str) -> bool:
    return any((each.first("TZID") or "") == f"TZID:{tzid}" for each in whole.components("VTIMEZONE"))


def _zone(zone: str, year: int) -> Component:
    first, last = max(year - 1, 1), min(year + _ZONE_YEARS, 9999)
    made = Timezone.from_tzid(zone, first_date=date(first, 1, 1), last_date=date(last, 1, 1))
    text = made.to_ical().decode()
    parsed = lines.parse(f"BEGIN:VCALENDAR\r\n{text}END:VCALENDAR\r\n").components("VTIMEZONE")[0]
    parsed.replace("COMMENT")
    return parsed


def _apply(
    whole: Component, event: Component, content: Changes, author: Author, *, with_time: bool = True
) -> None:
    """Write the fields of ``content`` that are given."""
    if content.meeting:
        raise author.refused("has no online meetings of its own: send meeting.url instead of meeting: true")
    if with_time and content.start is not None and content.end is not None:
        _move(whole, event, Times(content.start, content.end))
    for name, value in (
        ("SUMMARY", content.subject),
        ("DESCRIPTION", content.description),
        ("LOCATION", _location(event, content)),
        (META_ID, None if content.meta_id is None else quote(content.meta_id, safe=_UNQUOTED)),
        (META_KEY, None if content.meta_id is None else meta_key(content.meta_id)),
    ):
        if value is not None:
            event.replace(name, *([_text(name, value)] if value else []))
    if content.description is not None:
        # The other form of it, which would be shown in its place.
        event.replace("X-ALT-DESC")
    if content.meeting_url is not None:
        _meet(event, content.meeting_url)
    if content.show_as is not None:
        _show(event, content.show_as)
    if content.visibility is not None:
        classes = [] if content.visibility is Visibility.DEFAULT else [f"CLASS:{content.visibility.upper()}"]
        event.replace("CLASS", *classes)
    if content.reminders is not None:
        _remind(event, content.reminders.minutes or ())
    if content.recurrence is not None:
        _recur(event, content.recurrence)
    if content.guests is not None:
        _invite(event, content.guests, author)
    if content.notify is not None:
        _schedule(event, notify=content.notify)
    if event.first("DTSTAMP") is None:
        event.replace("DTSTAMP", f"DTSTAMP:{_now()}")


def _show(event: Component, shown: ShowAs) -> None:
    """Write whether the event makes busy; other words than busy and free are in the property of Outlook."""
    event.replace("TRANSP", "TRANSP:OPAQUE" if shown.blocks else "TRANSP:TRANSPARENT")
    words = [f"{BUSY_STATUS}:{word}" for word, each in SHOWN.items() if each is shown]
    event.replace(BUSY_STATUS, *([] if shown in (ShowAs.BUSY, ShowAs.FREE) else words))


def _remind(event: Component, minutes: Sequence[int]) -> None:
    """Write the reminders; an alarm that stays, and one that is no reminder, keeps its lines."""
    known = {_minutes(each) for each in event.components("VALARM")}
    event.parts = [
        each for each in event.parts if not isinstance(each, Component) or _minutes(each) in (None, *minutes)
    ]
    for each in minutes:
        if each not in known:
            alarm = ["ACTION:DISPLAY", "DESCRIPTION:Reminder", f"TRIGGER:-PT{each}M"]
            event.parts.append(Component("VALARM", [*alarm]))


def _minutes(alarm: Component) -> int | None:
    trigger = alarm.first("TRIGGER")
    return None if trigger is None else minutes_before(*divide(trigger[len("TRIGGER") :]))


def _location(event: Component, content: Changes) -> str | None:
    """The location. Without one, it follows the address of the meeting, for programs that show no other."""
    if content.location is not None or content.meeting_url is None:
        return content.location
    known = event.first("LOCATION")
    present = text_of(known) if known else ""
    return content.meeting_url if present in ("", meeting_of(event)) else None


def meeting_of(event: Component) -> str | None:
    """The address of the meeting elsewhere that was written."""
    found = event.first(MEETING_URL)
    return text_of(found) if found else None


def _meet(event: Component, url: str) -> None:
    """Write the address of a meeting; other programs show that of CONFERENCE (RFC 7986, 5.11)."""
    known = meeting_of(event)
    own = {_conference(each) for each in (known, url) if each}
    others = [each for each in event.lines(CONFERENCE) if lines.parts(each)[1] not in own]
    shown = [line(CONFERENCE, _conference(url), VALUE="URI", FEATURE="VIDEO")] if url else []
    event.replace(CONFERENCE, *shown, *others)
    event.replace(MEETING_URL, *([_text(MEETING_URL, url)] if url else []))


def _conference(url: str) -> str:
    # Radicale cuts the value of a property that it does not know at a comma.
    return _plain(url).replace(",", "%2C").replace(";", "%3B")


def _invite(event: Component, guests: Sequence[Guest], author: Author) -> None:
    """The new list in its order; attendees on both lists keep their line, and with it their response."""
    known = {email_of(each): each for each in reversed(event.lines("ATTENDEE"))}
    own = {each.lower() for each in author.addresses}
    written = []
    for each in guests:
        folded = each.email.lower()
        state = "ACCEPTED" if folded in own else "NEEDS-ACTION"
        value = f"mailto:{_plain(each.email)}"
        new = line("ATTENDEE", value, ROLE="REQ-PARTICIPANT", PARTSTAT=state, RSVP="TRUE")
        written.append(_described(known.get(folded) or new, each))
    event.replace("ATTENDEE", *written)
    if written and event.first("ORGANIZER") is None:
        if not author.addresses:
            raise author.refused("gives this account no e-mail address, so it cannot invite attendees")
        event.replace("ORGANIZER", line("ORGANIZER", f"mailto:{_plain(author.addresses[0])}"))


def _described(attendee: str, guest: Guest) -> str:
    """The line of an attendee with the stated fields of a guest (RFC 5545, 3.2.3 and 3.2.16).

    A role or a kind that says so already stays as it is: the chair is not optional, a room is a resource.
    """
    parameters, value = lines.parts(attendee)
    stated: dict[str, str] = {}
    if guest.name is not None:
        stated["CN"] = UNWRITABLE.sub("", guest.name)
    if guest.optional not in (None, is_optional(parameters)):
        stated["ROLE"] = "OPT-PARTICIPANT" if guest.optional else "REQ-PARTICIPANT"
    if guest.resource not in (None, is_resource(parameters)):
        stated["CUTYPE"] = "RESOURCE" if guest.resource else "INDIVIDUAL"
    return line("ATTENDEE", value, **{**parameters, **stated}) if stated else attendee


def _schedule(event: Component, *, notify: bool) -> None:
    """Whether the server sends invitations (RFC 6638, 7.1): it does by default."""
    event.replace(
        "ATTENDEE", *(_scheduled("ATTENDEE", each, notify=notify) for each in event.lines("ATTENDEE"))
    )


def _scheduled(name: str, person: str, *, notify: bool) -> str:
    """The line of an attendee or organizer, changed so that the server sends messages to them, or none."""
    parameters, value = lines.parts(person)
    kept = {name: each for name, each in parameters.items() if name.upper() != "SCHEDULE-AGENT"}
    if not notify:
        kept["SCHEDULE-AGENT"] = "CLIENT"
    elif parameters.get("SCHEDULE-AGENT") != "CLIENT":
        return person
    return line(name, value, **kept)


def respond(event: Component, response: Response, author: Author) -> bool:
    """Write the response of an invited account; false if it is not invited, or organizes the event.

    The server sends it to the organizer, unless the line of the organizer says otherwise
    (RFC 6638, 3.2.2 and 7.1).
    """
    own = {each.lower() for each in author.addresses}
    organizer = event.first("ORGANIZER")
    attendees = event.lines("ATTENDEE")
    if (
        organizer is None
        or email_of(organizer) in own
        or not any(email_of(each) in own for each in attendees)
    ):
        return False
    event.replace(
        "ATTENDEE", *(_answered(each, response) if email_of(each) in own else each for each in attendees)
    )
    if response.comment is not None:
        comment = _text("COMMENT", response.comment)
        event.replace("COMMENT", *(each for each in event.lines("COMMENT") if each != comment), comment)
    if response.notify is not None:
        event.replace("ORGANIZER", _scheduled("ORGANIZER", organizer, notify=response.notify))
    _revise(event, author)
    return True


def _answered(attendee: str, response: Response) -> str:
    parameters, value = lines.parts(attendee)
    kept = {name: each for name, each in parameters.items() if name.upper() not in ("PARTSTAT", "RSVP")}
    return line("ATTENDEE", value, **kept, PARTSTAT=response.status.upper())


def guests(event: Component, addresses: Sequence[str]) -> list[str]:
    """The addresses of the attendees other than the account itself."""
    own = {each.lower() for each in addresses}
    return [email for each in event.lines("ATTENDEE") if (email := email_of(each)) not in own]


def email_of(attendee: str) -> str:
    """The address in a line of an attendee or organizer, in lower case."""
    value = lines.parts(attendee)[1].strip()
    return value[len("mailto:") :].lower() if value.lower().startswith("mailto:") else value.lower()


def _revise(event: Component, author: Author) -> None:
    """Mark an event as changed now. The sequence is the organizer's (RFC 5545, 3.8.7.4)."""
    now = _now()
    event.replace("DTSTAMP", f"DTSTAMP:{now}")
    event.replace("LAST-MODIFIED", f"LAST-MODIFIED:{now}")
    organizer = event.first("ORGANIZER")
    if organizer is None or email_of(organizer) in {each.lower() for each in author.addresses}:
        known = event.first("SEQUENCE")
        digits = lines.parts(known)[1].strip() if known else "0"
        event.replace("SEQUENCE", f"SEQUENCE:{int(digits) + 1 if digits.isdecimal() else 1}")


def uid_of_lines(event: Component) -> str:
    """The UID of an event, as it is written."""
    found = event.first("UID")
    return lines.parts(found)[1].strip() if found else ""


def text_of(text_line: str) -> str:
    """The text in a line, without escapes."""
    return plain(lines.parts(text_line)[1])


def _text(name: str, value: str) -> str:
    return f"{name}:{vText(UNWRITABLE.sub('', value)).to_ical().decode()}"


def _plain(value: str) -> str:
    """A value that is no text: on one line."""
    return "".join(UNWRITABLE.sub("", value).split())


def _datetime(at: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)


def _utc(at: int) -> str:
    return f"{_datetime(at):%Y%m%dT%H%M%SZ}".rjust(16, "0")


def _wall(at: int, zone: Clock) -> str | None:
    """The local time of a moment; None for the second time of a repeated hour, which only UTC can express."""
    wall = zone.wall(at)
    return f"{naive(wall):%Y%m%dT%H%M%S}".rjust(15, "0") if zone.instant(wall) == at else None


def _now() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
