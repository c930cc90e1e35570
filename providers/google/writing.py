"""Builds Google Calendar's JSON for events; pure functions.

https://developers.google.com/workspace/calendar/api/v3/reference/events#resource
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import cast

from providers import recurrence
from providers.event_writes import MAX_REMINDERS
from providers.events import Changes, Day, Draft, Guest, Moment, Reminders, Response, When
from providers.google import parse_events
from providers.google.parse import canonical
from providers.google.payloads import EventAttendee, EventRecord
from providers.http.calls import Json
from providers.timestamps import utc_text


def create_payload(draft: Draft, request_id: str) -> Json:
    """A new event; ``request_id`` is that of its meeting.

    Google ignores a request for a meeting whose id was used before. So it is never derived from the draft:
    the event may have existed with another meeting, and been deleted.
    """
    content = draft.content
    private = {parse_events.META_ID: content.meta_id, parse_events.MEETING_URL: content.meeting_url}
    return _given(
        {
            "id": draft.id or draft.key,
            # This also restores a deleted event with the same id.
            "status": "confirmed",
            "summary": content.subject,
            "description": content.description,
            "location": content.meeting_url if content.location is None else content.location,
            "start": _new_edge(content.start),
            "end": _new_edge(content.end),
            "attendees": _attendees(content.guests, ()),
            "conferenceData": _meet(request_id) if content.meeting else None,
            **_shown(content, {}),
            "recurrence": _recurrence(content),
            "extendedProperties": {"private": _given({**private, parse_events.REQUEST: draft.mark})},
        }
    )


# Fields that Google sets itself, that another event must not have, and the edges, which the caller writes.
_OF_ONE_EVENT = frozenset(
    {
        *("id", "etag", "kind", "iCalUID", "created", "updated", "creator", "organizer", "htmlLink"),
        *("sequence", "hangoutLink", "status", "locked", "attendeesOmitted", "privateCopy", "start", "end"),
    }
)


def later_part_payload(draft: Draft, master: EventRecord, request_id: str) -> Json:
    """A series that continues another one, with all its data but for the changes.

    https://developers.google.com/workspace/calendar/api/guides/recurringevents#modifying_all_following_instances
    """
    changes = draft.content
    kept = {name: value for name, value in cast("Json", master).items() if name not in _OF_ONE_EVENT}
    properties = kept.pop("extendedProperties", {})
    if "conferenceData" in kept:
        # A request makes another meeting; without it the new series has the same one.
        meeting = kept["conferenceData"]
        kept["conferenceData"] = {name: meeting[name] for name in meeting if name != "createRequest"}
    written = update_payload(changes, master, request_id)
    private = dict(properties.get("private") or {})
    # The metaId is that of the first part alone.
    private.pop(parse_events.META_ID, None)
    private |= (written.pop("extendedProperties", None) or {}).get("private", {})
    private[parse_events.REQUEST] = draft.mark
    return {
        **kept,
        **written,
        "id": draft.key,
        "status": "confirmed",
        "start": _new_edge(changes.start),
        "end": _new_edge(changes.end),
        "extendedProperties": {**properties, "private": _given(private)},
    }


def restore_payload(body: Json, tombstone: EventRecord) -> Json:
    """A new event that replaces a deleted one.

    The sequence grows with every move and may not decrease; a missing one counts as 0:
    https://developers.google.com/workspace/calendar/api/v3/reference/events#sequence
    """
    return body | {"sequence": tombstone.get("sequence", 0)}


def needs_the_event(changes: Changes) -> bool:
    """Whether the JSON to write depends on the existing event."""
    fields = changes.attendees, changes.meeting_url, changes.reminders, changes.recurrence
    return changes.meeting or any(each is not None for each in fields)


def update_payload(changes: Changes, known: EventRecord, request_id: str) -> Json:
    """The JSON that writes ``changes`` to ``known``, which may be empty unless :func:`needs_the_event`.

    Objects merge and arrays replace, so every field that is left out stays unchanged:
    https://developers.google.com/workspace/calendar/api/guides/performance#patch
    """
    private = _private(changes, known)
    meets = changes.meeting and not parse_events.has_meeting(known)
    return _given(
        {
            "summary": changes.subject,
            "description": changes.description,
            "location": _moved(changes, known),
            "start": _changed_edge(changes.start),
            "end": _changed_edge(changes.end),
            "attendees": _attendees(changes.guests, known.get("attendees") or ()),
            "conferenceData": _meet(request_id) if meets else None,
            **_shown(changes, known),
            "recurrence": _recurrence(changes),
            "extendedProperties": {"private": private} if private else None,
        }
    )


def send_updates(notify: bool | None) -> dict[str, str]:
    """The query parameter that decides whether Google notifies guests."""
    return {} if notify is None else {"sendUpdates": "all" if notify else "none"}


def _given(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _shown(content: Changes, known: EventRecord) -> Json:
    """How the event shows its owner, its visibility and its reminders; one that stays keeps its method.

    https://developers.google.com/workspace/calendar/api/v3/reference/events#reminders
    """
    shown = content.show_as
    return {
        "transparency": None if shown is None else "opaque" if shown.blocks else "transparent",
        "visibility": content.visibility,
        "reminders": None if content.reminders is None else _reminders(content.reminders, known),
    }


def _recurrence(content: Changes) -> list[str] | None:
    """https://developers.google.com/workspace/calendar/api/v3/reference/events#recurrence"""
    return None if content.recurrence is None else recurrence.lines(content.recurrence)


