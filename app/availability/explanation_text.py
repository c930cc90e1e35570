"""Sentences for end users that explain verdicts, with times in the zone of the request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from app.schemas.timestamps import EPOCH, MILLISECOND
from providers import registry
from providers.errors import Reason
from scheduling.explain import Covering, Explanation, Pair, Verdict
from scheduling.query import Query
from scheduling.windows import MINUTE, SECOND

# A list names this many calendars, and the number of the others.
MAX_NAMED = 3


class UnreadCalendar(NamedTuple):
    """A calendar that could not be read, as sentences name it."""

    provider: str
    calendar: str
    reason: str

    def __str__(self) -> str:
        return f"{_calendar(self.provider, self.calendar)} ({reason_words(self.reason)})"


_REASONS = {
    Reason.ACCESS_DENIED: "access is denied",
    Reason.AUTHORIZATION_INVALID: "the access has ended",
    Reason.INSUFFICIENT_SCOPES: "the permission was not granted",
    Reason.INVALID_CALENDAR_ID: "there is no such calendar",
    Reason.MAILBOX_UNAVAILABLE: "the mailbox is not available",
    Reason.NOT_FOUND: "it was not found",
    Reason.PROVIDER_ERROR: "the provider did not answer as it should",
    Reason.PROVIDER_NOT_CONFIGURED: "the provider is not configured",
    Reason.RATE_LIMITED: "the provider's limit is reached",
    Reason.TOO_MANY_CALENDARS: "there are too many calendars",
}


def reason_words(reason: str) -> str:
    """A reason of the API in words; any other text as it is."""
    return _REASONS[Reason(reason)] if reason in list(Reason) else reason


def _calendar(provider: str, calendar: str) -> str:
    # "primary" is an alias of the API, and no name for people.
    title = registry.title(provider)
    return f"the main calendar at {title}" if calendar == "primary" else f"{title}'s calendar {calendar}"


def verdict_sentence(
    facts: Explanation, query: Query, calendars: Sequence[str], *, outside: str | None = None
) -> str:
    """Why the moment is, or is not, offered; ``calendars[i]`` is the name of calendar ``i``.

    ``outside`` says why the moment lies outside the windows, where a person's own hours are the reason. A
    period whose calendar index is ``len(calendars)`` is held time.
    """
    clock = _Clock(facts.at, query.zone)
    if facts.verdict is Verdict.OFFERED:
        return f"{clock.moment()} is {_offered(facts, clock)}."
    because = outside or _BECAUSE[facts.verdict](facts, query, calendars, clock)
    return f"{clock.moment()} is not offered: {because}."


def unread_sentence(at: int, zone: str, unread: Sequence[UnreadCalendar]) -> str:
    """Why the moment is not offered: calendars could not be read."""
    if len(unread) == 1:
        provider, calendar, reason = unread[0]
        text = f"{_calendar(provider, calendar)} could not be read ({reason_words(reason)})"
    else:
        text = f"{_listed(list(map(str, unread)))} could not be read"
    return f"{_Clock(at, zone).moment()} is not offered: {text}, so nothing is offered."


def left_out_sentence(unread: Sequence[UnreadCalendar]) -> str:
    """An additional sentence for ``onFailure=partial``: the calendars that do not count."""
    return f"Not counted, because unread: {_listed(list(map(str, unread)))}."


def not_counting_sentence(names: Sequence[str]) -> str:
    """An additional sentence for a person's profile: the calendars that it leaves out."""
    return f"Calendars that do not count: {_listed(list(names))}."


def held_sentence(at: int, expires_at: int, zone: str) -> str:
    """An additional sentence for held time: when it is free again."""
    return f"The hold expires at {_Clock(at, zone).time(expires_at)}."


def no_calendars_sentence(at: int, zone: str) -> str:
    """Why the moment is not offered: the user has no connected calendar."""
    moment = _Clock(at, zone).moment()
    return f"{moment} is not offered: no calendar is connected, so nothing is offered."


