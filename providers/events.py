"""Events in provider-neutral form, and the content that a client writes."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec


class ResponseStatus(StrEnum):
    """An attendee's response, in Google's words."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    NEEDS_ACTION = "needsAction"
    TENTATIVE = "tentative"


class EventStatus(StrEnum):
    """Whether an event takes place, in Google's words."""

    CONFIRMED = "confirmed"
    TENTATIVE = "tentative"
    CANCELLED = "cancelled"


class ShowAs(StrEnum):
    """How the calendar shows its owner during an event."""

    BUSY = "busy"
    FREE = "free"
    TENTATIVE = "tentative"
    OUT_OF_OFFICE = "outOfOffice"
    WORKING_ELSEWHERE = "workingElsewhere"

    @property
    def blocks(self) -> bool:
        """Whether the owner counts as busy."""
        return self not in (ShowAs.FREE, ShowAs.WORKING_ELSEWHERE)

    @property
    def as_before(self) -> ShowAs:
        """The word of release 0.1, which knows ``busy`` and ``free`` only."""
        return ShowAs.BUSY if self.blocks else ShowAs.FREE


class Visibility(StrEnum):
    """The readers of a shared calendar who see the content of an event, in Google's words."""

    DEFAULT = "default"
    PUBLIC = "public"
    PRIVATE = "private"


class Scope(StrEnum):
    """The part of a series that a change or a delete of one of its occurrences concerns.

    For an event that is no occurrence, a single one or the series by its own id, all three mean the event.
    """

    OCCURRENCE = "occurrence"
    FOLLOWING = "following"
    SERIES = "series"


class Guest(msgspec.Struct, frozen=True):
    """An attendee to invite. A field that is None keeps its value for an attendee who stays on the list."""

    email: str
    name: str | None = None
    optional: bool | None = None
    resource: bool | None = None


class Response(msgspec.Struct, frozen=True):
    """The answer of the account to an invitation.

    ``notify`` says whether the organizer gets a message; None means the provider's default.
    """

    status: ResponseStatus
    comment: str | None = None
    notify: bool | None = None


class Reminders(msgspec.Struct, frozen=True):
    """When the owner is reminded: minutes before the start, ascending. None means as the calendar says."""

    minutes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Attendee:
    """An invited person or resource, such as a room; ``is_self`` marks the account itself.

    ``email`` is empty and ``name`` None when unknown.
    """

    email: str
    is_self: bool
    response_status: ResponseStatus
    original: dict[str, Any] = field(repr=False)
    name: str | None = None
    optional: bool = False
    resource: bool = False


