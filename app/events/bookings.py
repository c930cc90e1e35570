"""The names under which the time of a request is locked and held, and whether that time is free.

Two users may book one mailbox or calendar, each through a connection of their own. Its name is the same for
both if both connections are identified, so a connection that is not yet is identified here, before anything
is locked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from app.availability import profiles
from app.availability.failures import Failures, connection_failure
from app.availability.lookup import look_up
from app.availability.parameters import ANY_HOURS, Freshness, RangeTooLarge, not_before, now_ms
from app.availability.profiles import Profile
from app.availability.result import BusyResult
from app.availability.selection import (
    CalendarRequest,
    CalendarSelector,
    Lists,
    Target,
    connections_to_list,
    counting_targets,
    is_main,
    precheck,
    targets_by_id,
)
from app.events import worker_calls
from app.http.authentication import Authentication
from app.http.errors import ApiError, Conflict, Invalid, NotFound
from app.http.provider_failures import most_telling
from app.schemas.error_codes import Code
from app.services import services
from providers import registry
from providers.errors import Reason
from providers.scopes import Operation
from scheduling.explain import Verdict
from scheduling.intervals import Groups, Intervals, free_parts
from scheduling.json_render import timestamp
from scheduling.query import OfMembers, Own, Query, free
from scheduling.windows import DAY, MINUTE
from store.cache.busy_cache import CalendarKey
from store.cache.cache_tags import booked_names
from store.cache.calendar_lists import CalendarList
from store.cache.versioned_cache import ActiveTime
from store.sql.queries import connection_rows, users
from store.sql.queries.connection_rows import ConnectionRef
from workers.jobs import ListCalendars


class Overlap(NamedTuple):
    """A part of the wanted time in which a user is not free."""

    user: str
    starts: int
    ends: int
    # The calendars that are busy in it, if the request or a profile names those of the user.
    calendars: tuple[Target, ...] = ()
    # The verdict, if hours or notice of the user's profile are the reason.
    reason: Verdict | None = None


class Time(NamedTuple):
    """The time that a request wants, and what counts as free, as for slots; in milliseconds.

    Busy periods and held time count from ``padding_before`` before their start to ``padding_after`` after
    their end. ``own`` is what differs for users with a profile.
    """

    start: int
    end: int
    padding_before: int = 0
    padding_after: int = 0
    max_overlaps: int = 0
    not_before: int | None = None
    own: Mapping[str, Own] = MappingProxyType({})

    @classmethod
    def of(cls, start: int, end: int, options: Mapping[str, Any]) -> Time:
        """With the options of a request, which are in minutes.

        :raise ApiError: for time without length, or longer than a range may be
        """
        if start >= end:
            raise Invalid("end must be after start", param="end")
        longest = services().settings.max_range_days
        if end - start > longest * DAY:
            raise RangeTooLarge(f"The time from start to end must not be longer than {longest} days")
        padding = options["padding"]
        return cls(
            start,
            end,
            options.get("paddingBefore", padding) * MINUTE,
            options.get("paddingAfter", padding) * MINUTE,
            options["maxOverlaps"],
            not_before(options),
        )

    def query(self) -> Query:
        """The search for one slot, which is this time."""
        return Query(
            self.start,
            self.end,
            self.end - self.start,
            padding_before=self.padding_before,
            padding_after=self.padding_after,
            max_overlaps=self.max_overlaps,
            not_before=self.not_before,
        )

    def with_profiles(self, params: Mapping[str, Any], profiled: Mapping[str, Profile]) -> Time:
        """This time for users, some with a profile; ``params`` are the parameters of the request."""
        query, now = self.query(), now_ms()
        own = {
            user: profiles.terms(params, query, ANY_HOURS, profile, now) for user, profile in profiled.items()
        }
        return self._replace(own=own) if own else self

    def own_of(self, users: Sequence[str]) -> OfMembers:
        """What differs for each of these users."""
        return [self.own.get(user) for user in users] if self.own else None

    def busy_range(self) -> tuple[int, int]:
        """The range to read, for all users."""
        return self.query().widened([None, *self.own.values()]).busy_range()

    def margins(self, user: str) -> tuple[int, int]:
        """The paddings that count for a user."""
        own = self.own.get(user)
        if own is None:
            return self.padding_before, self.padding_after
        return own.padding_before, own.padding_after

    def taken_by(self, user: str, held: Sequence[ActiveTime]) -> list[Overlap]:
        """The parts of this time that held time takes from a user, with the padding."""
        before, after = self.margins(user)
        return [
            Overlap(user, max(self.start, each.starts - before), min(self.end, each.ends + after))
            for each in held
        ]


def slot_taken(conflicts: Sequence[Overlap], sentence: str = "The time is taken") -> Conflict:
    """The error of a request whose time is taken: when, and in which calendars if some were named."""
    return Conflict(sentence, Code.SLOT_TAKEN, extra_fields={"conflicts": list(map(_shown, conflicts))})


def _shown(conflict: Overlap) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "userId": conflict.user,
        "start": timestamp(conflict.starts),
        "end": timestamp(conflict.ends),
    }
    if conflict.calendars:
        shown["calendars"] = [
            {"connectionId": connection.public_id, "calendarId": name}
            for connection, _, name in conflict.calendars
        ]
    if conflict.reason is not None:
        shown["reason"] = conflict.reason
    return shown


def busy(
    authentication: Authentication,
    calendar_requests: Mapping[str, CalendarRequest],
    time: Time,
    held: Mapping[str, Sequence[ActiveTime]] | None = None,
    known: Intervals | None = None,
    named: Collection[str] = (),
) -> list[Overlap]:
    """The parts of the time in which each user is busy, by a new read of the calendars; empty if free.

    ``held`` is the held time of others that the caller found when it locked the time: each counts as one busy
    period.

    ``known`` are the busy periods of one more calendar of the only user. ``named`` are the users whose
    calendars the request names: then the answer says which of them are busy.

    :raise ApiError: when a calendar of one of them could not be read
    """
    query = time.query()
    freshness = Freshness(newer_than=now_ms())
    users = list(calendar_requests)
    result = look_up(
        authentication, list(calendar_requests.values()), *time.busy_range(), freshness, with_held=False
    )
    failures = {users[n]: Failures.of(result, n) for n in sorted(result.failing())}
    if failures:
        raise unread(failures)
    if known is not None:
        assert result.user_count == 1, "a calendar of the only user"
        together = Groups.concat([result.busy, Groups.pack([known])])
        result = replace(result, busy=together, user_of=np.append(result.user_of, 0))
    # Of what is held, only what the caller found: the hold of the request itself does not count.
    of_others = {n: held[user] for n, user in enumerate(users) if held and user in held}
    own = time.own_of(users)
    free_time = free(query, *replace(result, held=of_others).of_users(np.arange(len(users))), own)
    found: list[Overlap] = []
    for n, user in enumerate(users):
        selector = calendar_requests[user].selector
        name_calendars = bool(selector.counting) or user in named
        alone = query.of_member(time.own.get(user))
        for start, end, reason in _not_free(alone, free_time.group(n), by_profile=user in time.own):
            calendars = _busy_calendars(result, n, alone, start, end) if name_calendars and not reason else ()
            found.append(Overlap(user, start, end, calendars, reason))
    return found


def _not_free(
    query: Query, free_time: Intervals, *, by_profile: bool
) -> list[tuple[int, int, Verdict | None]]:
    """The parts of a query's range that are not free, each with the verdict if a profile is the reason."""
    whole = Intervals(np.array([query.start]), np.array([query.end]))
    if not by_profile:
        return [(start, end, None) for start, end in free_parts(free_time, whole).pairs()]
    inside, open_time = query.inside_windows(), query.open_intervals()
    parts = (
        (free_parts(inside, whole), Verdict.OUTSIDE_WINDOW),
        (free_parts(open_time, inside), Verdict.TOO_SOON),
        (free_parts(free_time, open_time), None),
    )
    found = [(*pair, reason) for part, reason in parts for pair in part.pairs()]
    return sorted(found, key=lambda part: part[0])


