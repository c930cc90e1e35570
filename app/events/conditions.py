"""Conditions of event creates and moves: the time is free (``ifFree``), or a hold covers it (``hold``).

A create with a condition has the time to itself while it runs: it takes an unpromised hold, or claims the
hold that the client names. Both are leases, which end after the longest time that the create can take. If the
process is killed, the slot is lost for that long, and no event is created in time that others have taken. A
move has the same lease on its new time. It cannot be made by a hold.

A repeated request may find its time taken by its own event, whose answer was lost. It is found by its metaId,
which such a request has always: from its body, or derived from its idempotency key.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy.exc import SQLAlchemyError

from app.availability import connections, profiles
from app.availability.parameters import now_ms
from app.availability.profiles import Profile
from app.availability.selection import (
    CalendarRequest,
    CalendarSelector,
    is_account_address,
    is_main,
    shown_as,
)
from app.events import bookings, holds, moves, worker_calls
from app.events.bookings import Booking, Overlap, Time
from app.events.moves import Moved
from app.http.authentication import Authentication
from app.http.errors import ApiError, Invalid, ServiceUnavailable
from app.schemas.error_codes import Code
from app.services import services
from providers.base import PRIMARY
from providers.errors import Problem
from providers.events import Changes, Day, Moment
from store.cache.busy_cache import CalendarKey
from store.sql.queries import holds as hold_queries
from store.sql.queries.connection_rows import ConnectionRef
from store.sql.queries.holds import ClaimedHold, NewHold, TakenHold
from workers.fanout.admission import Overloaded
from workers.jobs import GetEvent

log = logging.getLogger(__name__)

UTC = ZoneInfo("UTC")

# The length of a lease, in deadlines of a fan-out. One event: the create, and one more for a call that the
# provider executes late. A unified event: the wait for the lock of another create, the search for copies, the
# create, its undoing, and the same one more.
ONE_EVENT, UNIFIED = 2, 5


@dataclass(slots=True)
class Lease:
    """The hold that reserves the time of one create. Without a condition there is none."""

    hold_id: str | None = None
    claimed: ClaimedHold | None = None
    token: str = field(default_factory=lambda: secrets.token_hex(32))
    kept: bool = False

    def keep(self) -> None:
        """Keep the time until the lease ends, because the event may exist, now or soon."""
        self.kept = True

    def use(self) -> None:
        """End the lease after the event was created; a claimed hold is used up."""
        if self.claimed is None:
            self._drop()
            return
        claimed = self.claimed
        self._end(
            claimed,
            lambda session: hold_queries.release(
                session, claimed.id, reason="used", token=self.token, now=now_ms()
            ),
        )

    def release(self) -> None:
        """End the lease of a create that has written nothing; a claimed hold can be used again."""
        if self.claimed is None:
            self._drop()
            return
        claimed = self.claimed
        self._end(claimed, lambda session: hold_queries.release_claim(session, claimed, token=self.token))

    def _drop(self) -> None:
        if self.hold_id is not None:
            holds.drop(self.hold_id)

    def _end(self, claimed: ClaimedHold, change: Callable[[Any], object]) -> None:
        stores = services().stores
        try:
            with stores.held_times.changing(claimed.names), stores.database.writing() as session:
                change(session)
        except SQLAlchemyError as error:
            log.warning("hold not changed, it ends with its lease: %s", type(error).__name__)


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a create, and how to find the event of an earlier attempt of the same request.

    ``calendars`` are the calendars of the event, each with its connection. ``named`` are the calendars that
    the request names instead of the main ones. ``providers`` are those whose accounts are read, ``chosen``
    the connections that are read, by public id; none: all. ``meta_id`` is None for a request that cannot be
    repeated. ``deadlines`` is the length of the lease.
    """

    user: str
    time: Time
    hold: str | None
    calendars: Sequence[tuple[ConnectionRef, str]]
    meta_id: str | None
    deadlines: int
    moved: Moved | None = None
    named: Sequence[str] = ()
    providers: Sequence[str] = ()
    chosen: Sequence[str] = ()
    # The query of the request.
    params: Mapping[str, Any] = field(default_factory=dict)

    def token(self, authentication: Authentication) -> str:
        """The token of the lease: equal for repetitions of a request, random if it cannot be repeated."""
        if self.moved is not None:
            # A move can always be repeated: it gives one event one time.
            name = f"move {self.moved.id} {self.time.start} {self.time.end}"
        elif self.meta_id is not None:
            name = self.meta_id
        else:
            return secrets.token_hex(32)
        calendars = [f"{ref.id} {calendar}" for ref, calendar in self.calendars]
        parts = [str(authentication.caller.id), self.user, name, *calendars]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_given(params: Mapping[str, Any]) -> bool:
    """Whether the query of a create has a condition."""
    return bool(params["ifFree"]) or "hold" in params


