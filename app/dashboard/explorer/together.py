"""The slots in which enough of the shown people are free together, as group availability has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from app.dashboard.explorer.data import ExplorerData
from app.dashboard.explorer.fields import ALL
from app.dashboard.explorer.form import ExplorerQuery
from app.http.errors import Invalid
from scheduling.query import Requirement, Slots, shared, slots


class SharedSlot(NamedTuple):
    """A slot: its local start, and the people who are free for the whole of it."""

    day: date
    start: str
    people: Sequence[str]


@dataclass(frozen=True, slots=True)
class Together:
    """The shared slots of each day; ``required`` of ``people`` have to be free."""

    required: int
    people: int
    days: Sequence[tuple[date, Sequence[SharedSlot]]]

    @property
    def count(self) -> int:
        """The number of slots."""
        return sum(len(shown) for _, shown in self.days)


def together(query: ExplorerQuery, data: ExplorerData) -> Together | None:
    """The slots that the shown people share; None if the query requires none.

    As for the API, slots start at multiples of the step on the local clock, and a person who cannot be read
    is not free.

    :raise Invalid: when more people are required than there are, or an organization has more than are shown
    """
    if query.together is None:
        return None
    people = len(data.lanes)
    if data.hidden:
        raise Invalid(
            f"Free together takes at most {people} people; name the users to compare", param="together"
        )
    required = people if query.together == ALL else int(query.together)
    if required > people:
        raise Invalid(f"Free together must be at most {people}, the number of people", param="together")
    readable = [lane.user for lane in data.lanes if lane.group_index is not None]
    busy = data.result.of_users(np.array([data.indexes[user] for user in readable], np.int64))
    slot_query = query.slot_query
    of_each = slots(replace(slot_query, align_clock=True, limit=None), *busy)
    requirement = Requirement(np.arange(len(readable)), required)
    offered = shared(of_each, [requirement], len(readable), slot_query.limit)
    by_day = groupby(_slots(offered, readable, query), key=lambda slot: slot.day)
    return Together(required, people, [(day, list(each)) for day, each in by_day])


def _slots(offered: Slots, people: Sequence[str], query: ExplorerQuery) -> list[SharedSlot]:
    firsts = offered.firsts()
    borders = [*firsts.tolist(), len(offered)]
    starts, members = offered.starts.take(firsts).tolist(), offered.members.tolist()
    shared_slots = []
    for start, (first, after) in zip(starts, pairwise(borders), strict=True):
        local = datetime.fromtimestamp(start / 1000, UTC).astimezone(query.zone)
        names = [people[member] for member in members[first:after]]
        shared_slots.append(SharedSlot(local.date(), f"{local:%H:%M}", names))
    return shared_slots