def _busy_calendars(
    result: BusyResult, user_index: int, query: Query, start: int, end: int
) -> tuple[Target, ...]:
    """The calendars of a user that are busy in a part of the range, with the padding."""
    found = []
    for index in result.target_indexes(user_index):
        periods = result.busy.group(index)
        starts, ends = periods.starts - query.padding_before, periods.ends + query.padding_after
        if np.any((periods.starts < periods.ends) & (starts < end) & (ends > start)):
            found.append(result.targets[index])
    return tuple(found)


def unread(failures: Mapping[str, Failures]) -> ApiError:
    """The error for the most telling failure, which names the users that could not be read."""
    decisive = most_telling(each.failed for user_failures in failures.values() for each in user_failures)
    error = next(
        user_failures.error()
        for user_failures in failures.values()
        if any(each.failed is decisive for each in user_failures)
    )
    if "reason" in error.extra_fields:
        error.extra_fields["failedUsers"] = [
            user_failures.as_failed_user(user) for user, user_failures in failures.items()
        ]
    return error


# A provider that answers like this never names the calendars of the account. Its e-mail address is then used.
_REFUSALS = (Reason.ACCESS_DENIED, Reason.INSUFFICIENT_SCOPES, Reason.NOT_FOUND, Reason.MAILBOX_UNAVAILABLE)

