"""Changes of a series by one of its occurrences: of the whole series, or of this occurrence and later ones.

A later part is a series of its own: it is created, and then the old one gets an end. In this order no time is
shown as free in between, and a create with a derived key can be repeated.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import msgspec

from providers import recurrence
from providers.errors import (
    AuthorizationInvalid,
    EventChanged,
    EventRefused,
    EventUnreadable,
    NotFound,
    OutcomeUnknown,
    ProviderError,
)
from providers.event_writes import is_unclear
from providers.events import Changes, CreateResult, Day, Draft, Event, Moment, Recurrence, When
from providers.recurrence import BadRecurrence, Series, clock_of, day_at, wall


@dataclass(frozen=True, slots=True)
class Part:
    """An occurrence of a series, and the series itself. ``at`` is the start that the series gives it."""

    master: Event
    occurrence: Event
    at: When

    @property
    def is_first(self) -> bool:
        """Whether the series begins with it."""
        start = edge_of(self.master, "start")
        return isinstance(start, Day) is isinstance(self.at, Day) and wall(start, clock_of(start)) == wall(
            self.at, clock_of(start)
        )


def edge_of(event: Event, name: str) -> When:
    """The start or the end of an event, as it would be written."""
    if event.all_day:
        edge = event.original[name]
        # Google has a date, Graph the midnight that starts it.
        return Day(edge.get("date") or edge["dateTime"][:10])
    return Moment(event.start if name == "start" else event.end, event.time_zone)


def of(master: Event) -> Series:
    """The series of its master.

    :raise EventRefused: when it cannot be understood
    """
    start = edge_of(master, "start")
    if not master.recurrence or (isinstance(start, Moment) and start.zone is None):
        raise refused("scope", "must be occurrence: the recurrence of the series is not known")
    try:
        return Series(start, recurrence.parse(master.recurrence, master.time_zone)).in_form()
    except BadRecurrence as error:
        raise refused("scope", f"must be occurrence: the recurrence of the series {error}") from None


def of_event(event: Event, changes: Changes) -> Changes:
    """The changes of an event itself, single or master of a series; a new time moves the series.

    :raise EventRefused: when the recurrence does not fit the start
    """
    if changes.recurrence is None and not (event.recurrence and changes.start is not None):
        return changes
    start = changes.start or edge_of(event, "start")
    if isinstance(start, Moment) and start.zone is None:
        start = Moment(start.at, event.time_zone)
    if changes.recurrence is not None:
        if isinstance(start, Moment) and start.zone is None:
            raise refused("timeZone", "must be given for a series, with start and end")
        require_sound(Series(start, changes.recurrence), "recurrence")
        return changes
    return replace(changes, recurrence=_moved(of(event), start).recurrence)


def of_series(part: Part, changes: Changes) -> Changes:
    """The changes of the master when an occurrence is changed together with all others.

    A new time is that of the occurrence: all move by the same time on the clock, and get the same length.

    :raise EventRefused: when the series cannot be moved like this
    """
    if not changes.has_time:
        return of_event(part.master, changes)
    known = of(part.master)
    start, end = _edges(part, changes)
    other = clock_of(start)
    begins = known.first + wall(start, other) - wall(part.at, known.clock)
    ends = begins + wall(end, other) - wall(start, other)
    edges = [_at(each, start) for each in (begins, ends)]
    moved = _moved(known, edges[0]) if changes.recurrence is None else Series(edges[0], changes.recurrence)
    require_sound(moved, "start" if changes.recurrence is None else "recurrence")
    return replace(changes, start=edges[0], end=edges[1], recurrence=moved.recurrence)


def later_part(part: Part, changes: Changes) -> Changes:
    """The changes that make a copy of the master the series from an occurrence on.

    :raise EventRefused: when the series cannot be split here
    """
    _require_organizer(part)
    known = of(part.master)
    try:
        after = known.beginning(part.at)
    except BadRecurrence as error:
        raise refused("scope", f"must be occurrence or series: the series {error}") from None
    if changes.has_time:
        start, end = _edges(part, changes)
    else:
        length = wall(edge_of(part.master, "end"), known.clock) - known.first
        start = part.at if isinstance(part.at, Day) else Moment(part.at.at, _zone(known.start))
        end = _at(wall(start, known.clock) + length, start)
    if changes.recurrence is None:
        # From the occurrence on, at the time that the series has given to it.
        series = _moved(Series(_in_zone(part.at, known.start), after), start)
        require_sound(series, "start")
    else:
        series = Series(start, changes.recurrence)
        require_sound(series, "recurrence")
    return replace(changes, start=start, end=end, recurrence=series.recurrence)


def rest(part: Part) -> Recurrence:
    """The recurrence without an occurrence and all later ones.

    :raise EventRefused: when the series cannot be ended here
    """
    _require_organizer(part)
    return of(part.master).ended_before(part.at)


def _require_organizer(part: Part) -> None:
    organizer = part.master.organizer
    if organizer is not None and not organizer.is_self:
        raise refused("scope", "must be occurrence or series: only the organizer can split a series")


def draft(event_id: str, changes: Changes, written: Changes, attempt: str = "") -> Draft:
    """The draft of the later part; the same request for the same occurrence has the same key.

    ``attempt`` names a copy of the request: only the one that has made the later part may delete it.
    """
    name = f"following\n{event_id}\n{msgspec.json.encode(changes).decode()}"
    key = hashlib.sha256(name.encode()).hexdigest()
    fingerprint = hashlib.sha256(key.encode()).hexdigest()
    return Draft(written, key, fingerprint, attempt=attempt, meta_id_is_new=True)


class Split:
    """One copy of a request to split a series, over all its tries."""

    def __init__(self, undo: Callable[[str], None], outdated: type[ProviderError]) -> None:
        self.attempt = secrets.token_hex(8)
        self._undo = undo
        self._outdated = outdated
        # The later part of this copy; "" while its id is not known.
        self._made: str | None = None
        # Whether the old series is known to have no end from this copy.
        self._failed = False

    def finish(self, insert: Callable[[], CreateResult], end: Callable[[], None]) -> Event:
        """The later part, made by ``insert``, after ``end`` has ended the old series.

        A later part that cannot be read back is there, so the old series is ended then too. If the old series
        has changed, another copy of the request may have ended it, so the later part stays for the next try.
        """
        later: Event | EventUnreadable
        try:
            created = insert()
            later = created.event
            if created.made:
                self._made = later.id
        except EventUnreadable as error:
            later, self._made = error, self._made or ""
        try:
            end()
        except (EventUnreadable, self._outdated) as error:
            if isinstance(error, self._outdated):
                raise
        except ProviderError:
            self._failed = True
            raise
        if isinstance(later, EventUnreadable):
            raise later
        return later

    def given_up(self, error: ProviderError) -> ProviderError:
        """The error of the request: the later part is deleted if the old series still recurs.

        The outcome is unknown when the later part may be left.
        """
        if self._made is None or is_unclear(error) or isinstance(error, EventUnreadable):
            return error
        if self._made and (self._failed or isinstance(error, EventRefused | EventChanged)):
            try:
                self._undo(self._made)
            except NotFound:
                return error
            except ProviderError:
                return _unknown(error)
            return error
        return _unknown(error)


@contextmanager
def splitting(undo: Callable[[str], None], outdated: type[ProviderError]) -> Iterator[Split]:
    """A split; ``undo`` deletes a later part, ``outdated`` is the error of a series that has changed."""
    split = Split(undo, outdated)
    try:
        yield split
    except ProviderError as error:
        raise split.given_up(error) from None


def _unknown(error: ProviderError) -> ProviderError:
    """The error of a split of which the later part may be left."""
    error.repeated = True
    if isinstance(error, AuthorizationInvalid):
        return error
    return OutcomeUnknown(error.message, operation=error.operation)


def require_sound(series: Series, param: str) -> None:
    """Check a series that is to be written.

    :raise EventRefused: with ``param``, when it is not possible
    """
    try:
        series.require_sound()
    except BadRecurrence as error:
        sentence = (
            "must fit the recurrence of the series, else send recurrence too"
            if param == "start"
            else str(error)
        )
        raise refused(param, sentence) from None


def refused(param: str, sentence: str) -> EventRefused:
    """The error for a field; the sentence continues its name."""
    return EventRefused(f"{param} {sentence}", param=param)


def not_of_occurrence() -> EventRefused:
    """The error for a recurrence that is sent for one occurrence."""
    return refused("recurrence", "must not be given for one occurrence: give scope=series or scope=following")


def _edges(part: Part, changes: Changes) -> tuple[When, When]:
    """The start and the end that the occurrence is to have; a time without a zone gets that of the series."""
    like = edge_of(part.master, "start")
    start = changes.start or edge_of(part.occurrence, "start")
    end = changes.end or edge_of(part.occurrence, "end")
    if isinstance(start, Day) is not isinstance(end, Day):
        raise refused("start", "and end must both be dates, or both have a time")
    zone = changes.start.zone if isinstance(changes.start, Moment) else None
    start, end = (
        each if isinstance(each, Day) else Moment(each.at, zone or _zone(like) or each.zone or "UTC")
        for each in (start, end)
    )
    if wall(end, clock_of(end)) < wall(start, clock_of(start)):
        raise refused("end", "must not be before start")
    return start, end


def _moved(series: Series, start: When) -> Series:
    try:
        moved = series.moved(start)
    except BadRecurrence as error:
        raise refused("recurrence", str(error)) from None
    require_sound(moved, "start")
    return moved


def _at(here: int, like: When) -> When:
    """A wall clock as a day, or as a moment in the zone of ``like``."""
    if isinstance(like, Day):
        return day_at(here)
    return Moment(clock_of(like).instant(here), like.zone)


def _zone(when: When) -> str | None:
    return when.zone if isinstance(when, Moment) else None


def _in_zone(when: When, like: When) -> When:
    return when if isinstance(when, Day) else Moment(when.at, _zone(like))
