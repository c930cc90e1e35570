"""The text of a calendar object as a tree of content lines, to change some and keep all others as they are.

A parser that understands values would lose what it does not know: properties of other programs, parameters of
attendees, alarms. https://www.rfc-editor.org/rfc/rfc5545#section-3.1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from icalendar.parser import Contentline, Contentlines, Parameters

# A calendar has events, and these have alarms. Servers write nothing deeper.
MAX_DEPTH = 8


def name_of(line: str) -> str:
    """The name of the property in a line, in upper case."""
    for end, letter in enumerate(line):
        if letter in ":;":
            return line[:end].upper()
    return line.upper()


def parts(line: str) -> tuple[Parameters, str]:
    """The parameters of a line, and its value as it is written.

    :raise ValueError: for a line that is no property
    """
    _, parameters, value = Contentline(line).raw_parts()
    return parameters, value


def line(name: str, value: str, **parameters: str) -> str:
    """A line of a property; ``value`` is in the form of its type."""
    shown = Parameters(parameters).to_ical(sorted=False).decode() if parameters else ""
    return f"{name};{shown}:{value}" if shown else f"{name}:{value}"


@dataclass(slots=True, eq=False)
class Component:
    """A component: its lines and its components, in the order of the text."""

    name: str
    parts: list[str | Component] = field(default_factory=list)

    def lines(self, *names: str) -> list[str]:
        """The lines of some properties, in order."""
        return [each for each in self.parts if isinstance(each, str) and name_of(each) in names]

    def first(self, name: str) -> str | None:
        """The first line of a property."""
        return next(iter(self.lines(name)), None)

    def components(self, name: str) -> list[Component]:
        """The components of one kind."""
        return [each for each in self.parts if isinstance(each, Component) and each.name == name]

    def replace(self, name: str, *lines: str) -> None:
        """Put lines in the place of those of a property, or after the other properties if there are none."""
        known = [at for at, each in enumerate(self.parts) if isinstance(each, str) and name_of(each) == name]
        inner = [at for at, each in enumerate(self.parts) if isinstance(each, Component)]
        at = known[0] if known else (inner[0] if inner else len(self.parts))
        before = self.parts[:at]
        after = [each for each in self.parts[at:] if not (isinstance(each, str) and name_of(each) == name)]
        self.parts = [*before, *lines, *after]

    def insert(self, component: Component, *, before: str) -> None:
        """Add a component in front of those of one kind."""
        positions = [
            at for at, each in enumerate(self.parts) if isinstance(each, Component) and each.name == before
        ]
        self.parts.insert(positions[0] if positions else len(self.parts), component)

    def without(self, *names: str) -> Component:
        """A copy without some properties."""
        kept = [each for each in self.parts if not (isinstance(each, str) and name_of(each) in names)]
        return Component(self.name, deepcopy(kept))

    def text(self) -> str:
        """The text, with folded lines."""
        text: bytes = Contentlines(Contentline(each) for each in self._all()).to_ical()
        return text.decode()

    def _all(self) -> Iterator[str]:
        yield f"BEGIN:{self.name}"
        for each in self.parts:
            if isinstance(each, str):
                yield each
            else:
                yield from each._all()
        yield f"END:{self.name}"


def parse(text: str) -> Component:
    """The calendar of a text.

    :raise ValueError: when it has not exactly one, or its components do not end
    """
    outer = Component("")
    stack = [outer]
    for each in _unfolded(text):
        name = name_of(each)
        if name == "BEGIN":
            inner = Component(each.partition(":")[2].strip().upper())
            if len(stack) > MAX_DEPTH:
                raise ValueError("components nested too deep")
            stack[-1].parts.append(inner)
            stack.append(inner)
        elif name == "END":
            ended = stack.pop()
            if not stack or ended.name != each.partition(":")[2].strip().upper():
                raise ValueError("a component that does not end")
        else:
            stack[-1].parts.append(each)
    found = outer.components("VCALENDAR")
    if len(stack) != 1 or len(found) != 1:
        raise ValueError("not one calendar")
    return found[0]


def _unfolded(text: str) -> Sequence[str]:
    return [str(each) for each in Contentlines.from_ical(text) if each]  # type: ignore[no-untyped-call]
