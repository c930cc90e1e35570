"""What the explorer shows of each person: layers of their time, slots, and what could not be read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.accounts import connections as accounts
from app.availability.failures import Failures
from app.availability.freshness import Freshness, now
from app.availability.lookup import look_up
from app.availability.result import BusyResult
from app.availability.selection import CalendarRequest, CalendarSelector
from app.dashboard.explorer.form import MOST_SHOWN, Question
from app.http.errors import NotFound
from app.services import services
from scheduling.intervals import Groups, Intervals
from scheduling.layers import Layers, layers
from scheduling.query import slots_of_each
from store.sql.queries import connections
from store.sql.queries.connections import ConnectionRef

NOT_KNOWN = "There is no such user"
NOTHING_CONNECTED = "No calendar is connected"


@dataclass(frozen=True, slots=True)
class Lane:
    """One person. ``place`` is where their time stands; without it, ``failed`` or ``note`` says why."""

    user: str
    place: int | None = None
    failed: Sequence[Mapping[str, Any]] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The answer to a question, as it is drawn: ``layers`` and ``slots`` by the place of each lane.

    ``hidden`` people are there besides and not shown. ``asks`` says where in the ``picture`` each user is.
    ``age`` is that of the oldest read, in seconds; ``took`` is in milliseconds.
    """

    lanes: Sequence[Lane]
    layers: Layers
    slots: Groups
    outside: Intervals
    hidden: int
    age: int | None
    took: float
    picture: BusyResult
    asks: Mapping[str, int]


def shown(question: Question, *, fresh: bool = False) -> Shown:
    """Look at everybody's calendars and draw their time; ``fresh`` takes nothing from the cache.

    :raise NotFound: for an organization that is not there
    """
    began = time.perf_counter()
    people, hidden = _people(question)
    asks = {user: n for n, user in enumerate(user for user, refs in people.items() if refs)}
    wanted = CalendarSelector()
    picture = look_up(
        [CalendarRequest(people[user] or (), wanted) for user in asks],
        *question.engine.busy_range(),
        Freshness(newer_than=now() if fresh else None),
    )
    failing = picture.failing()
    readable = [user for user, ask in asks.items() if ask not in failing]
    laid = picture.of_requests(np.array([asks[user] for user in readable], np.int64))
    parts, offered = layers(question.engine, *laid), slots_of_each(question.engine, *laid)
    places = {user: place for place, user in enumerate(readable)}
    lanes = [_lane(user, refs, places, picture, asks) for user, refs in people.items()]
    oldest = picture.oldest_read
    age = None if oldest is None else max(0, now() - oldest) // 1000
    took = (time.perf_counter() - began) * 1000
    return Shown(lanes, parts, offered, _outside(question), hidden, age, took, picture, asks)


def _people(question: Question) -> tuple[dict[str, Sequence[ConnectionRef] | None], int]:
    """The accounts of everybody who is shown, None of whoever does not exist; and how many more there are."""
    if question.organization is not None:
        members = accounts.of_members(question.organization)
        first = dict(list(members.items())[:MOST_SHOWN])
        return dict(first), len(members) - len(first)
    if not question.users:
        raise NotFound("Choose an organization, or name users")
    with services().stores.database.reading() as session:
        known = connections.of_users(session, question.users, within=None)
    return {user: known.get(user) for user in question.users}, 0


def _lane(
    user: str,
    refs: Sequence[ConnectionRef] | None,
    places: Mapping[str, int],
    picture: BusyResult,
    asks: Mapping[str, int],
) -> Lane:
    if user in places:
        return Lane(user, places[user])
    if user in asks:
        return Lane(user, failed=Failures.of(picture, asks[user]).calendars())
    return Lane(user, note=NOT_KNOWN if refs is None else NOTHING_CONNECTED)


def _outside(question: Question) -> Intervals:
    """What of the range no window covers."""
    within = question.engine.within()
    starts = np.concatenate(((question.engine.start,), within.ends))
    ends = np.concatenate((within.starts, (question.engine.end,)))
    return Intervals(starts, ends).take(starts < ends)