def require_single(params: Mapping[str, Any], content: Changes) -> None:
    """Refuse a condition for a series: it would say nothing about the later occurrences.

    :raise Invalid: when the query has one
    """
    if content.recurrence is not None and is_given(params):
        name = "ifFree" if params["ifFree"] else "hold"
        raise Invalid(f"{name} must not be given with recurrence: only one time can be checked", param=name)


def condition(
    params: Mapping[str, Any],
    user: str,
    content: Changes,
    zone: ZoneInfo | None,
    calendars: Sequence[tuple[ConnectionRef, str]],
    *,
    repeatable: bool = False,
    deadlines: int = ONE_EVENT,
    moved: Moved | None = None,
    chosen: Sequence[str] = (),
) -> Condition | None:
    """The condition in the query of a create, or of the update of ``moved``; None without one.

    ``chosen`` as in ``Condition``.

    :raise ApiError: when the event has no length
    """
    if not is_given(params):
        return None
    start, end = content.start, content.end
    if isinstance(start, Moment) and isinstance(end, Moment):
        edges = start.at, end.at
    else:
        assert isinstance(start, Day), "the content has both, of one kind"
        assert isinstance(end, Day), "the content has both, of one kind"
        # A hold of a day cannot cover that day in all zones.
        edges = moves.all_day_span(start, end, calendars, (zone or UTC) if "hold" in params else None)
    meta_id = content.meta_id if repeatable else None
    time = Time.of(*edges, params)
    named, providers = params.get("calendarIds", ()), params.get("provider", ())
    return Condition(
        user,
        time,
        params.get("hold"),
        calendars,
        meta_id,
        deadlines,
        moved,
        named=named,
        providers=providers,
        chosen=chosen,
        params=params,
    )


@contextmanager
def leased(authentication: Authentication, condition: Condition | None) -> Iterator[Lease]:
    """The time of a create, for the block that creates the event.

    :raise Conflict: when the condition is not met, and no earlier attempt of the request created the event
    """
    lease = Lease() if condition is None else _acquire_unless_repeated(authentication, condition)
    try:
        yield lease
    except (ApiError, Overloaded) as error:
        may_exist = isinstance(error, ApiError) and error.code is Code.OUTCOME_UNKNOWN
        if not (lease.kept or may_exist):
            lease.release()
        # After any other exception the outcome is unknown: the lease ends by itself.
        raise
    lease.use()


def _acquire_unless_repeated(authentication: Authentication, condition: Condition) -> Lease:
    try:
        return _claim(authentication, condition) if condition.hold else _reserve(authentication, condition)
    except ApiError as error:
        if error.code is not Code.SLOT_TAKEN or not _is_created(condition):
            raise
    # The create that follows returns the event that is there, and makes no other one.
    return Lease()


def _reserve(authentication: Authentication, condition: Condition) -> Lease:
    named = {condition.user: condition.named} if condition.named else {}
    user = condition.user
    profiled = profiles.of_users(authentication, condition.params, [user])
    condition = replace(condition, time=condition.time.with_profiles(condition.params, profiled))
    booking = bookings.book(
        authentication,
        [user],
        _by_connection(condition.calendars),
        named,
        lambda _, refs: profiles.counting(profiled.get(user), _narrowed(condition, refs)),
    )
    token = condition.token(authentication)
    time, organization_id = condition.time, authentication.organization_id
    new = NewHold(time.start, time.end, holds.lease_end(deadlines=1), token, organization_id=organization_id)
    taken = holds.reserve(booking, time, new)
    # The earlier attempt may still write its event: the time stays reserved although this attempt fails.
    lease = Lease(taken.id, token=token, kept=taken.repeated)
    try:
        _require_free(authentication, condition, booking, taken, profiled.get(user))
        with services().stores.database.writing() as session:
            end = holds.lease_end(deadlines=condition.deadlines)
            if not hold_queries.renew(session, taken.id, expires_at=end, now=now_ms()):
                # The read took longer than the lease, or the same request was sent again.
                raise ServiceUnavailable
    except BaseException:
        if not lease.kept:
            lease.release()
        raise
    return lease


