"""The data of the explorer for each user: layers of busy time, slots, and calendars that were not read."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from app.availability import connections, parameters, profiles
from app.availability.failures import Failures
from app.availability.groups import Group, GroupAvailability
from app.availability.lookup import look_up
from app.availability.parameters import Freshness, RequestedHours, now_ms
from app.availability.profiles import Applied, Person
from app.availability.result import BusyResult
from app.availability.selection import CalendarRequest, CalendarSelector
from app.dashboard.explorer import working_time
from app.dashboard.explorer.form import ALL, MAX_SHOWN, ExplorerQuery
from app.dashboard.explorer.working_time import ClosedDay
from app.dashboard.overview import unread
from app.http.authentication import authentication
from app.http.errors import Invalid
from app.services import services
from scheduling.intervals import Groups, Intervals
from scheduling.layers import Layers, layers
from scheduling.query import OfMembers, Slots, slots_of_each
from store.cache.last_reads import LastRead
from store.sql.queries import connection_rows
from store.sql.queries.connection_rows import ConnectionRef
from workers.failures import TIMED_OUT

NO_INTERVALS = Intervals.of(())

NOT_KNOWN = "There is no such user"
NOTHING_CONNECTED = "No calendar is connected"
NO_WORKER = "no worker of this service is running, so the provider was not asked"


class Lane(NamedTuple):
    """One user. ``group_index`` is the index of the group; if it is None, ``failed`` or ``note`` says why.

    ``stale`` is the last read of an account if it failed; the picture then shows an earlier one.
    """

    user: str
    group_index: int | None = None
    failed: Sequence[Mapping[str, Any]] = ()
    note: str | None = None
    stale: LastRead | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ExplorerData:
    """The answer to a query: ``layers`` and ``slots`` have one group for each lane with a ``group_index``.

    ``members`` is the number of members that the filter finds, 0 without an organization. ``indexes`` has the
    index of each user in ``result``. ``read_at`` is when the oldest read was made, ``took`` the duration in
    milliseconds. ``held`` is the held time of each group, which is also a part of ``layers.busy``. ``people``
    has the connections of each known user. ``own`` has what differs from the query for each user in
    ``result``, and ``persons`` those with a profile; ``away`` is the time outside the hours of each group's
    profile, ``closed`` has the closed days of users.
    """

    lanes: Sequence[Lane]
    layers: Layers
    slots: Groups
    outside: Intervals
    members: int
    read_at: datetime | None
    took: float
    result: BusyResult
    indexes: Mapping[str, int]
    held: Groups = field(default_factory=lambda: Groups.pack([]))
    people: Mapping[str, Sequence[ConnectionRef]] = field(default_factory=dict)
    own: OfMembers = None
    persons: Mapping[str, Person] = field(default_factory=dict)
    away: Groups = field(default_factory=lambda: Groups.pack([]))
    closed: Mapping[str, Sequence[ClosedDay]] = field(default_factory=dict)

    def counting(self, query: ExplorerQuery) -> list[str]:
        """The users who count together: members of an organization who never connected do not."""
        absent = NOTHING_CONNECTED if query.organization else None
        return [lane.user for lane in self.lanes if absent is None or lane.note != absent]

    def group(self, query: ExplorerQuery) -> GroupAvailability:
        """The shown people as a group of the API, with the requirement of the query."""
        users = self.counting(query)
        required = None if query.together in (ALL, None) else int(query.together)
        return GroupAvailability(
            [Group(users, required)],
            users,
            frozenset(self.people),
            list(self.indexes),
            self.result,
            partial=False,
            own=self.own,
            people=self.persons,
        )

    @property
    def hidden(self) -> int:
        """The number of members that are not shown."""
        return max(0, self.members - len(self.lanes))


def load(query: ExplorerQuery, *, fresh: bool = False) -> ExplorerData:
    """Look up the busy time of all users of a query; ``fresh`` reads every calendar from its provider.

    :raise NotFound: for an unknown organization
    :raise ApiError: without organization and users, or for a range that could hold too many slots
    """
    began = time.perf_counter()
    people, members = _people(query)
    indexes = {user: n for n, user in enumerate(user for user, refs in people.items() if refs)}
    profiled = profiles.of_users(authentication(), query.params, indexes)
    applied = Applied(query.params, query.slot_query, profiled, RequestedHours(query.schedules))
    own = applied.of(list(indexes))
    parameters.check_slot_count({query.slot_query: len(indexes)}, own)
    selector = CalendarSelector()
    result = look_up(
        authentication(),
        [
            profiles.calendars(CalendarRequest(people[user] or (), selector), profiled.get(user))
            for user in indexes
        ],
        *query.slot_query.widened(own).busy_range(),
        Freshness(newer_than=now_ms() if fresh else None),
    )
    failing = result.failing()
    readable = [user for user, index in indexes.items() if index not in failing]
    busy = result.of_users(np.array([indexes[user] for user in readable], np.int64))
    of_readable = own and [own[indexes[user]] for user in readable]
    parts = layers(query.slot_query, *busy, of_readable)
    offered = slots_of_each(query.slot_query, *busy, of_readable)
    group_indexes = {user: group_index for group_index, user in enumerate(readable)}
    failed_reads = unread.last_reads([ref.id for refs in people.values() for ref in refs or () if ref.alive])
    is_stopped = _is_stopped(result)
    lanes = [
        _lane(user, refs, group_indexes, result, indexes, failed_reads, is_stopped=is_stopped)
        for user, refs in people.items()
    ]
    oldest = result.oldest_read
    read_at = None if oldest is None else datetime.fromtimestamp(oldest / 1000, UTC)
    took = (time.perf_counter() - began) * 1000
    held = _held_of_each(query, result, [indexes[user] for user in readable])
    outside = _outside(query)
    known = {user: refs for user, refs in people.items() if refs is not None}
    persons = {user: each for user in profiled if (each := applied.person(user)) is not None}
    away = working_time.outside_hours(query.slot_query, [profiled.get(user) for user in readable])
    closed = {user: working_time.closed_days(query.slot_query, each) for user, each in profiled.items()}
    return ExplorerData(
        lanes,
        parts,
        offered,
        outside,
        members,
        read_at,
        took,
        result,
        indexes,
        held,
        known,
        own,
        persons,
        away,
        closed,
    )


def _people(query: ExplorerQuery) -> tuple[dict[str, Sequence[ConnectionRef] | None], int]:
    """The connections of each user, None for an unknown user; and the number of members found."""
    if query.organization is not None:
        members = connections.of_members(authentication(), query.organization)
        if query.find:
            members = {user: refs for user, refs in members.items() if _matches(query.find, user, refs)}
        return dict(list(members.items())[query.skip : query.skip + MAX_SHOWN]), len(members)
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


def _is_stopped(result: BusyResult) -> bool:
    """Whether calendars were not read in time because no worker is alive."""
    failures = (each for index in result.failing() for each in Failures.of(result, index).calendars())
    late = any(each["message"] == TIMED_OUT.message for each in failures)
    return late and not services().stores.heartbeats.live_processes().workers


def _lane(
    user: str,
    refs: Sequence[ConnectionRef] | None,
    group_indexes: Mapping[str, int],
    result: BusyResult,
    indexes: Mapping[str, int],
    failed_reads: Mapping[str, LastRead],
    *,
    is_stopped: bool,
) -> Lane:
    accounts = {ref.public_id: ref for ref in refs or ()}
    if user in group_indexes:
        stale = next((failed_reads[ref.id] for ref in accounts.values() if ref.id in failed_reads), None)
        return Lane(user, group_indexes[user], stale=stale)
    if user not in indexes:
        return Lane(user, note=NOT_KNOWN if refs is None else NOTHING_CONNECTED)
    failed = []
    for each in Failures.of(result, indexes[user]).calendars():
        ref = accounts.get(each["connectionId"])
        read = failed_reads.get(ref.id) if ref else None
        late = {"message": NO_WORKER} if is_stopped and each["message"] == TIMED_OUT.message else {}
        since = read.since_moment if read and not late else None
        failed.append({**each, **late, "account": ref and ref.email, "since": since})
    return Lane(user, failed=failed)


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
    slots: Intervals = NO_INTERVALS

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
    people = len(data.counting(query))
    if data.hidden:
        raise Invalid(
            f"Free together takes at most {people} people; name the users to compare", param="together"
        )
    required = people if query.together == ALL else int(query.together)
    if required > people:
        raise Invalid(f"Free together must be at most {people}, the number of people", param="together")
    offered, readable = data.group(query).shared_slots(replace(query.slot_query, align_clock=True))
    by_day = groupby(_slots(offered, readable, query), key=lambda slot: slot.day)
    starts = offered.starts.take(offered.firsts())
    shown = Intervals(starts, starts + query.slot_query.duration)
    return Together(required, people, [(day, list(each)) for day, each in by_day], shown)


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
