"""The occurrences of a calendar's entries in a range: single events, series and their exceptions."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from providers.ical.bounds import Budget, InvalidCalendar
from providers.ical.calendar import CalendarText, Series
from providers.ical.clocks import IN_UTC, Clock, naive
from providers.ical.entries import WIDENED, Entry, Span
from providers.ical.named import Name, NamedOccurrences, name_of, names_of, removed
from providers.ical.rules import starts
from providers.ical.times import Edge, Length
from providers.timestamps import DAY

# More than any two zones differ, and than a change of the clock.
_MARGIN = 2 * DAY


class Occurrence(NamedTuple):
    """A period in UTC milliseconds of ``entry``.

    ``original`` is the start that the series gives it, None outside a series.
    """

    entry: Entry
    start: int
    end: int
    original: int | None = None


# Whether an entry is wanted; the others are not read, however broken they are.
Wanted = Callable[[Entry], bool]


def occurrences(
    calendar: CalendarText, start: int, end: int, zone: Clock, budget: Budget, wanted: Wanted
) -> Iterator[Occurrence]:
    """The occurrences that may overlap ``[start, end)``, in no order; some may lie outside.

    ``zone`` is that of floating times and whole days.

    :raise InvalidCalendar: when a wanted entry cannot be understood and may lie in the range
    """
    for entry in calendar.singles:
        if wanted(entry):
            budget.spend()
            _check(entry, end, zone)
            if entry.span is not None:
                yield Occurrence(entry, *period(entry.span, zone))
    for each in calendar.series.values():
        yield from _of_series(each, start, end, zone, budget, wanted)


def _check(entry: Entry, end: int, zone: Clock) -> None:
    """Fail for an entry with a problem, unless it only begins after the range."""
    if entry.problem is not None and (entry.span is None or entry.span.start.instant(zone) < end):
        raise InvalidCalendar(entry.problem)


def period(span: Span, zone: Clock) -> tuple[int, int]:
    """The period of a stated time.

    A wrong time is read as the longer one: an end before its start blocks the time between them,
    an all-day event that ends on its first day blocks this day.
    """
    first, last = span.start, span.end
    start = first.instant(zone)
    if last is None:
        end = _after(first.wall, start, span.length, first.zone or zone)
    elif last.is_date and (not first.is_date or last.wall == first.wall):
        # A date as the end of a time: the day counts.
        end = (last.zone or zone).instant(last.wall + DAY)
    else:
        end = last.instant(zone)
    if end < start:
        start, end = end, start
    return start, end + WIDENED if span.is_vague else end


def _after(wall: int, start: int, length: Length, zone: Clock) -> int:
    """The end of a stated length: its days are days of the calendar."""
    if length.days:
        start = zone.instant(wall + length.days * DAY)
    return start + length.milliseconds


class _Length:
    """How long occurrences of one entry are.

    RFC 5545 gives all occurrences the exact duration of the first, and calendar applications keep the wall
    clock of the end. The two differ when the clock changes in between: the later end counts.
    https://www.rfc-editor.org/rfc/rfc5545#section-3.8.5.3
    """

    def __init__(self, span: Span, zone: Clock) -> None:
        self._zone = span.start.zone or zone
        self._stated = span.length if span.end is None else None
        self._widened = WIDENED if span.is_vague else 0
        start, end = period(span, zone)
        self.exact = end - start
        last = span.end
        if last is not None and last.zone is span.start.zone and last.is_date is span.start.is_date is False:
            # As it is stated, also if the clock skips it on the first day.
            self._of_wall = last.wall - span.start.wall + self._widened
        else:
            self._of_wall = self._zone.wall(end) - span.start.wall

    def ends(self, walls: list[int], starts: list[int]) -> list[int]:
        """The ends of occurrences that begin at wall clocks, which are ``starts``."""
        if self._stated is not None:
            stated, zone, more = self._stated, self._zone, self._widened
            pairs = zip(walls, starts, strict=True)
            return [_after(wall, start, stated, zone) + more for wall, start in pairs]
        exact, of_wall = self.exact, self._of_wall
        by_wall = self._zone.instants([wall + of_wall for wall in walls])
        return [
            end if end > start + exact else start + exact for end, start in zip(by_wall, starts, strict=True)
        ]


class _Later(NamedTuple):
    """An exception for the occurrence at a moment and all later ones, which it shifts."""

    at: int
    entry: Entry
    shift: int
    zone: Clock
    length: _Length


class _Exceptions:
    """Which occurrences of a series are replaced by others, or moved."""

    def __init__(self, series: Series, zone: Clock, budget: Budget) -> None:
        self.replaced = [each.replaces for each in series.exceptions if each.replaces is not None]
        self.is_certain = len(series.masters) < 2
        if self.replaced and not self.is_certain:
            self.replaced = _of_one_master(self.replaced, series, zone, budget)
        self.later = sorted(_later(series, zone), key=lambda each: each.at)
        self._from = [each.at for each in self.later]

    def moved(self, at: int) -> _Later | None:
        """The exception for an occurrence and all later ones that applies."""
        index = bisect_right(self._from, at)
        return self.later[index - 1] if index else None


def _of_one_master(replaced: list[Edge], series: Series, zone: Clock, budget: Budget) -> list[Edge]:
    """Those exceptions that do not name occurrences of several masters.

    An exception replaces one occurrence: RFC 5545, 3.8.4.4. It does not say which master's, so all of them
    stay. In an unknown zone, it may be any.
    """
    if series.unknown_zones != {None}:
        return []
    masters = [each for each in series.masters if each.span is not None and each.problem is None]
    at = [each.instant(zone) for each in replaced]
    counted: Counter[Name] = Counter()
    for master in masters:
        for each in _kept(master, zone, min(at) - _MARGIN, max(at) + _MARGIN, budget):
            counted.update(names_of(*each))
    return [each for each in replaced if counted[name_of(each, zone)] < 2]


def _later(series: Series, zone: Clock) -> Iterator[_Later]:
    for each in series.exceptions:
        if each.later_too and each.problem is None and each.span is not None and each.replaces is not None:
            own = each.span.start.zone or zone
            at = each.replaces.instant(zone)
            # Both read in the zone of the exception: a shift of the wall clock.
            yield _Later(at, each, each.span.start.wall - own.wall(at), own, _Length(each.span, zone))


def _of_series(
    series: Series, start: int, end: int, zone: Clock, budget: Budget, wanted: Wanted
) -> Iterator[Occurrence]:
    for each in series.exceptions:
        if wanted(each):
            budget.spend()
            _check(each, end, zone)
            if each.span is not None and each.replaces is not None:
                yield Occurrence(each, *period(each.span, zone), each.replaces.instant(zone))
    exceptions = _Exceptions(series, zone, budget)
    for master in series.masters:
        if wanted(master) or any(wanted(each.entry) for each in exceptions.later):
            yield from _of_master(master, exceptions, start, end, zone, budget, wanted)


def _of_master(
    master: Entry, exceptions: _Exceptions, start: int, end: int, zone: Clock, budget: Budget, wanted: Wanted
) -> Iterator[Occurrence]:
    _check(master, end, zone)
    span = master.span
    if span is None or master.problem is not None:
        return
    own = span.start.zone or zone
    if period(span, zone)[0] != own.instant(span.start.wall):
        raise InvalidCalendar("The calendar has a series of events that end before they begin")
    length = _Length(span, zone)
    shifts = [each.shift for each in exceptions.later]
    longest = max([length.exact, *(each.length.exact for each in exceptions.later)])
    low = start - longest - max([0, *shifts]) - _MARGIN
    high = end - min([0, *shifts]) + _MARGIN
    gone = NamedOccurrences([*removed(master), *exceptions.replaced], span.start, zone)
    walls, moments = _starts(master, own, zone, low, high, budget)
    if gone:
        pairs = zip(walls, moments, strict=True)
        kept = [(wall, at) for wall, at in pairs if not gone.has(wall, at, span.start)]
        walls, moments = [wall for wall, _ in kept], [at for _, at in kept]
    is_wanted = wanted(master)
    for at, ends in zip(moments, length.ends(walls, moments), strict=True):
        later = exceptions.moved(at) if exceptions.later else None
        if is_wanted and (later is None or not exceptions.is_certain):
            yield Occurrence(master, at, ends, at)
        if later is not None and wanted(later.entry):
            moved = later.zone.wall(at) + later.shift
            begin = later.zone.instant(moved)
            yield Occurrence(later.entry, begin, later.length.ends([moved], [begin])[0], at)
    if is_wanted:
        for extra in master.added:
            if not _is_plain(extra, span):
                begin, last = _of_added(extra, span, length, zone)
                if not gone.has(extra.start.wall, begin, extra.start):
                    yield Occurrence(master, begin, last, begin)


def _is_plain(added: Span, span: Span) -> bool:
    """Whether an added occurrence has the length of the series, and a start in its zone or a known one."""
    start, of_series = added.start, span.start
    is_known = start.zone in (None, of_series.zone) or not (start.vague or of_series.vague)
    return is_known and (of_series.is_date or not start.is_date) and _has_length(added, span)


def _has_length(added: Span, span: Span) -> bool:
    return added.end is span.end and added.length == span.length


def _of_added(added: Span, span: Span, length: _Length, zone: Clock) -> tuple[int, int]:
    """The period of an added occurrence that is not plain.

    If it only has a date, or a time in an unknown zone, all the time in which it may be counts.
    """
    if not _has_length(added, span):
        return period(added, zone)
    start = added.start
    begin = start.instant(zone)
    latest = (start.zone or zone).instant(start.wall + DAY) if start.is_date else begin
    if start.vague and not span.is_vague:
        # Else the length is that much longer.
        latest += WIDENED
    own = span.start.zone or zone
    return begin, length.ends([own.wall(latest)], [latest])[0]


def _starts(
    master: Entry, own: Clock, zone: Clock, low: int, high: int, budget: Budget
) -> tuple[list[int], list[int]]:
    """The starts of a series without its exceptions: wall clocks and their moments, each once."""
    span = master.span
    assert span is not None
    walls = [span.start.wall]
    again: set[tuple[int, int]] = set()
    for added in master.added:
        if _is_plain(added, span):
            budget.spend()
            edge = added.start
            is_own = edge.zone is None or edge.zone is own
            walls.append(edge.wall if is_own else own.wall(edge.instant(zone)))
    for rule in master.rules:
        limit, last = high, None
        if rule.until is not None:
            last = _until(rule.until, span.start, own)
            limit = min(high, own.wall(last) + DAY)
        found = starts(rule, span.start.wall, low, limit, budget)
        if last is not None:
            while found and own.instant(found[-1]) > last:
                found.pop()
        walls += found
        if rule.within_days:
            # In the hour that occurs twice, a series of hours or minutes recurs in both.
            again.update((wall, at) for wall in found if (at := own.later(wall)) > own.instant(wall))
    if len(walls) > 1:
        walls = list(dict.fromkeys(walls))
    moments = own.instants(walls)
    return walls + [wall for wall, _ in again], moments + [at for _, at in again]


def _kept(master: Entry, zone: Clock, low: int, high: int, budget: Budget) -> list[tuple[int, int, Edge]]:
    """The occurrences that EXDATE leaves: each by wall clock, moment and stated start."""
    span = master.span
    assert span is not None
    own = span.start.zone or zone
    walls, moments = _starts(master, own, zone, low, high, budget)
    found = [(wall, at, span.start) for wall, at in zip(walls, moments, strict=True)]
    added = (each.start for each in master.added if not _is_plain(each, span))
    found += [(each.wall, each.instant(zone), each) for each in added]
    gone = NamedOccurrences(removed(master), span.start, zone)
    return [each for each in found if not gone.has(*each)]


def _until(until: Edge, start: Edge, own: Clock) -> int:
    """The last moment at which an occurrence may begin.

    A date includes its day. The end of an all-day series is a date; files that state a time in UTC mean the
    midnight of some zone, so the later of the two days counts.
    """
    if until.is_date:
        return own.instant(until.wall + DAY) - 1
    moment = until.instant(own)
    if not start.is_date:
        return moment
    day = max(IN_UTC.wall(moment), own.wall(moment)) // DAY
    return own.instant((day + 1) * DAY) - 1


def occurrence_id(found: Occurrence, zone: Clock) -> str:
    """The id of an occurrence of a series: the UID and its original start, in UTC or as a date."""
    entry, at = found.entry, found.original
    assert at is not None
    edge = entry.replaces or (entry.span.start if entry.span else None)
    if edge is not None and edge.is_date:
        return f"{entry.uid}_{naive((edge.zone or zone).wall(at)):%Y%m%d}"
    return f"{entry.uid}_{naive(at):%Y%m%dT%H%M%S}Z"
