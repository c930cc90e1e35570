"""Answers as an assistant is told them: a short text, failures first, and the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from mcp.types import CallToolResult, TextContent

from almanac_client import Answer

T = TypeVar("T")

UNKNOWN = "What is told below leaves out what could not be read, and it is unknown, not free."


def told(lines: Sequence[str], data: Mapping[str, Any]) -> CallToolResult:
    """A result of these lines and this data."""
    text = TextContent(type="text", text="\n".join(line for line in lines if line))
    return CallToolResult(content=[text], structured_content=dict(data))


def refused(sentence: str) -> CallToolResult:
    """A result that says why there is none."""
    return CallToolResult(content=[TextContent(type="text", text=sentence)], is_error=True)


def unread(answer: Answer[Any]) -> list[str]:
    """What could not be read: the first lines of a text, and none when everything was."""
    return [] if answer.complete else [f"{answer.what_failed()}.", UNKNOWN]


def failures(answer: Answer[Any]) -> dict[str, Any]:
    """The same as data."""
    return {
        "complete": answer.complete,
        "failedUsers": list(answer.failed_users),
        "failedCalendars": list(answer.failed_calendars),
    }


def some(rows: Sequence[T], most: int, line: Callable[[T], str], what: str) -> list[str]:
    """How many there are, and as many as are wanted, a line for each."""
    if not rows:
        return [f"No {what}s."]
    head = f"{len(rows)} {what}{'s' if len(rows) > 1 else ''}"
    cut = f"; the first {most}" if len(rows) > most else ""
    return [f"{head}{cut}:", *(line(row) for row in rows[:most])]


def span(start: str, end: str, zone: str) -> str:
    """A stretch of time on the clock of a zone: ``Thu 3 Dec 09:00-10:00``."""
    first, last = (datetime.fromisoformat(edge).astimezone(ZoneInfo(zone)) for edge in (start, end))
    until = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%a} {last.day} {last:%b %H:%M}"
    return f"{first:%a} {first.day} {first:%b %H:%M}-{until}"
