"""The data of the explorer for each user: layers of busy time, slots, and calendars that were not read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.accounts import connections as accounts
from app.availability.failures import Failures
from app.availability.freshness import Freshness, now_ms
from app.availability.lookup import look_up
from app.availability.result import BusyResult
from app.availability.selection import CalendarRequest, CalendarSelector
from app.dashboard.explorer.fields import MOST_SHOWN
from app.dashboard.explorer.form import Question
from app.http.api_key_hook import authentication
from app.http.errors import Invalid
from app.services import services
from scheduling.intervals import Groups, Intervals
from scheduling.layers import Layers, layers
from scheduling.query import slots_of_each
from store.sql.queries import connection_refs
from store.sql.queries.connection_refs import ConnectionRef

NOT_KNOWN = "There is no such user"
NOTHING_CONNECTED = "No calendar is connected"


@dataclass(frozen=True, slots=True)
class Lane:
    """One user. ``group_index`` is the index of the group; if it is None, ``failed`` or ``note`` says why."""

    user: str
    group_index: int | None = None
    failed: Sequence[Mapping[str, Any]] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ExplorerData:
    """The answer to a question: ``layers`` and ``slots`` have one group for each lane with a ``group_index``.

    ``hidden`` is the number of members beyond ``MOST_SHOWN``. ``indexes`` has the index of each user in
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


def load(question: Question, *, fresh: bool = False) -> ExplorerData:
    """Look up the busy time of all users of a question; ``fresh`` reads every calendar from its provider.

    :raise NotFound: for an unknown organization
    :raise Invalid: without organization and users
    """
    began = time.perf_counter()
    people, hidden = _people(question)
    indexes = {user: n for n, user in enumerate(user for user, refs in people.items() if refs)}
    selector = CalendarSelector()
    result = look_up(
        authentication(),
        [CalendarRequest(people[user] or (), selector) for user in indexes],
        *question.engine.busy_range(),
        Freshness(newer_than=now_ms() if fresh else None),
    )
    failing = result.failing()
    readable = [user for user, index in indexes.items() if index not in failing]
    busy = result.of_requests(np.array([indexes[user] for user in readable], np.int64))
    parts, offered = layers(question.engine, *busy), slots_of_each(question.engine, *busy)
    group_indexes = {user: group_index for group_index, user in enumerate(readable)}
    lanes = [_lane(user, refs, group_indexes, result, indexes) for user, refs in people.items()]
    oldest = result.oldest_read
    age = None if oldest is None else max(0, now_ms() - oldest) // 1000
    took = (time.perf_counter() - began) * 1000
    held = Groups.pack([_held(question, result, indexes[user]) for user in readable])
    outside = _outside(question)
    known = {user: refs for user, refs in people.items() if refs is not None}
    return ExplorerData(lanes, parts, offered, outside, hidden, age, took, result, indexes, held, known)


def _people(question: Question) -> tuple[dict[str, Sequence[ConnectionRef] | None], int]:
    """The connections of each user, None for an unknown user; and the number of members left out."""
    if question.organization is not None:
        everybody = accounts.of_members(authentication(), question.organization)
        members = {user: refs for user, refs in everybody.items() if _matches(question.find, user, refs)}
        first = dict(list(members.items())[:MOST_SHOWN])
        return dict(first), len(members) - len(first)
    if not question.users:
        raise Invalid("Choose an organization, or name users", param="organization")
    with services().stores.database.reading() as session:
        known = connection_refs.of_users(session, question.users, organization_id=None)
    return {user: known.get(user) for user in question.users}, 0


def _matches(text: str, user: str, refs: Sequence[ConnectionRef]) -> bool:
    """Whether the text is a part of the user's id or of an account's address."""
    return any(text.casefold() in name.casefold() for name in (user, *(each.email or "" for each in refs)))


def _held(question: Question, result: BusyResult, request: int) -> Intervals:
    """The held time of a user within the range."""
    start, end = question.engine.start, question.engine.end
    times = result.held.get(request, ())
    shown = [(max(each.starts, start), min(each.ends, end)) for each in times]
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


def _outside(question: Question) -> Intervals:
    """The parts of the range that no window covers."""
    within = question.engine.open_intervals()
    starts = np.concatenate(((question.engine.start,), within.ends))
    ends = np.concatenate((within.starts, (question.engine.end,)))
    return Intervals(starts, ends).take(starts < ends)