def missing_user_sentence(at: int, zone: str) -> str:
    """Why the moment is not offered: the user does not exist."""
    return f"{_Clock(at, zone).moment()} is not offered: there is no such user."


def shared_sentence(at: int, zone: str, slot: Pair) -> str:
    """The moment is offered to groups: it is in a slot that they share."""
    clock = _Clock(at, zone)
    start = "offered: it is the start of the slot" if slot[0] == at else "within a slot that is offered,"
    return f"{clock.moment()} is {start} {clock.span(slot)}."


def not_enough_free_sentence(at: int, zone: str, slot: Pair, counts: Sequence[tuple[int, int]]) -> str:
    """Why the moment is not offered to groups; ``counts`` has the free and the required users of each."""
    clock = _Clock(at, zone)
    of_group = " of group {}" if len(counts) > 1 else ""
    lacking = [
        f"{free}{of_group.format(number)} {'is' if free == 1 else 'are'} free, and {required} required"
        for number, (free, required) in enumerate(counts, start=1)
        if free < required
    ]
    return f"{clock.moment()} is not offered: in the slot {clock.span(slot)}, {'; '.join(lacking)}."


def beyond_limit_sentence(at: int, query: Query, slot: Pair) -> str:
    """Why the moment is not offered to groups: they share enough earlier slots."""
    assert query.limit is not None, "a slot is left out for a limit"
    clock = _Clock(at, query.zone)
    returned = f"only {_first_slots(query.limit)} returned"
    return f"{clock.moment()} is not offered: it lies in the slot {clock.span(slot)}, but {returned}."


def span(pair: Pair, at: int, zone: str) -> str:
    """A span as in the sentences about the moment ``at``: ``from 10:00 to 10:30``."""
    return _Clock(at, zone).span(pair)


class _Clock:
    """Formats times in a zone, with the date if it differs from the date of the moment."""

    def __init__(self, at: int, zone: str) -> None:
        self._zone = ZoneInfo(zone)
        self._at = self._wall(at)

    def moment(self) -> str:
        """The moment itself, with date, year and zone.

        Other times omit the zone, and the day or the year if it is that of the moment.
        """
        return f"{_time(self._at)} on {self._day(self._at)} {self._at.year} ({self._zone.key})"

    def time(self, instant: int) -> str:
        """An instant: ``10:20``, or ``10:20 on Tuesday 24 November``."""
        wall = self._wall(instant)
        return f"{_time(wall)}{self._on(wall)}"

    def span(self, pair: Pair) -> str:
        """A span: ``from 10:00 to 10:30``."""
        first, last = map(self._wall, pair)
        if first.date() == last.date():
            return f"from {_time(first)} to {_time(last)}{self._on(first)}"
        if _time(last) == "00:00" and last.date() - first.date() == timedelta(days=1):
            return f"from {_time(first)} to midnight{self._on(first)}"
        return f"from {_time(first)} on {self._date(first)} to {_time(last)} on {self._date(last)}"

    def _wall(self, instant: int) -> datetime:
        return (EPOCH + instant * MILLISECOND).astimezone(self._zone)

    def _on(self, wall: datetime) -> str:
        return "" if wall.date() == self._at.date() else f" on {self._date(wall)}"

    def _date(self, wall: datetime) -> str:
        year = "" if wall.year == self._at.year else f" {wall.year}"
        return f"{self._day(wall)}{year}"

    @staticmethod
    def _day(wall: datetime) -> str:
        return f"{wall:%A} {wall.day} {wall:%B}"


def _time(wall: datetime) -> str:
    """``10:20``; with seconds or milliseconds if not zero, with the UTC offset if the time is ambiguous."""
    unit = "milliseconds" if wall.microsecond else "seconds" if wall.second else "minutes"
    shown = wall.replace(tzinfo=None).time().isoformat(unit)
    if wall.replace(fold=0).utcoffset() == wall.replace(fold=1).utcoffset():
        return shown
    return f"{shown} (UTC{wall.isoformat(timespec='minutes')[16:]})"


