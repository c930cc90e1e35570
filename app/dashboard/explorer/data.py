"""The data of the explorer for each user: layers of busy time, slots, and calendars that were not read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from app.availability import connections
from app.availability.failures import Failures
from app.availability.lookup import look_up
from app.availability.parameters import Freshness, now_ms
from app.availability.result import BusyResult
from app.availability.selection import CalendarRequest, CalendarSelector
from app.dashboard.explorer.form import ALL, MAX_SHOWN, ExplorerQuery
from app.http.authentication import authentication
from app.http.errors import Invalid
from app.services import services
from scheduling.intervals import Groups, Intervals
from scheduling.layers import Layers, layers
from scheduling.query import Requirement, Slots, shared, slots, slots_of_each
from store.sql.queries import connection_rows
from store.sql.queries.connection_rows import ConnectionRef

NO_INTERVALS = Intervals.of(())

NOT_KNOWN = "There is no such user"
NOTHING_CONNECTED = "No calendar is connected"


class Lane(NamedTuple):
    """One user. ``group_index`` is the index of the group; if it is None, ``failed`` or ``note`` says why."""

    user: str
    group_index: int | None = None
    failed: Sequence[Mapping[str, Any]] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ExplorerData:
    """The answer to a query: ``layers`` and ``slots`` have one group for each lane with a ``group_index``.

    ``hidden`` is the number of members beyond ``MAX_SHOWN``. ``indexes`` has the index of each user in
    ``result``. ``age`` is that of the oldest read, in seconds; ``took`` is the duration in milliseconds.
    ``held`` is the held time of each group, which is also a part of ``layers.busy``. ``people`` has the
    connections of each known user.
    """

    lanes: Sequence[Lane]
    layers: Layers
    slots: Groups
    outside: Intervals
    hidden: int
    age: int | None
    took: float
    result: BusyResult
    indexes: Mapping[str, int]
    held: Groups = field(default_factory=lambda: Groups.pack([]))
    people: Mapping[str, Sequence[ConnectionRef]] = field(default_factory=dict)


def load(query: ExplorerQuery, *, fresh: bool = False) -> ExplorerData:
    """Look up the busy time of all users of a query; ``fresh`` reads every calendar from its provider.

    :raise NotFound: for an unknown organization
    :raise Invalid: without organization and users
    """
    began = time.perf_counter()
    people, hidden = _people(query)
    indexes = {user: n for n, user in enumerate(user for user, refs in people.items() if refs)}
    selector = CalendarSelector()
    result = look_up(
        authentication(),
        [CalendarRequest(people[user] or (), selector) for user in indexes],
        *query.slot_query.busy_range(),
        Freshness(newer_than=now_ms() if fresh else None),
    )
    failing = result.failing()
    readable = [user for user, index in indexes.items() if index not in failing]
    busy = result.of_users(np.array([indexes[user] for user in readable], np.int64))
    parts, offered = layers(query.slot_query, *busy), slots_of_each(query.slot_query, *busy)
    group_indexes = {user: group_index for group_index, user in enumerate(readable)}
    lanes = [_lane(user, refs, group_indexes, result, indexes) for user, refs in people.items()]
    oldest = result.oldest_read
    age = None if oldest is None else max(0, now_ms() - oldest) // 1000
    took = (time.perf_counter() - began) * 1000
    held = _held_of_each(query, result, [indexes[user] for user in readable])
    outside = _outside(query)
    known = {user: refs for user, refs in people.items() if refs is not None}
    return ExplorerData(lanes, parts, offered, outside, hidden, age, took, result, indexes, held, known)


def _people(query: ExplorerQuery) -> tuple[dict[str, Sequence[ConnectionRef] | None], int]:
    """The connections of each user, None for an unknown user; and the number of members left out."""
    if query.organization is not None:
        members = connections.of_members(authentication(), query.organization)
        if query.find:
            members = {user: refs for user, refs in members.items() if _matches(query.find, user, refs)}
        first = dict(list(members.items())[:MAX_SHOWN])
        return dict(first), len(members) - len(first)
    if not query.users:
        raise Invalid("Choose an organization, or name users", param="organization")
    with services().stores.database.reading() as session:
        refs_of = connection_rows.of_users(session, query.users, organization_id=None)
    return {user: refs_of.get(user) for user in query.users}, 0


def _matches(text: str, user: str, refs: Sequence[ConnectionRef]) -> bool:
    """Whether the text is a part of the user's id or of an account's address."""
    return any(text.casefold() in name.casefold() for name in (user, *(each.email or "" for each in refs)))


def _held_of_each(query: ExplorerQuery, result: BusyResult, user_indexes: Sequence[int]) -> Groups:
    if not result.held:
        return Groups.sized(NO_INTERVALS.starts, NO_INTERVALS.ends, [0] * len(user_indexes))
    return Groups.pack([_held(query, result, each) for each in user_indexes])


def _held(query: ExplorerQuery, result: BusyResult, user_index: int) -> Intervals:
    """The held time of a user within the range."""
    if user_index not in result.held:
        return NO_INTERVALS
    start, end = query.slot_query.start, query.slot_query.end
    shown = [(max(each.starts, start), min(each.ends, end)) for each in result.held[user_index]]
    return Intervals.of([(first, last) for first, last in shown if first < last])


def _lane(
    user: str,
    refs: Sequence[ConnectionRef] | None,
    group_indexes: Mapping[str, int],
    result: BusyResult,
    indexes: Mapping[str, int],
) -> Lane:
    if user in group_indexes:
        return Lane(user, group_indexes[user])
    if user in indexes:
        return Lane(user, failed=Failures.of(result, indexes[user]).calendars())
    return Lane(user, note=NOT_KNOWN if refs is None else NOTHING_CONNECTED)


def _outside(query: ExplorerQuery) -> Intervals:
    """The parts of the range that no window covers."""
    within = query.slot_query.open_intervals()
    starts = np.concatenate(((query.slot_query.start,), within.ends))
    ends = np.concatenate((within.starts, (query.slot_query.end,)))
    return Intervals(starts, ends).take(starts < ends)


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
