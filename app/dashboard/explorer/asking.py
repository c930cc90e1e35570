"""A question in the command palette: ``ada tue 14:00`` asks why a user is, or is not, offered at a moment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from flask import url_for
from sqlalchemy.orm import Session

from app.dashboard.explorer.form import ALL
from app.schemas.availability import WEEKDAYS
from store.sql.queries import organizations, users

# 14:00, 9am or 2:30pm; a number alone may be a part of a name.
_CLOCK = re.compile(r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?P<half>am|pm)?", re.IGNORECASE)
# Words that may stand between names, day and time.
_FILLERS = frozenset(("and", "at", "on", "together", "&"))
# A question names at most this many users.
MAX_NAMED = 8


class Question(NamedTuple):
    """The names of users or of an organization, and a moment on the local clock: ``2026-12-01T14:00``."""

    names: Sequence[str]
    day: date
    clock: str


class Answered(NamedTuple):
    """A question whose names are known, in words, and the address of its answer."""

    title: str
    address: str


def parse(text: str, today: date) -> Question | None:
    """The question in a text; None if it has no time or no name. Without a day it is about today."""
    names: list[str] = []
    clock: str | None = None
    day: date | None = None
    # From the end, because a name may be a weekday too.
    for word in reversed(re.split(r"[\s,;]+", text.strip())):
        if clock is None and (clock := _clock(word)):
            continue
        if day is None and (day := _day(word, today)):
            continue
        if word.lower() not in _FILLERS:
            names.insert(0, word)
    if clock is None or not 0 < len(names) <= MAX_NAMED:
        return None
    return Question(names, day or today, clock)


def answered(session: Session, question: Question, zone: str) -> Answered | None:
    """Where the explorer answers a question: several users are looked up together; None for unknown names."""
    found = [_named(session, name) for name in question.names]
    if len(found) == 1 and found[0] is not None and found[0].is_organization:
        named = [found[0].name]
        arguments = {"organization": found[0].name}
    else:
        if any(each is None or each.is_organization for each in found):
            return None
        named = list(dict.fromkeys(each.name for each in found if each is not None))
        arguments = {"users": " ".join(named)}
        if len(named) > 1:
            arguments["together"] = ALL
    day = f"{question.day:%A} {question.day.day} {question.day:%B}"
    # The hours of the people count, not those of the chart.
    asked = {**arguments, "window": "none", "zone": zone, "moment": f"{question.day}T{question.clock}"}
    address = f"{url_for('dashboard.explorer')}?{urlencode(asked)}"
    return Answered(f"{', '.join(named)}, {day} at {question.clock}", address)


class _Named(NamedTuple):
    """The user or the organization that a name means."""

    name: str
    is_organization: bool = False


def _named(session: Session, name: str) -> _Named | None:
    """The user with this id, else the organization with this slug, else the first that a search suggests."""
    if users.ids(session, [name], organization_id=None):
        return _Named(name)
    if organizations.ids(session, [name], organization_id=None):
        return _Named(name, is_organization=True)
    for custom_id, _ in users.suggested(session, name, limit=1):
        return _Named(custom_id)
    for slug, _ in organizations.suggested(session, name, limit=1):
        return _Named(slug, is_organization=True)
    return None


def _clock(word: str) -> str | None:
    found = _CLOCK.fullmatch(word)
    if found is None or not (found["minute"] or found["half"]):
        return None
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    if half := (found["half"] or "").lower():
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return f"{hour:02d}:{minute:02d}" if hour < 24 and minute < 60 else None


def _day(word: str, today: date) -> date | None:
    """The day that a word names: a date, ``today``, ``tomorrow``, or the next such weekday."""
    word = word.lower()
    if word in ("today", "tomorrow"):
        return today + timedelta(days=word == "tomorrow")
    if len(word) >= 3 and (ahead := [n for n in range(7) if _weekday(today, n).startswith(word)]):
        return today + timedelta(days=ahead[0])
    try:
        return date.fromisoformat(word) if re.fullmatch(r"\d{4}-\d\d-\d\d", word) else None
    except ValueError:
        return None


def _weekday(today: date, ahead: int) -> str:
    return WEEKDAYS[(today + timedelta(days=ahead)).weekday()]
