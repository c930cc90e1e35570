"""Tool results for an assistant: a short text, failures first, and the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from mcp.types import CallToolResult, TextContent

from almanac_client import Answer

T = TypeVar("T")

UNKNOWN = "The answer below leaves out calendars that could not be read; their time is unknown, not free."


def result(lines: Sequence[str], data: Mapping[str, Any]) -> CallToolResult:
    """A result with these lines and this data."""
    text = TextContent(type="text", text="\n".join(line for line in lines if line))
    return CallToolResult(content=[text], structured_content=dict(data))


def error_result(sentence: str) -> CallToolResult:
    """A result that reports an error."""
    return CallToolResult(content=[TextContent(type="text", text=sentence)], is_error=True)


def unread(answer: Answer[Any]) -> list[str]:
    """The lines about calendars that could not be read, first in a text; empty without failures."""
    return [] if answer.complete else [f"{answer.what_failed()}.", UNKNOWN]


def failures(answer: Answer[Any]) -> dict[str, Any]:
    """The same as data."""
    return {
        "complete": answer.complete,
        "failedUsers": [each.as_json() for each in answer.failed_users],
        "failedCalendars": [each.as_json() for each in answer.failed_calendars],
    }


def some(rows: Sequence[T], most: int, line: Callable[[T], str], what: str) -> list[str]:
    """The number of rows, and at most ``most`` of them, a line for each."""
    if not rows:
        return [f"No {what}s."]
    head = f"{len(rows)} {what}{'s' if len(rows) > 1 else ''}"
    cut = f"; the first {most}" if len(rows) > most else ""
    return [f"{head}{cut}:", *(line(row) for row in rows[:most])]


def span(start: datetime, end: datetime, zone: str) -> str:
    """A period on the clock of a zone: ``Thu 3 Dec 09:00-10:00``."""
    first, last = (edge.astimezone(ZoneInfo(zone)) for edge in (start, end))
    until = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%a} {last.day} {last:%b %H:%M}"
    return f"{first:%a} {first.day} {first:%b %H:%M}-{until}"
