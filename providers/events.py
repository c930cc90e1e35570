"""Events in our own words, and what a caller writes of one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from providers.names import ProviderName


class ResponseStatus(StrEnum):
    """What an attendee has answered; the words are Google's."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    NEEDS_ACTION = "needsAction"
    TENTATIVE = "tentative"


@dataclass(frozen=True, slots=True)
class Attendee:
    """Somebody invited; ``is_self`` is the account itself. ``email`` is empty where the provider has none."""

    email: str
    is_self: bool
    response_status: ResponseStatus
    original: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Event:
    """An event, or one occurrence of a series, over ``[start, end)`` in UTC milliseconds.

    An all-day event spans the local midnights of its calendar. Text that the provider lacks is empty.
    ``meta_id`` is what ties the copies of a unified event together, ``meeting_url`` where it is held
    online, ``mark`` which create of ours has made it; None without. ``original`` is the provider's
    record, untouched.
    """

    id: str
    calendar_id: str
    provider: ProviderName
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


# Tagged, so that one can be told from the other after a journey as JSON.
class Moment(msgspec.Struct, frozen=True, tag=True):
    """An edge of a timed event: an instant in UTC milliseconds, and the IANA zone to keep it in.

    Without a zone the event keeps the one it has; a new event is kept in UTC.
    """

    at: int
    zone: str | None = None


class Day(msgspec.Struct, frozen=True, tag=True):
    """An edge of an all-day event, ``YYYY-MM-DD``; as an end it is the first day that is no longer in it."""

    date: str


When = Moment | Day


END_BEFORE_START = "end must not be before start"
NO_DAY = "end must be after start: an all-day event ends with the day after its last"
TWO_KINDS = "start and end must both be dates, or both have a time"


def fault_of_edges(start: When | None, end: When | None) -> str | None:
    """An error sentence that names the wrong one of two edges; None when both are right."""
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
    """What is to be written of an event; None leaves a field as it is.

    ``start`` and ``end`` are of one kind. ``attendees`` are addresses and replace the list; who stays on
    it keeps their answer. ``meeting`` True makes the provider's own online meeting, ``meeting_url`` keeps
    that of another. ``notify`` None is the provider's default.
    """

    subject: str | None = None
    description: str | None = None
    location: str | None = None
    start: When | None = None
    end: When | None = None
    attendees: tuple[str, ...] | None = None
    meeting: bool = False
    meeting_url: str | None = None
    meta_id: str | None = None
    notify: bool | None = None

    def fault_in(self, event: Event) -> str | None:
        """Why the one edge that changes does not fit the other edge of ``event``; None when it may fit."""
        edge = self.start or self.end
        if edge is not None and isinstance(edge, Day) != event.all_day:
            return TWO_KINDS
        if event.all_day:
            # Its days depend on the zone of its calendar.
            return None
        return fault_of_edges(self.start or Moment(event.start), self.end or Moment(event.end))

    @property
    def has_one_edge(self) -> bool:
        """Whether the other edge stays as it is in the event."""
        return (self.start is None) != (self.end is None)


def overlaps(event: Event, start: int, end: int) -> bool:
    """Whether an event is in ``[start, end)``; one without length is where it starts."""
    return event.start < end and (event.end > start or event.start == event.end == start)


@dataclass(frozen=True, slots=True)
class Draft:
    """An event to create; ``content`` has a start and an end.

    ``key`` is 64 hexadecimal digits: at the provider, the same key makes the same event. ``fingerprint``
    (64 digits too) is of all that was asked for: it tells a create that is repeated from another with the
    same key. ``attempt`` is random: it tells what this request makes from what one before it has made.
    ``id`` is the caller's own choice, which Google honours and Microsoft cannot. ``meta_id_is_new``: it was
    made for this request by chance, so no event can carry it yet.
    """

    content: Changes
    key: str
    fingerprint: str
    attempt: str = field(default_factory=lambda: secrets.token_hex(8))
    id: str | None = None
    meta_id_is_new: bool = False

    @property
    def mark(self) -> str:
        """What is kept with the event of the request that makes it."""
        return f"{self.fingerprint}.{self.attempt}"

    def taken(self, provider: ProviderName) -> str:
        """The error of a create whose name belongs to another event; it names the fields."""
        names = ["id"] if self.id is not None and provider == ProviderName.GOOGLE else []
        if self.content.meta_id is not None and not self.meta_id_is_new:
            names.append("metaId")
        return f"{' or '.join(names) or 'Idempotency-Key'} belongs to another event of this calendar"

    def found(self, event: Event) -> Created | None:
        """What it means that ``event`` is where the draft belongs; None when it is another's event.

        An event whose metaId was changed since is another's: it can no longer be found by the draft's.
        """
        meta_id = self.content.meta_id
        same = (event.mark or "").partition(".")[0] == self.fingerprint
        if not same or (meta_id is not None and event.meta_id != meta_id):
            return None
        return Created(event, made=event.mark == self.mark)


@dataclass(frozen=True, slots=True)
class Created:
    """The event of a create; ``made`` is False when an earlier request of the same create had made it."""

    event: Event
    made: bool
