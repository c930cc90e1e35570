"""Busy periods for a request: cached ones from Redis, missing ones from the workers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from app.availability import connections, held_time, parameters, profiles
from app.availability.connections import renamed
from app.availability.jobs import (
    grants_of,
    list_refresh_jobs,
    read_jobs,
    refresh_later,
    stale_calendars,
)
from app.availability.parameters import Freshness, now_ms
from app.availability.profiles import Profile
from app.availability.result import BusyResult, ResultBuilder
from app.availability.selection import (
    LISTS_SHARE,
    CalendarRequest,
    CalendarSelector,
    Lists,
    Target,
    connections_to_list,
    distinct,
    known_targets,
    precheck,
    reads_main_only,
    unlisted_connections,
)
from app.http.authentication import Authentication
from app.services import services
from providers.base import PRIMARY
from providers.scopes import Operation
from store.cache.busy_cache import CachedBusy, CalendarKey
from store.cache.calendar_lists import CalendarList
from store.cache.versioned_cache import Held, HeldNames
from store.sql.queries.connection_rows import ConnectionRef
from workers.fanout.client import CoalescingPolicy
from workers.jobs import Job, ListCalendars, ReadBusy, Reply
from workers.queues import Queue

_READ = (Operation.FREE_BUSY,)
# How often the cache is loaded at most, if holds change meanwhile.
_MAX_LOADS = 3
_LIST_AND_READ = (Operation.LIST_CALENDARS, Operation.FREE_BUSY)


def look_up(
    authentication: Authentication,
    calendar_requests: Sequence[CalendarRequest],
    start: int,
    end: int,
    freshness: Freshness,
    *,
    with_held: bool = True,
) -> BusyResult:
    """The busy periods of every calendar of each user, over ``[start, end)`` in milliseconds.

    One deadline holds for all providers: a calendar that is not read by then has failed. ``with_held``: with
    the held time of the users, which counts for slots.
    """
    lookup = _AvailabilityLookup(
        authentication, calendar_requests, start, end, freshness, with_held=with_held
    )
    return lookup.result()


def look_up_users(
    authentication: Authentication,
    params: Mapping[str, Any],
    wanted: Sequence[Mapping[str, Any]],
    span: tuple[int, int],
    freshness: Freshness,
    *,
    with_held: bool = True,
    profiled: Mapping[str, Profile] | None = None,
) -> tuple[Collection[str], BusyResult]:
    """The users that the key reaches, and the busy periods of all, each with the calendars of its own entry.

    ``profiled`` are the profiles that count, by user.
    """
    of_user = profiled or {}
    refs_of = connections.of_users(authentication, {user["id"] for user in wanted})
    connections.require_chosen(params, chain.from_iterable(refs_of.values()))
    calendar_requests = [
        profiles.calendars(
            CalendarRequest(
                parameters.chosen(refs_of.get(user["id"], []), params),
                CalendarSelector(tuple(user["calendarIds"]), params["primaryOnly"]),
            ),
            of_user.get(user["id"]),
        )
        for user in wanted
    ]
    return refs_of.keys(), look_up(authentication, calendar_requests, *span, freshness, with_held=with_held)


class _AvailabilityLookup:
    """One lookup: select the calendars, load the cache, have workers read the rest, build the result."""

    def __init__(
        self,
        authentication: Authentication,
        calendar_requests: Sequence[CalendarRequest],
        start: int,
        end: int,
        freshness: Freshness,
        *,
        with_held: bool,
    ) -> None:
        self._authentication = authentication
        self._calendar_requests = calendar_requests
        self._start, self._end = start, end
        self._freshness = freshness
        self._with_held = with_held
        self._is_second = False
        # Noted before the cache is loaded: a read that finishes later is not in it, and can be shared.
        self._coalescing = CoalescingPolicy(began=time.time() * 1000, newer_than=freshness.newer_than)
        seconds = services().settings.fanout_deadline_seconds
        self._deadline = time.monotonic() + seconds
        self._lists_deadline = time.monotonic() + seconds * LISTS_SHARE
        self._stores = services().stores
        self._known_failures = precheck_failures(calendar_requests)
        self._grants = grants_of(calendar_requests)

    def result(self) -> BusyResult:
        """The busy periods of all calendars."""
        if self._with_held:
            self._calendar_requests = self._identified()
        lists = self._calendar_lists()
        targets = [known_targets(calendar_request, lists) for calendar_request in self._calendar_requests]
        keys = list(dict.fromkeys(self._keys(targets)))
        held_names = self._held_names(targets, lists)
        known, held = self._load(keys, held_names)
        self._stores.asked_calendars.note(keys, known)
        unlisted = [unlisted_connections(each, lists) for each in self._calendar_requests]
        listing_jobs = self._listing_jobs(unlisted)
        jobs = read_jobs(keys, known.missing, self._grants) | listing_jobs
        stale = stale_calendars(keys, known)
        self._count(len(keys), len(stale), len(known.missing), len(listing_jobs))
        self._refresh(keys, stale, lists)
        replies = self._known_failures | self._gather(jobs, self._deadline)
        if jobs and self._with_held and not self._is_second and self._learned(held_names, lists, replies):
            # Held time under the new names has to be of the same moment as the busy periods.
            self._is_second = True
            self._known_failures = {each: reply for each, reply in replies.items() if reply.failed}
            return self.result()
        builder = ResultBuilder(keys, known, jobs, replies)
        for n, user_targets in enumerate(targets):
            if unlisted[n]:
                listed = (target for each in unlisted[n] for target in builder.listed(n, each))
                user_targets = distinct([*user_targets, *listed], Operation.FREE_BUSY)
            builder.add_calendars(n, user_targets)
        result = builder.build(
            len(self._calendar_requests),
            self._lists_read_at(lists),
            held_time.active_by_user(held_names, held),
        )
        # A worker may have learned the real id of a main calendar with its first read.
        return replace(result, targets=renamed(result.targets)) if jobs else result

    def _load(self, keys: Sequence[CalendarKey], held_names: HeldNames) -> tuple[CachedBusy, Held]:
        """The cached busy periods, and the held time of the same moment.

        An event that was created by a hold is in the one or in the other: if they were of two moments, it
        could be in neither. So both are loaded again while these holds change, ``_MAX_LOADS`` times at most.
        Then the last pair counts.
        """
        held_times, rows = self._stores.held_times, self._authentication.rows
        extra_keys = held_names.version_keys()
        self._stores.web_heartbeat.catch_up()
        for attempt in range(_MAX_LOADS):
            known = self._stores.busy.load(
                keys, self._start, self._end, newer_than=self._freshness.newer_than, extra_keys=extra_keys
            )
            versions = known.extra_values
            held = held_times.cached(rows, held_names, versions)
            if held is not None:
                break
            held, is_current = held_times.load(rows, held_names, versions, now_ms())
            if is_current or attempt == _MAX_LOADS - 1:
                break
        assert held is not None, "it was cached or loaded"
        return known, held

    def _held_names(self, targets: Sequence[Sequence[Target]], lists: Lists) -> HeldNames:
        if not self._with_held:
            return HeldNames(())
        owners = held_time.owners(self._authentication.rows, targets, lists)
        return held_time.names_of(self._calendar_requests, targets, owners)

    def _identified(self) -> Sequence[CalendarRequest]:
        """The requests with the connections that were identified after they were cached."""
        of_all = [ref for each in self._calendar_requests for ref in each.connections]
        unknown = [ref for ref in of_all if not connections.is_identified(ref)]
        found = connections.identified(self._authentication, unknown) if unknown else {}
        if not found:
            return self._calendar_requests
        return [
            CalendarRequest([found.get(ref.id, ref) for ref in each.connections], each.selector)
            for each in self._calendar_requests
        ]

    def _learned(self, held_names: HeldNames, lists: Lists, replies: Mapping[str, Reply]) -> bool:
        """Whether the reads have shown names of calendars that change the result.

        The time of a user may be held under other names, or two connections have read one mailbox.
        """
        read = {
            connection_id: CalendarList(reply.read_at, reply.listed)
            for connection_id, reply in replies.items()
            if reply.listed is not None
        }
        known = dict(lists) | read
        before, self._calendar_requests = self._calendar_requests, self._identified()
        targets = [known_targets(each, known) for each in self._calendar_requests]
        if self._held_names(targets, known).of_users != held_names.of_users:
            return True
        return before is not self._calendar_requests and any(
            len(known_targets(each, known)) != len(now) for each, now in zip(before, targets, strict=True)
        )

    def _calendar_lists(self) -> Lists:
        """The calendar lists that decide what to read, cached or read now, as far as they are known."""
        calendar_requests = [
            each for each in self._calendar_requests if each.selector.ids or each.selector.everything
        ]
        if not calendar_requests:
            return {}
        ids = [
            each.id
            for calendar_request in calendar_requests
            for each in self._readable(calendar_request.connections)
        ]
        known = self._stores.calendar_lists.load(ids, newer_than=self._freshness.newer_than)
        # The accounts without a cached list, and whether every request for one wants all its calendars.
        unknown: dict[str, bool] = {}
        for calendar_request in calendar_requests:
            for connection in self._readable(
                connections_to_list(calendar_request.connections, calendar_request.selector)
            ):
                if connection.id not in known:
                    everything = unknown.get(connection.id, True) and calendar_request.selector.everything
                    unknown[connection.id] = everything
        all_wanted = [each for each, everything in unknown.items() if everything]
        watched, bundled = self._watched(all_wanted), self._bundled(all_wanted)
        # Another entry for the same user names calendars, which may be on no list.
        named = {ref.id for each in calendar_requests if each.selector.ids for ref in each.connections}
        missing = {
            each: ListCalendars(each)
            for each, everything in unknown.items()
            # If all calendars are requested, one job lists and reads them. A watched calendar is cached for
            # longer than the list: then only the list is read, and the cached periods are used.
            if not everything or each in named or each in watched or each in bundled
        }
        replies = self._gather(missing, self._lists_deadline)
        return known | {
            connection_id: CalendarList(reply.read_at, reply.listed)
            for connection_id, reply in replies.items()
            # One job lists and reads an account again that may have no main calendar.
            if reply.listed is not None
            and not (connection_id in bundled and any(each.unlisted for each in reply.listed))
        }

    def _bundled(self, connections: Sequence[str]) -> set[str]:
        """The connections that share a grant: once their lists are known, they are read together."""
        members = Counter(self._grants[each].id for each in connections if each in self._grants)
        return {each for each in connections if each in self._grants and members[self._grants[each].id] > 1}

    def _lists_read_at(self, lists: Lists) -> list[int]:
        """The times of the lists that say what all calendars of an account are."""
        return [
            lists[connection.id].read_at
            for calendar_request in self._calendar_requests
            if calendar_request.selector.everything
            for connection in calendar_request.connections
            if connection.id in lists
        ]

    def _listing_jobs(self, unlisted: Iterable[Sequence[ConnectionRef]]) -> dict[str, ReadBusy]:
        """Jobs that list and read all calendars of the accounts whose list is not known."""
        start, end = self._stores.busy.hull(self._start, self._end)
        return {
            connection.id: ReadBusy(connection.id, None, start, end)
            for connections in unlisted
            for connection in self._readable(connections)
        }

    def _count(self, known_by_id: int, stale: int, missing: int, unlisted: int) -> None:
        """Count cache hits and misses. An account whose calendar list is not known counts as one calendar."""
        self._stores.counters.cache(
            hits=known_by_id - stale - missing, stale=stale, misses=missing + unlisted
        )

    def _refresh(self, keys: Sequence[CalendarKey], stale: Sequence[int], lists: Lists) -> None:
        """Refresh in the background the stale data that this result uses."""
        hull = self._stores.busy.hull(self._start, self._end)
        jobs: list[Job] = [*read_jobs(keys, dict.fromkeys(stale, hull), self._grants).values()]
        jobs += list_refresh_jobs(self._calendar_requests, lists)
        refresh_later(jobs, deadline=self._deadline, coalescing=self._coalescing)

    def _gather(self, jobs: Mapping[str, Job], deadline: float) -> dict[str, Reply]:
        """The reply to each connection's job."""
        replies = services().fanout.gather(
            list(jobs.values()), queue=Queue.READS, deadline=deadline, coalescing=self._coalescing
        )
        return dict(zip(jobs, replies, strict=True))

    def _keys(self, targets: Iterable[Sequence[Target]]) -> Iterator[CalendarKey]:
        precheck_failures = self._known_failures
        return (
            target.key
            for each in targets
            for target in each
            if target.key.connection not in precheck_failures
        )

    def _readable(self, connections: Iterable[ConnectionRef]) -> list[ConnectionRef]:
        return [connection for connection in connections if connection.id not in self._known_failures]

    def _watched(self, connections: Sequence[str]) -> set[str]:
        """The connections whose main calendar is watched; none if the answer must be newer than the cache."""
        if self._freshness.newer_than is not None:
            return set()
        channels = self._stores.busy.watched([CalendarKey(each, PRIMARY) for each in connections])
        return {each for each, channel in zip(connections, channels, strict=True) if channel is not None}


def precheck_failures(calendar_requests: Sequence[CalendarRequest]) -> dict[str, Reply]:
    """Failures that are known without a read, by connection id: the grant is revoked, or too narrow."""
    failures: dict[str, Reply] = {}
    for refs, selector in calendar_requests:
        for connection in refs:
            lists = selector.everything and not reads_main_only(connection)
            failed = selector.failed or precheck(connection, *(_LIST_AND_READ if lists else _READ))
            if failed is not None:
                failures[connection.id] = Reply(failed=failed)
    return failures