def _by_connection(calendars: Sequence[tuple[ConnectionRef, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for ref, calendar in calendars:
        found.setdefault(ref.id, []).append(calendar)
    return found


def _require_free(
    authentication: Authentication,
    condition: Condition,
    booking: Booking,
    taken: TakenHold,
    profile: Profile | None,
) -> None:
    """Check by a new read that the calendars are free, apart from copies of an earlier attempt.

    :raise Conflict: when they are not
    """
    user, moved, known = condition.user, condition.moved, None
    calendars = _calendars(condition, booking.connections[user], profile)
    others = {booking.user(number): times for number, times in taken.others.items()}
    if moved is not None and moved.is_near(condition.time):
        ref = next((each for each in calendars.connections if each.id == moved.ref.id), moved.ref)
        calendars = moves.others(calendars, moved, in_main=_is_main(ref, moved.calendar))
        known = moved.busy_without(condition.time)
    named = {user} if condition.named else set()
    conflicts = bookings.busy(authentication, {user: calendars}, condition.time, others, known, named=named)
    if conflicts and (created := _connections_with_event(condition)):
        kept = [ref for ref in calendars.connections if ref.id not in created]
        calendars = calendars._replace(connections=kept)
        conflicts = bookings.busy(authentication, {user: calendars}, condition.time, others, named=named)
    if conflicts:
        raise bookings.slot_taken(conflicts)


def _claim(authentication: Authentication, condition: Condition) -> Lease:
    """Claim the hold that the client names.

    :raise Conflict: when it does not cover the time of the event
    """
    assert condition.hold is not None, "the condition names a hold"
    time, token, stores = condition.time, condition.token(authentication), services().stores
    with stores.database.reading() as session:
        names = hold_queries.names(session, condition.hold)
    # Other processes have cached when it expired before.
    with stores.held_times.changing(names), stores.database.writing() as session:
        claimed = hold_queries.claim(
            session,
            condition.hold,
            condition.user,
            time.start,
            time.end,
            token=token,
            expires_at=holds.lease_end(deadlines=condition.deadlines),
            organization_id=authentication.organization_id,
            now=now_ms(),
        )
        view = hold_queries.find(
            session, condition.hold, organization_id=authentication.organization_id, now=now_ms()
        )
    if claimed is None:
        parts = [(time.start, time.end)]
        if view is not None and condition.user in view.users and not view.claimed:
            parts = [(time.start, min(time.end, view.starts)), (max(time.start, view.ends), time.end)]
        conflicts = [Overlap(condition.user, *part) for part in parts if part[0] < part[1]]
        raise bookings.slot_taken(
            conflicts, "The hold does not cover the time of the event, has expired, or is in use"
        )
    return Lease(claimed=claimed, token=token, kept=claimed.repeated)


def _narrowed(condition: Condition, refs: Sequence[ConnectionRef]) -> list[ConnectionRef]:
    """The connections that the request reads, and those of the event."""
    of_event = {ref.id for ref, _ in condition.calendars}
    return [
        ref
        for ref in refs
        if ref.id in of_event
        or (
            (not condition.providers or ref.provider in condition.providers)
            and (not condition.chosen or ref.public_id in condition.chosen)
        )
    ]


def _calendars(
    condition: Condition, refs: Sequence[ConnectionRef], profile: Profile | None
) -> CalendarRequest:
    """The calendars that must be free: the user's main ones or the named ones, and those of the event.

    The calendars of the user's profile are read in the place of the main ones.
    """
    refs = _narrowed(condition, refs)
    counting = () if condition.named else profiles.counting(profile, refs)
    if counting:
        keys = (*counting, *(CalendarKey(ref.id, calendar) for ref, calendar in condition.calendars))
        reading = {connection for connection, _ in keys}
        return CalendarRequest(
            [ref for ref in refs if ref.id in reading], CalendarSelector(counting=tuple(keys))
        )
    if condition.named:
        event_ids = [shown_as(ref, calendar) for ref, calendar in condition.calendars]
        return CalendarRequest(refs, CalendarSelector((*condition.named, *event_ids)))
    others = [calendar for ref, calendar in condition.calendars if not _is_main(ref, calendar)]
    return CalendarRequest(refs, CalendarSelector((PRIMARY, *others) if others else ()))


def _is_main(ref: ConnectionRef, calendar: str) -> bool:
    return is_main(ref, calendar) or is_account_address(ref, calendar)


def _is_created(condition: Condition) -> bool:
    """Whether an earlier attempt of the request has created the event in all its calendars.

    :raise ApiError: when that cannot be read
    """
    created = _connections_with_event(condition)
    return all(ref.id in created for ref, _ in condition.calendars)


def _connections_with_event(condition: Condition) -> set[str]:
    """The ids of the connections in which an earlier attempt of the request has created the event.

    :raise ApiError: when that cannot be read
    """
    if condition.meta_id is None:
        return set()
    jobs = {
        ref.id: GetEvent(ref.id, calendar, condition.meta_id, by_meta=True)
        for ref, calendar in condition.calendars
    }
    replies = worker_calls.read(jobs)
    for ref, calendar in condition.calendars:
        failed = replies[ref.id].failed
        if failed is not None and failed.problem is not Problem.EVENT_NOT_FOUND:
            raise connections.error(ref, failed, calendar)
    return {connection for connection, reply in replies.items() if reply.failed is None}
