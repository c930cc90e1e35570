"""Builds Microsoft Graph's JSON for events; pure functions.

https://learn.microsoft.com/en-us/graph/api/resources/event
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast
from zoneinfo import ZoneInfo

from providers.errors import EventRefused
from providers.events import Changes, Day, Draft, Guest, Moment, Visibility, When
from providers.http.calls import Json
from providers.microsoft import body, parse_events, properties, recurrence
from providers.microsoft.errors import PROVIDER
from providers.microsoft.payloads import GraphAttendee, GraphEvent
from providers.recurrence import BadRecurrence, Series
from scheduling.zones import iana_zone

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_WORDS = {shown: word for word, shown in parse_events.SHOWN.items()}
_SENSITIVITIES = {Visibility.DEFAULT: "normal", Visibility.PRIVATE: "private"}

_MEETING = {"isOnlineMeeting": True, "onlineMeetingProvider": "teamsForBusiness"}


def has_days(changes: Changes) -> bool:
    """Whether the mailbox's zone is needed to write the changes."""
    return isinstance(changes.start, Day) or isinstance(changes.end, Day)


def create_payload(draft: Draft, transaction_id: str, midnights: str) -> Json:
    """A new event; ``midnights`` is the mailbox's zone."""
    content = draft.content
    return _given(
        {
            "transactionId": transaction_id,
            "subject": content.subject,
            "body": _text(content.description),
            "location": _place(content.meeting_url if content.location is None else content.location),
            "attendees": _attendees(content.guests, ()),
            "singleValueExtendedProperties": properties.written(
                {
                    properties.META_ID: content.meta_id,
                    properties.MEETING_URL: content.meeting_url,
                    properties.REQUEST: draft.mark,
                }
            ),
            **(_MEETING if content.meeting else {}),
            **_shown(content),
            **_edges(content, {}, midnights),
        }
    )


# The fields of a series that the next one takes over. Graph lists no extended properties but those named.
_KEPT = (
    *("subject", "importance", "sensitivity", "showAs", "isReminderOn", "reminderMinutesBeforeStart"),
    *("location", "locations", "categories", "responseRequested", "allowNewTimeProposals", "hideAttendees"),
)


def later_part_payload(draft: Draft, master: GraphEvent, transaction_id: str, midnights: str) -> Json:
    """A series that continues another one, with its data but for the changes; ``master`` has HTML.

    It gets an online meeting of its own, because Graph cannot give two events the same one.
    """
    changes = draft.content
    known = cast("Json", master)
    kept = {name: known[name] for name in _KEPT if known.get(name) is not None}
    html = body.without_html_block(parse_events.html(master), parse_events.join_url(master))
    guests = master.get("attendees") or ()
    kept["attendees"] = [{name: dict(each)[name] for name in ("type", "emailAddress")} for each in guests]
    kept["body"] = {"contentType": "html", "content": html}
    if master.get("isOnlineMeeting"):
        kept |= _MEETING
    url = properties.value(master, properties.MEETING_URL)
    written = update_payload(replace(changes, meeting=False), {**master, "isOnlineMeeting": False}, midnights)
    own = {
        properties.META_ID: changes.meta_id,
        properties.MEETING_URL: changes.meeting_url or (None if changes.meeting else url),
        properties.REQUEST: draft.mark,
        properties.FOLLOWING: draft.fingerprint,
    }
    return {
        **kept,
        **written,
        **(_MEETING if changes.meeting else {}),
        "transactionId": transaction_id,
        "singleValueExtendedProperties": properties.written(own),
    }


def update_payload(changes: Changes, known: GraphEvent, midnights: str) -> Json:
    """The JSON that writes ``changes`` to ``known`` (with its body as HTML if there is a description).

    Empty when nothing would change.
    """
    meets = changes.meeting and not known.get("isOnlineMeeting")
    return _given(
        {
            "subject": changes.subject,
            "body": _body(changes.description, known),
            "location": _place(_moved(changes, known)),
            "attendees": _attendees(changes.guests, known.get("attendees") or ()),
            "singleValueExtendedProperties": properties.written(
                {properties.META_ID: changes.meta_id, properties.MEETING_URL: _url(changes, known)}
            ),
            **(_MEETING if meets else {}),
            **_shown(changes),
            **_edges(changes, known, midnights),
        }
    )


