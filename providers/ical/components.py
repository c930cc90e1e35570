"""The components of a calendar, with the properties that availability and zones need.

A feed has tens of thousands of lines, of which these are a few: one regular expression finds them. The others
are parsed only for events that are shown (``events``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from providers.ical.bounds import InvalidCalendar, Limits
from providers.ical.lines import UnreadableLine, divide

# Of attendees, only declining ones matter. A line break in front is found faster than the beginning of a
# line.
_LINE = re.compile(
    r"\n(BEGIN|END|DTSTART|DTEND|DURATION|RRULE|RDATE|EXDATE|RECURRENCE-ID|UID|TRANSP|FREEBUSY"
    r"|STATUS|ATTENDEE(?=[^\n]*DECLINED)|X-MICROSOFT-CDO-BUSYSTATUS"
    r"|X-WR-TIMEZONE|X-WR-CALNAME|NAME|TZID|TZOFFSETFROM|TZOFFSETTO)"
    r"(?![A-Z0-9-])([^\n]*)",
    re.ASCII | re.IGNORECASE,
)
_NAME = re.compile(r":[A-Z0-9-]+\s*", re.IGNORECASE)


@dataclass(slots=True, eq=False)
class Component:
    """A component from ``begin`` to ``end`` in the text.

    ``properties`` are what follows the name in the line of a name, such as ``;VALUE=DATE:20261127``; a list
    when there are several. Most components have one of each: tens of thousands of lists would be slow.
    """

    name: str
    begin: int
    end: int = 0
    properties: dict[str, str | list[str]] = field(default_factory=dict)
    parts: list[Component] | tuple[()] = ()

    def every(self, name: str) -> Sequence[str]:
        """The rest of each line of a name."""
        found = self.properties.get(name, ())
        return (found,) if isinstance(found, str) else found

    def single(self, name: str) -> str:
        """The value of a property.

        :raise Unreadable: without it, or when it is there twice with different values
        """
        found = self.property(name)
        if found is None:
            raise UnreadableLine
        return found[1]

    def property(self, name: str) -> tuple[str, str] | None:
        """Parameters and value of a property that may be there once; None without it.

        :raise Unreadable: when it is there twice with different values, or has none
        """
        rest = self.line(name)
        return None if rest is None else divide(rest)

    def line(self, name: str) -> str | None:
        """The rest of the line of a property that may be there once; None without it.

        :raise Unreadable: when it is there twice with different values
        """
        rest = self.properties.get(name)
        if rest is None or isinstance(rest, str):
            return rest
        if any(each != rest[0] for each in rest):
            raise UnreadableLine
        return rest[0]


def parse(text: str, limits: Limits) -> list[Component]:
    """The ``VCALENDAR`` components of unfolded text, which may follow each other.

    :raise InvalidCalendar: when there is none, one is incomplete, or a limit is exceeded
    """
    calendars: list[Component] = []
    stack: list[Component] = []
    room = limits.components
    properties: dict[str, str | list[str]] = {}
    # The places of matches are those of what follows the line break in the text without it.
    for line in _LINE.finditer(f"\n{text}"):
        name, rest = line.groups()
        if not name.isupper():
            name = name.upper()
        if name not in ("BEGIN", "END"):
            if name in properties:
                _add(properties, name, rest)
            else:
                properties[name] = rest
            continue
        if not _NAME.fullmatch(rest):
            # A line of a description whose line breaks are not escaped.
            continue
        if name == "BEGIN":
            opened = Component(rest[1:].strip().upper(), line.start())
            if not stack:
                if opened.name != "VCALENDAR":
                    raise InvalidCalendar("The address does not lead to a calendar")
                calendars.append(opened)
            else:
                room -= 1
                if room < 0:
                    raise InvalidCalendar(f"The calendar has more than {limits.components:,} components")
                _check_nesting(stack, opened, limits)
                _nest(stack[-1], opened)
            stack.append(opened)
        else:
            if not stack or stack[-1].name != rest[1:].strip().upper():
                raise InvalidCalendar("The calendar is damaged: its components do not end as they begin")
            stack.pop().end = line.end() - 1
        properties = stack[-1].properties if stack else {}
    if not calendars:
        raise InvalidCalendar("The address does not lead to a calendar")
    if stack:
        raise InvalidCalendar("The calendar is incomplete: its end is missing")
    return calendars


def _check_nesting(stack: list[Component], opened: Component, limits: Limits) -> None:
    # Two events whose lines in between are lost must not become one.
    if len(stack) >= limits.depth or (opened.name in ("VEVENT", "VFREEBUSY") and len(stack) > 1):
        raise InvalidCalendar("The calendar is damaged: its components are nested in each other")


def _nest(outer: Component, part: Component) -> None:
    if isinstance(outer.parts, tuple):
        outer.parts = [part]
    else:
        outer.parts.append(part)


def _add(properties: dict[str, str | list[str]], name: str, rest: str) -> None:
    found = properties[name]
    if isinstance(found, str):
        properties[name] = [found, rest]
    else:
        found.append(rest)
