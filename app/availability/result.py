"""The result of a lookup: the busy periods of every calendar, and the calendars that could not be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from app.availability.selection import Target, listed_targets
from providers.base import Failed, Read
from scheduling.intervals import Groups, Indexes, Intervals
from store.cache.busy_cache import NEVER, CachedBusy, CalendarKey
from store.cache.versioned_cache import ActiveTime
from store.sql.queries.connection_rows import ConnectionRef
from workers.failures import TIMED_OUT
from workers.jobs import ReadBusy, Reply

_NO_PERIODS = Intervals.of(())


class UnreadCalendar(NamedTuple):
    """Why a calendar could not be read. ``connection_failed``: no calendar of the account could be read."""

    failed: Failed
    connection_failed: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class BusyResult:
    """The calendars of one or more users; the calendars of one user are adjacent.

    - ``targets[i]`` belongs to the user ``user_of[i]``, an index below ``user_count``.
    - ``busy`` has the periods of each target, unsorted and perhaps touching; none for an unread one.
    - ``unread`` has the failures, by the index of the target.
    - ``failed_connections`` has, by user, the connections whose list of calendars could not be read.
    - ``oldest_read`` is the time of the oldest read that was used, in milliseconds; None if there was none.
    - ``held`` has, by user, the held time. It counts for slots, each hold as one more calendar behind the
      user's own, and not for busy periods.
    """

    targets: Sequence[Target]
    user_of: Indexes
    user_count: int
    busy: Groups
    unread: Mapping[int, UnreadCalendar]
    failed_connections: Mapping[int, Sequence[tuple[ConnectionRef, Failed]]]
    oldest_read: int | None
    held: Mapping[int, Sequence[ActiveTime]] = field(default_factory=dict)

    def failing(self) -> set[int]:
        """The users with at least one calendar or connection that could not be read."""
        return {int(self.user_of[index]) for index in self.unread} | set(self.failed_connections)

    def target_indexes(self, user_index: int) -> range:
        """The indexes of one user's calendars in ``targets``."""
        if self.user_count == 1:
            return range(len(self.targets))
        first, after = self.user_of.searchsorted((user_index, user_index + 1)).tolist()
        return range(first, after)

    def of_user(self, user_index: int) -> tuple[Groups, Indexes, int]:
        """One user's calendars as the engine's arguments, with the user as the only member."""
        if self.user_count == 1:
            return self._with_held(self.busy, self.user_of, [user_index])
        indexes = self.target_indexes(user_index)
        calendars = self.busy.span(indexes.start, indexes.stop)
        return self._with_held(calendars, np.zeros(len(indexes), np.int64), [user_index])

    def of_users(self, users: Indexes) -> tuple[Groups, Indexes, int]:
        """The calendars of these users, sorted, as the engine's arguments; the first is member 0."""
        if users.size == self.user_count:
            return self._with_held(self.busy, self.user_of, range(self.user_count))
        indexes = np.isin(self.user_of, users).nonzero()[0]
        members = users.searchsorted(self.user_of[indexes])
        return self._with_held(self.busy.take(indexes), members, users.tolist())

    def _with_held(
        self, calendars: Groups, member_of: Indexes, users: Sequence[int]
    ) -> tuple[Groups, Indexes, int]:
        """The engine's arguments for these users, with their held time."""
        if not self.held:
            return calendars, member_of, len(users)
        extra = [
            (member, Intervals.of([(each.starts, each.ends)]))
            for member, user_index in enumerate(users)
            for each in self.held.get(user_index, ())
        ]
        members = np.append(member_of, np.array([member for member, _ in extra], np.int64))
        # Stable: held time comes behind the calendars of its member.
        order = members.argsort(kind="stable")
        together = Groups.concat([calendars, Groups.pack([time for _, time in extra])])
        return together.take(order), members[order], len(users)