def _offered(facts: Explanation, clock: _Clock) -> str:
    assert facts.slot is not None, "an offered moment has a slot"
    start, end = facts.slot
    if facts.starts_slot:
        return f"offered: it is the start of the slot {clock.span((facts.at, facts.at + end - start))}"
    return f"within a slot that is offered, {clock.span(facts.slot)}"


def _outside_range(facts: Explanation, query: Query, _: Sequence[str], clock: _Clock) -> str:
    if facts.at < query.start:
        return f"the range asked for begins at {clock.time(query.start)}"
    return f"the range asked for ends at {clock.time(query.end)}"


def _outside_window(facts: Explanation, query: Query, _: Sequence[str], clock: _Clock) -> str:
    weekly = query.windows is not None or bool(query.hours)
    name = "the weekly schedule" if weekly else "the daily window"
    if weekly and query.each_day is not None:
        name = "the part of the weekly schedule in the daily window"
    if facts.window_before is None and facts.window_after is None:
        return f"it lies outside {name}, which is never open in the range asked for"
    edges = []
    if facts.window_before is not None:
        edges.append(f"closes at {clock.time(facts.window_before)}")
    if facts.window_after is not None:
        again = " again" if edges else ""
        edges.append(f"opens{again} at {clock.time(facts.window_after)}")
    return f"it lies outside {name}, which {' and '.join(edges)}"


def _busy(facts: Explanation, query: Query, calendars: Sequence[str], clock: _Clock) -> str:
    covering = [each for each in facts.covering if each.unpadded(facts.at)]
    longest = max(covering, key=lambda each: each.end)
    text = f"{_busy_text(longest, calendars)} {_extent(longest, query, clock)}"
    more = len(covering) - 1
    if not more:
        return text
    return f"{text}, and {_number(more, 'more calendar')} {'is' if more == 1 else 'are'} busy then"


def _padding(facts: Explanation, query: Query, calendars: Sequence[str], clock: _Clock) -> str:
    longest = max(facts.covering, key=lambda each: each.padded_end)
    text = f"{_busy_text(longest, calendars)} {_extent(longest, query, clock)}, and"
    if longest.end <= facts.at:
        return f"{text} {_keeping(query.padding_after)} it blocked until {clock.time(longest.padded_end)}"
    return f"{text} {_keeping(query.padding_before)} it blocked from {clock.time(longest.padded_start)} on"


def _keeping(padding: int) -> str:
    return f"{_length(padding)} of padding {'keeps' if padding == MINUTE else 'keep'}"


def _too_many_overlaps(facts: Explanation, query: Query, calendars: Sequence[str], clock: _Clock) -> str:
    names = [*calendars, "held time"]
    named = [f"{names[each.calendar]} {_extent(each, query, clock)}" for each in facts.covering]
    count = _number(len(facts.covering), "busy period")
    return f"{count}{_padded(query)} overlap there, and {query.max_overlaps} may: {_listed(named)}"


def _padded(query: Query) -> str:
    before, after = query.padding_before, query.padding_after
    if not query.is_padded:
        return ""
    if before == after:
        return f", with {_length(before)} of padding on both sides,"
    return f", with padding of {_length(before)} before and {_length(after)} after each,"


def _too_soon(_: Explanation, query: Query, __: Sequence[str], clock: _Clock) -> str:
    assert query.not_before is not None, "a moment is too soon for a notice"
    return f"with the minimum notice, no slot starts before {clock.time(query.not_before)}"


def _beyond_limit(facts: Explanation, query: Query, _: Sequence[str], clock: _Clock) -> str:
    assert query.limit is not None, "a slot is left out for a limit"
    text = f"a slot would cover it, but only {_first_slots(query.limit)} returned"
    if facts.previous_slot is None:
        return text
    last = "which" if query.limit == 1 else "the last of which"
    return f"{text}, {last} starts at {clock.time(facts.previous_slot[0])}"


def _first_slots(limit: int) -> str:
    return "the first slot is" if limit == 1 else f"the first {limit} slots are"


