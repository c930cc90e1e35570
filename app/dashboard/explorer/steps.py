"""The links of the explorer to the week before, to today, and to the week after."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple
from urllib.parse import urlencode

from flask import request, url_for

from app.dashboard.explorer.form import ExplorerQuery
from app.schemas.timestamps import FIRST_YEAR, LAST_YEAR

WEEK = timedelta(days=7)
# They belong to one picture.
_LEFT_OUT = frozenset({"day", "show", "fresh", "at", "moment", "person"})


class Step(NamedTuple):
    """A link to another first day; ``short`` is its text if the label is for screen readers only."""

    name: str
    label: str
    short: str
    day: date
    url: str


def steps(query: ExplorerQuery, today: date) -> Sequence[Step]:
    """The links of a picture; a link to a year that the service does not know is left out."""
    kept = urlencode({name: each for name, each in request.args.items() if each and name not in _LEFT_OUT})
    page = f"{url_for('dashboard.explorer')}?{kept}"
    all_steps = [
        ("previous", "Previous week", "\N{LEFTWARDS ARROW}", query.first - WEEK),
        ("today", "Today", "", today),
        ("next", "Next week", "\N{RIGHTWARDS ARROW}", query.first + WEEK),
    ]
    return [
        Step(name, label, short, day, f"{page}&day={day}&show=1")
        for name, label, short, day in all_steps
        if FIRST_YEAR <= day.year <= LAST_YEAR
    ]