@dataclass(slots=True)
class ResultBuilder:
    """Builds a ``BusyResult`` calendar by calendar, from cached periods and from the replies of workers.

    ``known`` has the cached periods of ``keys``; ``jobs`` and ``replies`` are by connection id.
    """

    keys: Sequence[CalendarKey]
    known: CachedBusy
    jobs: Mapping[str, ReadBusy]
    replies: Mapping[str, Reply]
    _targets: list[Target] = field(default_factory=list)
    _user_of: list[int] = field(default_factory=list)
    # The periods of each target, as an index into the cached periods followed by ``_read``.
    _periods: list[int] = field(default_factory=list)
    _read: list[Intervals] = field(default_factory=list)
    _unread: dict[int, UnreadCalendar] = field(default_factory=dict)
    _failed_connections: dict[int, list[tuple[ConnectionRef, Failed]]] = field(default_factory=dict)
    _read_at: int = NEVER
    _index: dict[CalendarKey, int] = field(init=False)

    def __post_init__(self) -> None:
        self._index = {key: index for index, key in enumerate(self.keys)}

    def add_calendars(self, user_index: int, targets: Sequence[Target]) -> None:
        """Add calendars: cached periods, joined with newly read ones."""
        for target in targets:
            index = self._index.get(target.key)
            if index is None or index in self.known.missing:
                self._add_reply(user_index, target, index)
            else:
                self._add(user_index, target, index)

    def listed(self, user_index: int, connection: ConnectionRef) -> Sequence[Target]:
        """All calendars of an account whose list a job has read; without a list, add the failure."""
        reply = self.replies[connection.id]
        if reply.listed is not None:
            return listed_targets(connection, reply.listed)
        self._failed_connections.setdefault(user_index, []).append((connection, reply.failed or TIMED_OUT))
        return ()

    def build(
        self,
        user_count: int,
        lists_read_at: Sequence[int],
        held: Mapping[int, Sequence[ActiveTime]] | None = None,
    ) -> BusyResult:
        """The result; ``lists_read_at`` are the times at which the calendar lists in use were read."""
        cached_at = self.known.read_at.tolist()
        count = len(self.keys)
        cached = [cached_at[index] for index in self._periods if index < count]
        oldest = min([self._read_at, *cached, *lists_read_at])
        return BusyResult(
            self._targets,
            np.array(self._user_of, np.int64),
            user_count,
            self._busy(),
            self._unread,
            self._failed_connections,
            None if oldest == NEVER else oldest,
            held or {},
        )

    def _busy(self) -> Groups:
        busy = self.known.busy
        if self._read:
            busy = Groups.concat([busy, Groups.pack(self._read)])
        if self._periods == list(range(len(busy))):
            return busy
        return busy.take(np.array(self._periods, np.int64))

    def _add_reply(self, user_index: int, target: Target, index: int | None) -> None:
        """Add a calendar whose account has a reply from a worker or from the precheck."""
        reply = self.replies[target.connection.id]
        # A job that lists and reads all calendars lacks one that is on no list. It is unread, and not free.
        outcome = reply.failed or reply.outcomes.get(target.key.calendar, TIMED_OUT)
        if isinstance(outcome, Failed):
            connection_failed = reply.failed is not None
            self._unread[len(self._targets)] = UnreadCalendar(outcome, connection_failed=connection_failed)
            self._add_read(user_index, target, _NO_PERIODS)
            return
        self._read_at = min(self._read_at, reply.read_at)
        busy = outcome.busy
        if index is not None:
            busy = self._joined(index, self.jobs[target.connection.id], outcome)
        self._add_read(user_index, target, busy)

    def _joined(self, index: int, job: ReadBusy, read: Read) -> Intervals:
        """Cached periods outside the job's range, and the newly read ones inside it.

        The range covers all missing buckets of the connection, so it may overlap cached buckets.
        """
        self._read_at = min(self._read_at, int(self.known.read_at[index]))
        cached = self.known.busy.group(index)
        cached = cached.take((cached.ends <= job.start) | (cached.starts >= job.end))
        return Intervals(
            np.concatenate([cached.starts, read.busy.starts]), np.concatenate([cached.ends, read.busy.ends])
        )

    def _add_read(self, user_index: int, target: Target, busy: Intervals) -> None:
        self._add(user_index, target, len(self.keys) + len(self._read))
        self._read.append(busy)

    def _add(self, user_index: int, target: Target, periods: int) -> None:
        self._targets.append(target)
        self._user_of.append(user_index)
        self._periods.append(periods)
