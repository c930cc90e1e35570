"""The periods of a person with their calendars, for the hints under the pointer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from app.dashboard.blueprint import blp
from app.dashboard.explorer import data, form
from app.dashboard.explorer.data import ExplorerData
from app.http.errors import ApiError
from scheduling.intervals import Intervals


class Period(NamedTuple):
    """A period in milliseconds; ``name`` is the calendar of a busy one."""

    start: int
    end: int
    kind: str
    name: str = ""


@blp.get("/explorer/periods")
def explorer_periods() -> ResponseReturnValue:
    """The busy periods, held time and slots of one person in the picture's range; none after an error."""
    try:
        query = form.read(request.args, form.today(request.args))
        person = request.args.get("person", "")
        explorer_data = data.load(replace(query, organization=None, users=(person,)))
    except ApiError:
        return jsonify([])
    start, end = query.slot_query.start, query.slot_query.end
    return jsonify([[*each] for each in _periods(explorer_data) if each.start < end and each.end > start])


def _periods(data: ExplorerData) -> Iterator[Period]:
    if not data.indexes:
        return
    result = data.result
    for index in result.target_indexes(0):
        target = result.targets[index]
        name = f"{target.shown} ({target.connection.provider.title()})"
        yield from _of(result.busy.group(index), "busy", name)
    for each in result.held.get(0, ()):
        yield Period(each.starts, each.ends, "held")
    if len(data.slots):
        yield from _of(data.slots.group(0), "slot")


def _of(intervals: Intervals, kind: str, name: str = "") -> Iterator[Period]:
    for start, end in intervals.pairs():
        yield Period(start, end, kind, name)