def _given(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _shown(content: Changes) -> Json:
    """How the event shows its owner, its visibility and its reminder."""
    minutes = None if content.reminders is None else content.reminders.minutes
    return {
        "showAs": None if content.show_as is None else _WORDS[content.show_as],
        "sensitivity": None if content.visibility is None else _SENSITIVITIES[content.visibility],
        "isReminderOn": None if minutes is None else bool(minutes),
        "reminderMinutesBeforeStart": minutes[0] if minutes else None,
    }


def _text(description: str | None) -> Json | None:
    return None if description is None else {"contentType": "text", "content": description}


def _body(description: str | None, known: GraphEvent) -> Json | None:
    """The description; in an online meeting it is put above the block of the meeting."""
    if description is None or not known.get("isOnlineMeeting"):
        return _text(description)
    html = body.above_block(description, parse_events.html(known), parse_events.join_url(known))
    return {"contentType": "html", "content": html}


def _place(name: str | None) -> Json | None:
    """The location; in this form it also replaces all ``locations``."""
    return None if name is None else {"displayName": name}


def _moved(changes: Changes, known: GraphEvent) -> str | None:
    """The location. Without one, it follows the meeting URL: guests have no other way to see that."""
    if changes.location is not None:
        return changes.location
    present = parse_events.location(known)
    if changes.meeting_url is not None and present in ("", parse_events.meeting_url(known)):
        return changes.meeting_url
    left = changes.meeting and present and present == properties.value(known, properties.MEETING_URL)
    return "" if left else None


def _url(changes: Changes, known: GraphEvent) -> str | None:
    """The meeting URL. Graph's own meeting replaces an external one: the last one written counts."""
    if changes.meeting and properties.value(known, properties.MEETING_URL):
        return ""
    return changes.meeting_url


def _attendees(guests: Sequence[Guest] | None, known: Sequence[GraphAttendee]) -> list[Json] | None:
    """The new list in its order; attendees on both lists keep their entry, and with it their response."""
    if guests is None:
        return None
    entries = {parse_events.address(entry).lower(): dict(entry) for entry in known}
    return [_attendee(each, entries.get(each.email.lower())) for each in guests]


def _attendee(guest: Guest, known: Json | None) -> Json:
    """An attendee has one type: https://learn.microsoft.com/en-us/graph/api/resources/attendee#properties.

    :raise EventRefused: when it would have two
    """
    entry = known or {"type": "required", "emailAddress": {"address": guest.email}}
    if guest.name is not None:
        entry["emailAddress"] = {**entry["emailAddress"], "name": guest.name}
    resource = entry.get("type") == "resource" if guest.resource is None else guest.resource
    optional = entry.get("type") == "optional" if guest.optional is None else guest.optional
    if optional and resource:
        # One of the two is stored already, and an update that does not state it must not drop it.
        message = f"attendees must not be both optional and resource at {PROVIDER}"
        raise EventRefused(message, param="attendees")
    return {**entry, "type": "resource" if resource else "optional" if optional else "required"}


def _edges(changes: Changes, known: GraphEvent, midnights: str) -> Json:
    """The given edges, and ``isAllDay``.

    An event keeps its zone; a series needs it, because its occurrences follow that zone's clock.
    """
    starts = _edge(changes.start, known.get("originalStartTimeZone"), midnights)
    ends = _edge(changes.end, known.get("originalEndTimeZone"), midnights)
    pattern = _pattern(changes, starts, ends)
    if has_days(changes):
        return _all_day(starts, ends, known, midnights) | pattern
    timed = changes.start is not None and changes.end is not None
    return {"start": starts, "end": ends, "isAllDay": False if timed else None, **pattern}


def _pattern(changes: Changes, starts: Json | None, ends: Json | None) -> Json:
    """The recurrence, whose days are those of the zone in which the start is written.

    :raise EventRefused: when Microsoft has no pattern for it, or the zone could not be written
    """
    if changes.recurrence is None or changes.start is None or starts is None or ends is None:
        return {}
    zones = {starts["timeZone"], ends["timeZone"]}
    if isinstance(changes.start, Moment) and zones != {changes.start.zone or "UTC"}:
        sentence = "start and end of a series must not lie in an hour that occurs twice"
        raise EventRefused(f"{sentence} at {PROVIDER}", param="start")
    try:
        return {"recurrence": recurrence.patterned(Series(changes.start, changes.recurrence))}
    except BadRecurrence as error:
        raise EventRefused(f"recurrence {error}", param="recurrence") from None


def _all_day(starts: Json | None, ends: Json | None, known: GraphEvent, midnights: str) -> Json:
    """Both edges must be midnights of one zone: an edge that is not given is written too, if it is a day."""
    if known.get("isAllDay"):
        starts = starts or _midnight(known["start"]["dateTime"][:10], midnights)
        ends = ends or _midnight(known["end"]["dateTime"][:10], midnights)
    return {"start": starts, "end": ends, "isAllDay": True}


def _edge(when: When | None, kept: str | None, midnights: str) -> Json | None:
    match when:
        case None:
            return None
        case Day(date):
            return _midnight(date, midnights)
        case Moment(at, zone):
            return _clock(at, zone or (iana_zone(kept) if kept else None) or "UTC")


def _midnight(date: str, zone: str) -> Json:
    """Midnight in the mailbox's own zone, as Outlook writes it, so every client shows the same date."""
    return {"dateTime": f"{date}T00:00:00", "timeZone": zone}


def _clock(at: int, zone: str) -> Json:
    """The wall clock of ``zone`` at an instant; UTC in an hour that occurs twice there."""
    moment = (_EPOCH + timedelta(milliseconds=at)).astimezone(ZoneInfo(zone))
    if moment.utcoffset() != moment.replace(fold=1 - moment.fold).utcoffset():
        return _clock(at, "UTC")
    text = moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return {"dateTime": text, "timeZone": zone}