# Calendars by the id of their connection.
Calendars = Mapping[str, Sequence[str]]
# The calendars that a request names, by user: they count instead of the main ones.
Named = Mapping[str, Sequence[str]]


# The calendars of a user's profile, which count instead of the main ones, of those connections.
Counting = Callable[[str, Sequence[ConnectionRef]], Sequence[CalendarKey]]


class Booking(NamedTuple):
    """The users of a request with their internal ids, their connections, and the names that are booked."""

    numbers: Mapping[str, int]
    connections: Mapping[str, Sequence[ConnectionRef]]
    names: Mapping[int, Sequence[str]]

    def user(self, number: int) -> str:
        """The user with an internal id."""
        return next(user for user, each in self.numbers.items() if each == number)


def book(
    authentication: Authentication,
    wanted: Sequence[str],
    others: Calendars | None = None,
    named: Named | None = None,
    counting: Counting = lambda user, refs: (),
) -> Booking:
    """The names of the calendars that count for these users, and of ``others``.

    The main ones count for a user, unless the request has ``named`` calendars or a profile has some.

    :raise NotFound: for a user that the key does not reach
    :raise ApiError: when a provider does not say whose calendars a connection reads
    """
    named = named or {}
    numbers, connections = _load(authentication, wanted)
    of_profiles = _of_profiles(connections, named, counting)
    calendars = _together(others or {}, _by_connection(connections, named), *of_profiles.values())
    owners = _owners(connections, calendars)
    unknown = {
        ref.id: ref
        for refs in connections.values()
        for ref in refs
        if _is_unknown(ref, calendars.get(ref.id, ()), owners)
    }
    if unknown:
        _identify(unknown)
        numbers, connections = _load(authentication, wanted)
        of_profiles = _of_profiles(connections, named, counting)
        calendars = _together(others or {}, _by_connection(connections, named), *of_profiles.values())
        owners = _owners(connections, calendars)
    names = {
        number: [
            name
            for ref in connections[user]
            for name in _names(
                ref,
                calendars.get(ref.id, ()),
                owners,
                with_main=not named.get(user) and user not in of_profiles,
            )
        ]
        for user, number in numbers.items()
    }
    return Booking(numbers, connections, names)


def _of_profiles(
    connections: Mapping[str, Sequence[ConnectionRef]], named: Named, counting: Counting
) -> dict[str, Calendars]:
    """The calendars of the profiles, by user, for which the request names none."""
    found: dict[str, Calendars] = {}
    for user, refs in connections.items():
        if not named.get(user) and (keys := counting(user, refs)):
            by_connection: dict[str, list[str]] = {}
            for target in counting_targets(refs, keys):
                by_connection.setdefault(target.key.connection, []).append(target.key.calendar)
            found[user] = by_connection
    return found


