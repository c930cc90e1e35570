"""Recurring events: the instances of a series, on the wall clock of its zone."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from dateutil.rrule import rrulestr

from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.times import DAY, instant, moment, zone

# A series without end is expanded this far when the query has no end either.
HORIZON = 730 * DAY
MARGIN = DAY
# The end of a series, as an instant in UTC: RFC 5545, 3.3.10.
UNTIL = re.compile(r"UNTIL=(\d{8}T\d{6}Z)", re.IGNORECASE)


def expanded(calendar: Calendar, start: int | None, end: int | None) -> list[Event]:
    """Single events and instances that may touch ``[start, end)``; the caller filters exactly.

    A stored event with the id of an instance replaces it: moved, changed or cancelled.
    """
    found: list[Event] = []
    for event in calendar.events.values():
        if event.rule:
            found.extend(i for i in instances(event, start, end) if i.id not in calendar.events)
        elif near(event, start, end):
            found.append(event)
    return found


def near(event: Event, start: int | None, end: int | None) -> bool:
    # A day on either side: all-day events begin at another instant in each zone.
    return (end is None or event.start < end + MARGIN) and (start is None or event.end > start - MARGIN)


def instances(master: Event, start: int | None, end: int | None) -> Iterator[Event]:
    """The instances of a series near a window."""
    if master.deleted:
        return
    length = master.end - master.start
    last = end if end is not None else (start or master.start) + HORIZON
    for begins in starts(master, last + MARGIN):
        if start is None or begins + length > start - MARGIN:
            yield instance(master, begins)


def instance(master: Event, begins: int) -> Event:
    """One instance; its id contains the original start, as at Google."""
    moment_ = datetime.fromtimestamp(begins / 1000, UTC)
    mark = f"{moment_:%Y%m%d}" if master.all_day else f"{moment_:%Y%m%dT%H%M%SZ}"
    return dataclasses.replace(
        master,
        id=f"{master.id}_{mark}",
        start=begins,
        end=begins + master.end - master.start,
        rule=(),
        series=master.id,
        original_start=begins,
    )


def instance_named(calendar: Calendar, event_id: str) -> Event | None:
    """The unchanged instance with an id, however late it is; None if its series has none."""
    name, _, mark = event_id.rpartition("_")
    master = calendar.events.get(name)
    if master is None or master.deleted or not master.rule:
        return None
    try:
        when = datetime.fromisoformat(mark)
    except ValueError:
        return None
    begins = instant(when if when.tzinfo else when.replace(tzinfo=UTC))
    found = instance(master, begins)
    return found if found.id == event_id and begins in starts(master, begins) else None


def orphans(calendar: Calendar, master: Event) -> list[Event]:
    """The changed instances of a series that it no longer has, because its rule or its start has changed.

    Google resets the changed instances after an end of the series; Exchange those of a changed pattern.
    https://developers.google.com/workspace/calendar/api/guides/recurringevents
    """
    changed = [
        each
        for each in calendar.events.values()
        if each.series == master.id and not each.deleted and each.original_start is not None
    ]
    if not changed:
        return []
    last = max(each.original_start or 0 for each in changed)
    kept = set(starts(master, last)) if master.rule else set()
    return [each for each in changed if each.original_start not in kept]


def walls(rule: tuple[str, ...], first: datetime, where: str) -> Iterable[datetime]:
    """The times of a rule on the wall clock of ``where``, an UNTIL included."""
    lines = (local_dates(line, where) for line in rule)
    return rrulestr("\n".join(lines), dtstart=first, forceset=True, ignoretz=True)


def local_dates(line: str, where: str) -> str:
    """A line of a rule whose dates, if it has any, are on the wall clock of ``where``.

    EXDATE and RDATE may be in UTC or in a zone of their own: RFC 5545, 3.8.5.1 and 3.8.5.2.
    """
    head, _, values = line.partition(":")
    name, *parameters = head.upper().split(";")
    if name == "RRULE":
        return UNTIL.sub(lambda found: f"UNTIL={local_date(found[1], 'UTC', where)}", line)
    if name not in ("EXDATE", "RDATE"):
        return line
    zones = [each.partition("=")[2] for each in head.split(";") if each.upper().startswith("TZID=")]
    if any(each.startswith("VALUE=") and each[6:] not in ("DATE", "DATE-TIME") for each in parameters):
        raise ValueError(f"{head} is not a list of dates")
    dates = [local_date(value, zones[0] if zones else where, where) for value in values.split(",")]
    return f"{name}:{','.join(dates)}"


def local_date(value: str, written_in: str, where: str) -> str:
    """One date of a list: without a zone, on the wall clock of ``where``."""
    when = datetime.fromisoformat(value)
    if "T" not in value:
        return f"{when:%Y%m%dT%H%M%S}"
    aware = when if when.tzinfo else when.replace(tzinfo=zone(written_in))
    return f"{aware.astimezone(zone(where)):%Y%m%dT%H%M%S}"


def is_readable(rule: tuple[str, ...]) -> bool:
    """Whether a rule is valid and not empty."""
    try:
        return not rule or bool(walls(rule, datetime(2026, 1, 1), "UTC"))  # noqa: DTZ001 - a wall clock
    except (ValueError, TypeError, AttributeError):
        return False


def starts(master: Event, until: int) -> Iterator[int]:
    """When the instances begin, in order, up to ``until``."""
    where = "UTC" if master.all_day else master.start_zone
    first = moment(master.start, where).replace(tzinfo=None)
    for wall in walls(master.rule, first, where):
        begins = instant(wall.replace(tzinfo=zone(where)))
        if begins > until:
            return
        yield begins
