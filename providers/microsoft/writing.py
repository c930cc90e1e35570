"""Builds Microsoft Graph's JSON for events; pure functions.

https://learn.microsoft.com/en-us/graph/api/resources/event
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from providers.events import Changes, Day, Draft, Moment, When
from providers.http.send import Json
from providers.microsoft import body, parse_events, properties
from providers.microsoft.payloads import GraphAttendee, GraphEvent
from scheduling.zones import iana_zone

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

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
            "attendees": _attendees(content.attendees, ()),
            "singleValueExtendedProperties": properties.written(
                {
                    properties.META_ID: content.meta_id,
                    properties.MEETING_URL: content.meeting_url,
                    properties.REQUEST: draft.mark,
                }
            ),
            **(_MEETING if content.meeting else {}),
            **_edges(content, {}, midnights),
        }
    )


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
            "attendees": _attendees(changes.attendees, known.get("attendees") or ()),
            "singleValueExtendedProperties": properties.written(
                {properties.META_ID: changes.meta_id, properties.MEETING_URL: _url(changes, known)}
            ),
            **(_MEETING if meets else {}),
            **_edges(changes, known, midnights),
        }
    )


def _given(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


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


def _attendees(emails: Sequence[str] | None, known: Sequence[GraphAttendee]) -> list[Json] | None:
    """The new list in its order; attendees on both lists keep their entry, and with it their response."""
    if emails is None:
        return None
    entries = {parse_events.address(entry).lower(): dict(entry) for entry in known}
    wanted = {email.lower(): email for email in reversed(emails)}
    return [
        entries.get(folded) or {"type": "required", "emailAddress": {"address": wanted[folded]}}
        for folded in dict.fromkeys(email.lower() for email in emails)
    ]


def _edges(changes: Changes, known: GraphEvent, midnights: str) -> Json:
    """The given edges, and ``isAllDay``.

    An event keeps its zone; a series needs it, because its occurrences follow that zone's clock.
    """
    starts = _edge(changes.start, known.get("originalStartTimeZone"), midnights)
    ends = _edge(changes.end, known.get("originalEndTimeZone"), midnights)
    if has_days(changes):
        return _all_day(starts, ends, known, midnights)
    timed = changes.start is not None and changes.end is not None
    return {"start": starts, "end": ends, "isAllDay": False if timed else None}


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