def _by_connection(connections: Mapping[str, Sequence[ConnectionRef]], named: Named) -> Calendars:
    """The named calendars, each with the connection that reads it."""
    found: dict[str, list[str]] = {}
    to_list = {
        ref.id: ref
        for user, ids in named.items()
        for ref in connections_to_list(connections[user], CalendarSelector(tuple(ids)))
        if precheck(ref, Operation.LIST_CALENDARS) is None
    }
    lists = _lists(to_list) if to_list else {}
    for user, ids in named.items():
        for target in targets_by_id(ids, connections[user], lists):
            found.setdefault(target.key.connection, []).append(target.key.calendar)
    return found


def _lists(to_list: Mapping[str, ConnectionRef]) -> Lists:
    known = services().stores.calendar_lists.load(list(to_list))
    missing = {each: ref for each, ref in to_list.items() if each not in known}
    return {**known, **_identify(missing)} if missing else known


def _together(*several: Calendars) -> Calendars:
    found: dict[str, list[str]] = {}
    for each in several:
        for connection_id, calendars in each.items():
            found.setdefault(connection_id, []).extend(calendars)
    return found


def _load(
    authentication: Authentication, wanted: Sequence[str]
) -> tuple[Mapping[str, int], Mapping[str, Sequence[ConnectionRef]]]:
    organization_id = authentication.organization_id
    with services().stores.database.reading() as session:
        connections = connection_rows.of_users(session, wanted, organization_id=organization_id)
        numbers = {user: refs[0].user_id for user, refs in connections.items() if refs}
        if without := connections.keys() - numbers.keys():
            numbers |= users.ids(session, without, organization_id=organization_id)
    if not numbers.keys() == connections.keys() == set(wanted):
        raise NotFound("User not found", Code.USER_NOT_FOUND)
    return numbers, connections


def _is_unknown(ref: ConnectionRef, others: Sequence[str], owners: Mapping[tuple[str, str], str]) -> bool:
    """Whether a list of its calendars would say more about a connection than is known."""
    if precheck(ref, Operation.LIST_CALENDARS) is not None:
        return False
    return ref.main_calendar_id is None or any(
        (ref.id, each) not in owners for each in _shareable(ref, others)
    )


def _identify(unknown: Mapping[str, ConnectionRef]) -> Lists:
    """List the calendars of connections: the workers store whose they are.

    :raise ApiError: when some could not be listed
    """
    jobs = {each: ListCalendars(each) for each in unknown}
    replies = worker_calls.read(jobs)
    failures: dict[str, Failures] = {}
    for each, ref in unknown.items():
        failed = replies[each].failed
        if failed is not None and failed.reason not in _REFUSALS:
            failures[ref.user] = Failures([connection_failure(ref, failed)], something_read=False)
    if failures:
        raise unread(failures)
    return {
        each: CalendarList(reply.read_at, reply.listed)
        for each, reply in replies.items()
        if reply.listed is not None
    }


def _owners(
    connections: Mapping[str, Sequence[ConnectionRef]], others: Calendars
) -> Mapping[tuple[str, str], str]:
    """The owners of those calendars that may belong to another mailbox, as far as they are known."""
    lists = services().stores.calendar_lists
    return {
        (ref.id, calendar): owner
        for refs in connections.values()
        for ref in refs
        for calendar, owner in lists.owners(ref.id, _shareable(ref, others.get(ref.id, ()))).items()
    }


def _shareable(ref: ConnectionRef, calendars: Sequence[str]) -> list[str]:
    if registry.definition(ref.provider).global_ids:
        return []
    return [each for each in calendars if not is_main(ref, each)]


def _names(
    ref: ConnectionRef, others: Sequence[str], owners: Mapping[tuple[str, str], str], *, with_main: bool
) -> list[str]:
    names = [*ref.main_names] if with_main else []
    for calendar in others:
        if is_main(ref, calendar):
            names += ref.main_names
        else:
            names += booked_names(ref, calendar, owners.get((ref.id, calendar), ""))
    return names