def _too_short(facts: Explanation, query: Query, _: Sequence[str], clock: _Clock) -> str:
    start, end = _stretch(facts)
    text = f"only {_length(end - start)} {_verb(end - start)} free, {clock.span((start, end))}"
    return f"{text}, and a slot takes {_length(query.duration)}"


def _remainder(facts: Explanation, query: Query, _: Sequence[str], clock: _Clock) -> str:
    end = _stretch(facts)[1]
    if facts.previous_slot is None or facts.previous_slot[0] < _stretch(facts)[0]:
        # The slots of this stretch are beyond the limit.
        return f"no slot of the free time {clock.span(_stretch(facts))} covers it"
    last = facts.previous_slot[1]
    text = f"the last slot of the free time {clock.span(_stretch(facts))} ends at {clock.time(last)}"
    if end - last < query.duration:
        rest = end - last
        return f"{text}, and the {_length(rest)} after it {_verb(rest)} too short for another"
    return f"{text}, and the next would start too late: {_spacing(query)}"


def _between_slots(facts: Explanation, query: Query, _: Sequence[str], clock: _Clock) -> str:
    start, end = _stretch(facts)
    text = f"{_spacing(query)}, and none that fits into the free time {clock.span((start, end))} covers it"
    if facts.next_slot is None:
        return text
    return f"{text}; the next slot starts at {clock.time(facts.next_slot[0])}"


_Because = Callable[[Explanation, Query, Sequence[str], _Clock], str]

_BECAUSE: dict[Verdict, _Because] = {
    Verdict.OUTSIDE_RANGE: _outside_range,
    Verdict.OUTSIDE_WINDOW: _outside_window,
    Verdict.TOO_SOON: _too_soon,
    Verdict.BUSY: _busy,
    Verdict.PADDING: _padding,
    Verdict.TOO_MANY_OVERLAPS: _too_many_overlaps,
    Verdict.BEYOND_LIMIT: _beyond_limit,
    Verdict.TOO_SHORT: _too_short,
    Verdict.REMAINDER: _remainder,
    Verdict.BETWEEN_SLOTS: _between_slots,
}


def _stretch(facts: Explanation) -> Pair:
    assert facts.free is not None, "the moment is free"
    return facts.free


def _busy_text(period: Covering, calendars: Sequence[str]) -> str:
    if period.calendar < len(calendars):
        return f"{calendars[period.calendar]} is busy"
    return "the time is held"


def _extent(period: Covering, query: Query, clock: _Clock) -> str:
    """The extent of a period, without an edge that lies where the read range ends."""
    opening, closing = query.busy_range()
    if opening < period.start and period.end < closing:
        return clock.span((period.start, period.end))
    if opening < period.start:
        return f"from {clock.time(period.start)} on"
    if period.end < closing:
        return f"until {clock.time(period.end)}"
    return "throughout the range asked for"


def _spacing(query: Query) -> str:
    if query.align_clock:
        return f"slots start where the clock shows a multiple of {_length(query.stride)}"
    return f"slots of {_length(query.duration)} start every {_length(query.stride)}"


def _length(length: int) -> str:
    """``20 minutes``, ``1 minute 30 seconds``."""
    minutes, rest = divmod(length, MINUTE)
    parts = [_number(minutes, "minute")] if minutes else []
    if rest:
        seconds = rest / SECOND
        parts.append(f"{seconds:g} second{'' if seconds == 1 else 's'}")
    return " ".join(parts)


def _verb(length: int) -> str:
    return "is" if length in (MINUTE, SECOND) else "are"


def _number(count: int, of: str) -> str:
    return f"{count} {of}{'' if count == 1 else 's'}"


def _listed(names: Sequence[str]) -> str:
    """``a, b and c``; beyond the first few as ``a, b, c and 4 more``."""
    shown = list(names[:MAX_NAMED])
    more = len(names) - len(shown)
    last = f"{more} more" if more else shown.pop()
    return f"{', '.join(shown)} and {last}" if shown else last
