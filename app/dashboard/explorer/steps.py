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


def steps(query: ExplorerQuery, today: date) -> Sequence[Step]:
    """The links of a picture; a link to a year that the service does not know is left out."""
    all_steps = [
        Step("previous", "Previous week", "\N{LEFTWARDS ARROW}", query.first - WEEK),
        Step("today", "Today", "", today),
        Step("next", "Next week", "\N{RIGHTWARDS ARROW}", query.first + WEEK),
    ]
    return [step for step in all_steps if FIRST_YEAR <= step.day.year <= LAST_YEAR]


def url_starting_on(day: date) -> str:
    """The address of the page with this request's query, starting on another day."""
    kept = {name: each for name, each in request.args.items() if each and name not in _LEFT_OUT}
    url_params = urlencode({**kept, "day": f"{day}", "show": "1"})
    return f"{url_for('dashboard.explorer')}?{url_params}"
