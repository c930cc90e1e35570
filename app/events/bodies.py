"""Request bodies as the changes and drafts that are written to providers, and unified events in answers."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from app.availability.connections import calendar_name
from app.availability.selection import is_account_address
from app.http.errors import Invalid
from app.schemas.timestamps import Timestamp
from providers import event_views, registry
from providers.base import PRIMARY
from providers.errors import FieldRefused
from providers.events import (
    Changes,
    Day,
    Draft,
    Event,
    Guest,
    Moment,
    Recurrence,
    Reminders,
    ShowAs,
    Visibility,
    When,
    edge_error,
)
from providers.recurrence import BadRecurrence, Series
from store.sql.queries.connection_rows import ConnectionRef

UTC = ZoneInfo("UTC")

_ADDED_FIELDS = frozenset({"show_as", "visibility", "reminders", "recurrence"})


def changes(body: Mapping[str, Any], zone: ZoneInfo | None) -> Changes:
    """The changes in a request body; absent fields stay None.

    :raise Invalid: if only one of start and end is a whole day, the end is before the start, or the
        recurrence does not give the start
    """
    zone = _event_zone(body) or zone
    start, end = _edge(body.get("start"), zone), _edge(body.get("end"), zone)
    if (fault := edge_error(start, end)) is not None:
        # Its sentence begins with the name of one of the two.
        raise Invalid(fault, param=fault.partition(" ")[0])
    recurrence = body.get("recurrence")
    if recurrence is not None and start is not None:
        _require_start(recurrence, start)
    attendees = body.get("attendees")
    meeting = body.get("meeting")
    return Changes(
        subject=body.get("subject"),
        description=body.get("description"),
        location=body.get("location"),
        start=start,
        end=end,
        attendees=None if attendees is None else _guests(attendees),
        meeting=meeting is True,
        meeting_url=meeting if isinstance(meeting, str) else None,
        meta_id=body.get("metaId"),
        notify=body.get("sendNotifications"),
        show_as=_word(ShowAs, body.get("showAs")),
        visibility=_word(Visibility, body.get("visibility")),
        reminders=_reminders(body),
        recurrence=recurrence,
    )


def _require_start(recurrence: Recurrence, start: When) -> None:
    try:
        Series(start, recurrence).require_sound()
    except BadRecurrence as error:
        raise Invalid(f"recurrence {error}", param="recurrence") from None


def fitted(content: Changes, ref: ConnectionRef, *, new: bool = False) -> Changes:
    """The changes with the values that the provider of an account stores; ``new`` means a create.

    :raise Invalid: for a value that it cannot store
    """
    definition = registry.definition(ref.provider)
    try:
        return definition.event_fields.fit(content, definition.title, new=new)
    except FieldRefused as refused:
        raise Invalid(f"{refused.field} {refused.message}", param=refused.field) from None


def of_copy(
    content: Changes, ref: ConnectionRef, providers: Collection[str] | None, *, new: bool = False
) -> Changes:
    """The changes for one account of a unified event, as :func:`fitted`; only ``providers`` notify guests."""
    fit = fitted(content, ref, new=new)
    return fit if providers is None else dataclasses.replace(fit, notify=ref.provider in providers)


def draft(
    content: Changes,
    ref: ConnectionRef,
    calendar: str,
    own_id: str | None = None,
    *,
    idempotency_key: str | None = None,
    meta_id_is_new: bool = False,
) -> Draft:
    """A new event, with a key that makes a repeated write find the first event.

    The key is derived from the metaId, else from the request's ``idempotency_key``; otherwise it is random.
    """
    if content.meta_id is not None:
        source = f"metaId {content.meta_id}"
    elif idempotency_key is not None:
        source = f"idempotency {idempotency_key}"
    else:
        source = f"once {secrets.token_hex(32)}"
    calendar_name = f"{ref.provider} {(ref.email or ref.user).lower()} {_calendar(ref, calendar)}"
    key = _digest(calendar_name, source)
    body = msgspec.json.encode([_as_before(content), own_id]).decode()
    return Draft(content, key, _digest(key, body), id=own_id, meta_id_is_new=meta_id_is_new)


def _as_before(content: Changes) -> dict[str, Any]:
    """The content without the fields that were added since release 0.1, where they are not given.

    So a repeated create has the fingerprint that it had in that release.
    """
    fields: dict[str, Any] = msgspec.to_builtins(content)
    return {name: value for name, value in fields.items() if value is not None or name not in _ADDED_FIELDS}


def new_meta_id(idempotency_key: str | None) -> str:
    """A metaId for a unified event without one in the request; a repeated request gets the same metaId."""
    return secrets.token_hex(16) if idempotency_key is None else _digest("metaId", idempotency_key)[:32]


def _event_zone(body: Mapping[str, Any]) -> ZoneInfo | None:
    """The zone that the body states for the event.

    :raise Invalid: if it has no times that are in the zone
    """
    zone: ZoneInfo | None = body.get("timeZone")
    edges: list[Timestamp | None] = [body.get("start"), body.get("end")]
    if zone is not None and any(each is None or each.whole_day for each in edges):
        raise Invalid("timeZone needs start and end, each with a time", param="timeZone")
    return zone


Words = TypeVar("Words", ShowAs, Visibility)


def _word(words: type[Words], given: str | None) -> Words | None:
    return None if given is None else words(given)


def _reminders(body: Mapping[str, Any]) -> Reminders | None:
    if "reminders" not in body:
        return None
    minutes = body["reminders"]
    return Reminders(None if minutes is None else tuple(sorted(set(minutes))))


def _edge(written: Timestamp | None, zone: ZoneInfo | None) -> When | None:
    if written is None:
        return None
    if written.whole_day:
        return Day(written.written.date().isoformat())
    return Moment(written.milliseconds(zone or UTC), None if zone is None else str(zone))


def _guests(attendees: list[dict[str, Any]]) -> tuple[str | Guest, ...]:
    """Each address once, in its first spelling."""
    by_lower_case: dict[str, dict[str, Any]] = {}
    for each in attendees:
        by_lower_case.setdefault(each["email"].lower(), each)
    return tuple(
        each["email"] if each.keys() == {"email"} else Guest(**each) for each in by_lower_case.values()
    )


def _calendar(ref: ConnectionRef, calendar: str) -> str:
    """The calendar's id; for the main calendar always the alias, also if Google's id was used."""
    return PRIMARY if is_account_address(ref, calendar) else calendar


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def unified_view(meta_id: str, copies: Sequence[tuple[ConnectionRef, Event]]) -> dict[str, Any]:
    """A unified event for ``UnifiedEventSchema``, out of at least one copy."""
    events = [event for _, event in copies]
    return {
        "metaId": meta_id,
        **event_views.fields(events[0]),
        "attendees": _together(events),
        "originals": [event.original for event in events],
        "events": [
            event_views.copy_fields(event, calendar_name(ref, event.calendar_id)) for ref, event in copies
        ],
    }


def _together(events: Sequence[Event]) -> list[dict[str, Any]]:
    """The attendees of all copies, each address once."""
    by_address: dict[str, dict[str, Any]] = {}
    for attendee in (each for event in events for each in event.attendees):
        view = {"email": attendee.email, "self": False, "originals": []}
        merged = by_address.setdefault(attendee.email.lower(), view)
        merged["self"] = merged["self"] or attendee.is_self
        merged["originals"].append(attendee.original)
    return list(by_address.values())