def _reminders(reminders: Reminders, known: EventRecord) -> Json:
    if reminders.minutes is None:
        return {"useDefault": True, "overrides": []}
    stored = known.get("reminders", {}).get("overrides") or []
    new = {*reminders.minutes} - {each["minutes"] for each in stored}
    kept = [dict(each) for each in stored if each["minutes"] in reminders.minutes]
    if len(kept) + len(new) > MAX_REMINDERS:
        # Several methods at one minute count several times.
        kept = list({each["minutes"]: each for each in kept}.values())
    return {
        "useDefault": False,
        "overrides": [*kept, *({"method": "popup", "minutes": each} for each in sorted(new))],
    }


def _meet(request_id: str) -> Json:
    """https://developers.google.com/workspace/calendar/api/guides/create-events#conferencing"""
    return {
        "createRequest": {
            "requestId": request_id,
            "conferenceSolutionKey": {"type": "hangoutsMeet"},
        }
    }


def _moved(changes: Changes, known: EventRecord) -> str | None:
    """The location. Without one, it follows the meeting URL: guests have no other way to see that."""
    if changes.location is not None:
        return changes.location
    kept = parse_events.kept_url(known)
    present = known.get("location") or ""
    if changes.meeting_url is not None and present in ("", kept):
        return changes.meeting_url
    return "" if changes.meeting and present and present == kept else None


def _private(changes: Changes, known: EventRecord) -> Json:
    """Our own properties. A Google meeting replaces an external one: the last one written counts."""
    private = _given({parse_events.META_ID: changes.meta_id, parse_events.MEETING_URL: changes.meeting_url})
    if changes.meeting and changes.meeting_url is None and parse_events.kept_url(known):
        private[parse_events.MEETING_URL] = None
    return private


def _attendees(guests: Sequence[Guest] | None, known: Sequence[EventAttendee]) -> list[Json] | None:
    """The new list in its order; attendees on both lists keep their entry, and with it their response."""
    if guests is None:
        return None
    entries = {(entry.get("email") or "").lower(): dict(entry) for entry in known}
    return [
        (entries.get(each.email.lower()) or {"email": each.email})
        | _given({"displayName": each.name, "optional": each.optional, "resource": each.resource})
        for each in guests
    ]


def response_payload(response: Response, known: EventRecord, own: Set[str]) -> list[Json] | None:
    """The attendees with the response of the account; None when it is not invited.

    ``own`` are its addresses. Google marks the entry of the calendar's owner.
    """
    entries = [dict(each) for each in known.get("attendees") or ()]
    marked = [each for each in entries if each.get("self") is True]
    named = [each for each in entries if canonical(str(each.get("email", ""))) in own]
    for entry in (marked or named)[:1]:
        entry |= _given({"responseStatus": response.status, "comment": response.comment})
        return entries
    return None


def _new_edge(when: When | None) -> Json | None:
    match when:
        case None:
            return None
        case Day(date):
            return {"date": date}
        case Moment(at, zone):
            return {"dateTime": utc_text(at), "timeZone": zone or "UTC"}


def _changed_edge(when: When | None) -> Json | None:
    """``date`` and ``dateTime`` exclude each other; the zone stays unchanged when none is given."""
    match when:
        case None:
            return None
        case Day(date):
            return {"date": date, "dateTime": None, "timeZone": None}
        case Moment(at, None):
            return {"date": None, "dateTime": utc_text(at)}
        case Moment(at, zone):
            return {"date": None, "dateTime": utc_text(at), "timeZone": zone}