@dataclass(frozen=True, slots=True)
class Organizer:
    """The person or calendar that an event belongs to; ``email`` is empty when unknown, ``name`` None."""

    email: str
    is_self: bool
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An event, or one occurrence of a series, over ``[start, end)`` in UTC milliseconds.

    An all-day event spans the local midnights of its calendar. Missing text is empty. ``meta_id`` links the
    copies of a unified event, ``meeting_url`` is the address of the online meeting, ``mark`` identifies the
    create request that made the event; None without. ``original`` is the provider's record, unchanged.

    The fields after it are None when the provider does not give them. ``recurring_event_id`` is the id of the
    series of an occurrence, ``updated_at`` is in UTC milliseconds, ``etag`` is in the form of ``etags.weak``.
    ``is_series``: it stands for a whole series; its start and end are those of the first occurrence.
    Adapters give ``shown_as``, and ``show_as`` (its ``ShowAs.as_before``) for processes of release 0.1.
    ``time_zone`` is the IANA name of the zone of a timed event. ``original_start`` is the start that the
    series gives to an occurrence, in UTC milliseconds. ``recurrence`` has the lines of RFC 5545 of a series.
    """

    id: str
    calendar_id: str
    provider: str
    meta_id: str | None
    subject: str
    description: str
    location: str
    start: int
    end: int
    all_day: bool
    meeting_url: str | None
    mark: str | None
    attendees: tuple[Attendee, ...]
    original: dict[str, Any] = field(repr=False)
    status: EventStatus | None = None
    show_as: ShowAs | None = None
    organizer: Organizer | None = None
    web_link: str | None = None
    recurring_event_id: str | None = None
    updated_at: int | None = None
    etag: str | None = None
    is_series: bool = False
    shown_as: ShowAs | None = None
    visibility: Visibility | None = None
    reminders: Reminders | None = None
    time_zone: str | None = None
    original_start: int | None = None
    recurrence: tuple[str, ...] | None = None
    description_html: str | None = None


# Tagged, so that decoding JSON restores the right type.
class Moment(msgspec.Struct, frozen=True, tag=True):
    """A start or end of a timed event: an instant in UTC milliseconds, and the IANA zone to store it in.

    Without a zone the event keeps its own; a new event is stored in UTC.
    """

    at: int
    zone: str | None = None


class Day(msgspec.Struct, frozen=True, tag=True):
    """A start or end of an all-day event, ``YYYY-MM-DD``; an end is exclusive."""

    date: str


When = Moment | Day


class Recurrence(msgspec.Struct, frozen=True):
    """How a series recurs: the value of its RRULE, and the starts that RDATE adds and EXDATE removes."""

    rule: str
    added: tuple[When, ...] = ()
    removed: tuple[When, ...] = ()


END_BEFORE_START = "end must not be before start"
NO_DAY = "end must be after start: an all-day event ends with the day after its last"
TWO_KINDS = "start and end must both be dates, or both have a time"


def edge_error(start: When | None, end: When | None) -> str | None:
    """An error sentence that names the invalid one of two edges; None when both are valid."""
    match start, end:
        case Moment(), Moment() if end.at < start.at:
            return END_BEFORE_START
        case Day(), Day() if end.date <= start.date:
            return NO_DAY
        case (Moment(), Day()) | (Day(), Moment()):
            return TWO_KINDS
    return None


@dataclass(frozen=True, slots=True)
class Changes:
    """The fields of an event to write; None leaves a field unchanged.

    ``start`` and ``end`` are of one kind. ``attendees`` replace the list; attendees on both lists keep their
    response. An attendee with only an address is a string, as in release 0.1. ``meeting`` True
    creates the provider's own online meeting, ``meeting_url`` stores the address of an external one.
    ``notify`` None means the provider's default.
    """

    subject: str | None = None
    description: str | None = None
    location: str | None = None
    start: When | None = None
    end: When | None = None
    attendees: tuple[str | Guest, ...] | None = None
    meeting: bool = False
    meeting_url: str | None = None
    meta_id: str | None = None
    notify: bool | None = None
    show_as: ShowAs | None = None
    visibility: Visibility | None = None
    reminders: Reminders | None = None
    recurrence: Recurrence | None = None

    def edge_error_for(self, event: Event) -> str | None:
        """Why the one edge that changes does not fit the other edge of ``event``; None when it may fit."""
        edge = self.start or self.end
        if edge is not None and isinstance(edge, Day) != event.all_day:
            return TWO_KINDS
        if event.all_day:
            # The length of its days depends on the zone of its calendar.
            return None
        return edge_error(self.start or Moment(event.start), self.end or Moment(event.end))

    @property
    def guests(self) -> list[Guest] | None:
        """The attendees, each address once, in its first spelling."""
        if self.attendees is None:
            return None
        found: dict[str, Guest] = {}
        for each in self.attendees:
            guest = Guest(each) if isinstance(each, str) else each
            found.setdefault(guest.email.lower(), guest)
        return list(found.values())

    @property
    def has_time(self) -> bool:
        """Whether an edge is written."""
        return self.start is not None or self.end is not None

    @property
    def has_one_edge(self) -> bool:
        """Whether exactly one edge is written."""
        return (self.start is None) != (self.end is None)


def overlaps(event: Event, start: int, end: int) -> bool:
    """Whether an event is in ``[start, end)``; an event without length counts by its start."""
    return event.start < end and (event.end > start or event.start == event.end == start)


@dataclass(frozen=True, slots=True)
class Draft:
    """An event to create; ``content`` has a start and an end.

    ``key`` is 64 hexadecimal digits: at the provider, one key makes one event. ``fingerprint`` (64 digits
    too) is a hash of the whole request: it distinguishes a repeated create from another one with the same
    key. ``attempt`` is random: it distinguishes the event of this request from that of an earlier one.
    ``id`` is the client's choice, which Google accepts and Microsoft does not support. ``meta_id_is_new``:
    generated at random for this request, so no event can have it yet.
    """

    content: Changes
    key: str
    fingerprint: str
    attempt: str = field(default_factory=lambda: secrets.token_hex(8))
    id: str | None = None
    meta_id_is_new: bool = False

    @property
    def mark(self) -> str:
        """The value stored with the event, which identifies the create and the request."""
        return f"{self.fingerprint}.{self.attempt}"

    def conflict_message(self, *, takes_id: bool) -> str:
        """The error of a create whose id or metaId belongs to another event; it names the fields.

        ``takes_id``: the provider uses the id of the draft.
        """
        names = ["id"] if self.id is not None and takes_id else []
        if self.content.meta_id is not None and not self.meta_id_is_new:
            names.append("metaId")
        return f"{' or '.join(names) or 'Idempotency-Key'} belongs to another event of this calendar"

    def match_existing(self, event: Event) -> CreateResult | None:
        """The outcome of a create that finds ``event`` already there; None when that is another event.

        An event whose metaId was changed since is another event: the draft's metaId no longer finds it.
        """
        meta_id = self.content.meta_id
        same = (event.mark or "").partition(".")[0] == self.fingerprint
        if not same or (meta_id is not None and event.meta_id != meta_id):
            return None
        return CreateResult(event, made=event.mark == self.mark)


@dataclass(frozen=True, slots=True)
class CreateResult:
    """The event of a create; ``made`` is False when an earlier request of the same create made it."""

    event: Event
    made: bool
