"""Takes, finds and releases holds, with the access checks of the caller."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from redis.exceptions import RedisError
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session

from app.availability import connections, parameters, profiles
from app.availability.parameters import now_ms
from app.availability.selection import CalendarRequest, CalendarSelector
from app.events import bookings
from app.events.bookings import Booking, Time
from app.http.authentication import Authentication
from app.http.errors import Conflict, Invalid, NotFound, ServiceUnavailable, quota_exceeded
from app.schemas.error_codes import Code
from app.services import services
from providers.base import PRIMARY
from scheduling.windows import DAY
from store.coordination import shares
from store.coordination.shares import Quota
from store.sql.queries import audit, holds, users
from store.sql.queries.api_keys import Caller
from store.sql.queries.holds import NewHold, TakenHold
from store.sql.queries.webhook_events import HoldView

log = logging.getLogger(__name__)

# Milliseconds. It is that of a day without a change of the clock.
LONGEST = DAY
# Seconds that a request needs besides its reads and writes at providers.
MARGIN = 5.0


def take(
    authentication: Authentication, body: Mapping[str, Any], zone: ZoneInfo, *, idempotency_key: str | None
) -> HoldView:
    """Hold time of all users of a request, if all of them are free.

    The database decides between concurrent requests before calendars are read. The hold starts with a short
    lease; it is promised after the calendars were read and are free. If the process is killed, the
    lease ends.

    :raise Conflict: when the time is taken
    :raise ApiError: when a user is unknown, or could not be read; then nothing is held
    """
    time = _time(body, zone)
    named = _calendars(body["users"])
    wanted = list(named)
    profiled = profiles.of_users(authentication, body, wanted)
    time = time.with_profiles(body, profiled)
    booking = bookings.book(
        authentication,
        wanted,
        named={user: ids for user, ids in named.items() if ids},
        counting=lambda user, refs: profiles.counting(profiled.get(user), parameters.chosen(refs, body)),
    )
    connections.require_chosen(body, chain.from_iterable(booking.connections.values()))
    refs = {each: parameters.chosen(booking.connections[each], body) for each in wanted}
    if not all(refs.values()):
        raise NotFound(connections.NO_CALENDARS, Code.NO_CONNECTED_CALENDARS)
    new = NewHold(
        time.start,
        time.end,
        lease_end(deadlines=1),
        idempotency_key or secrets.token_hex(32),
        body["note"],
        authentication.organization_id,
    )
    taken = reserve(booking, time, new, limited=True)
    try:
        calendar_requests = {
            each: profiles.calendars(
                CalendarRequest(refs[each], CalendarSelector(tuple(named[each]))), profiled.get(each)
            )
            for each in wanted
        }
        others = {booking.user(number): times for number, times in taken.others.items()}
        by_name = {user for user, ids in named.items() if ids}
        if conflicts := bookings.busy(authentication, calendar_requests, time, others, named=by_name):
            raise bookings.slot_taken(conflicts)
        return _promise(authentication.caller, taken.id, body["expiresIn"])
    except BaseException:
        drop(taken.id)
        raise


def listed(authentication: Authentication, wanted: Collection[str]) -> list[HoldView]:
    """The holds of these users, or of all users if there are none, as far as the caller reaches them.

    :raise NotFound: for a user that the caller does not reach
    """
    organization_id = authentication.organization_id
    with services().stores.database.reading() as session:
        if wanted and not users.ids(session, wanted, organization_id=organization_id).keys() >= set(wanted):
            raise NotFound("User not found", Code.USER_NOT_FOUND)
        return holds.listed(session, wanted, organization_id=organization_id, now=now_ms())


def find(authentication: Authentication, hold_id: str) -> HoldView:
    """A hold.

    :raise NotFound: when it has expired, or another organization took it
    """
    with services().stores.database.reading() as session:
        hold = holds.find(session, hold_id, organization_id=authentication.organization_id, now=now_ms())
    if hold is None:
        raise NotFound("Hold not found", Code.HOLD_NOT_FOUND)
    return hold


def release(authentication: Authentication, hold_id: str) -> None:
    """Release a hold.

    :raise NotFound: as ``find``
    :raise Conflict: while a create is using it
    """
    find(authentication, hold_id)
    stores = services().stores
    with stores.database.reading() as session:
        names = holds.names(session, hold_id)
    with stores.held_times.changing(names), stores.database.writing() as session:
        if not holds.release(session, hold_id, reason="deleted", now=now_ms()):
            raise Conflict("An event is being created by the hold", Code.HOLD_IN_USE, retry_after=1)
        audit.record(session, actor=authentication.caller.visible, action="deleteHold", subject=hold_id)


def reserve(booking: Booking, time: Time, new: NewHold, *, limited: bool = False) -> TakenHold:
    """Take time of the users of a booking, without a promise.

    ``limited``: only if the organization then stays within its quota of held users.

    :raise Conflict: when other requests hold some of it
    :raise ApiError: when the organization would hold too many users
    """
    moment = now_ms()
    try:
        with services().stores.database.writing() as session:
            outcome = holds.take(
                session,
                booking.names,
                new,
                now=moment,
                before=time.padding_before,
                after=time.padding_after,
                max_overlaps=time.max_overlaps,
                margins={
                    number: time.margins(user) for user, number in booking.numbers.items() if user in time.own
                },
            )
            if not isinstance(outcome, TakenHold):
                conflicts = [
                    each
                    for number, times in sorted(outcome.items())
                    for each in time.taken_by(booking.user(number), times)
                ]
                raise bookings.slot_taken(conflicts)
            held = holds.held_users(session, new.organization_id, now=moment) if limited else 0
            most = services().settings.max_held_users
            if held > shares.own_quotas.get().get(Quota.HELD_USERS, most):
                raise quota_exceeded(Quota.HELD_USERS, _seconds_to_expiry(session, outcome, new, moment))
            return outcome
    except IntegrityError:
        # A user was deleted meanwhile, and the next attempt says so.
        raise ServiceUnavailable from None


def _seconds_to_expiry(session: Session, taken: TakenHold, new: NewHold, moment: int) -> int:
    """The seconds until the first other hold of the organization expires; 1 if it has no other."""
    ends = holds.first_expiry(session, new.organization_id, besides=taken.id, now=moment)
    return 1 if ends is None else -((moment - ends) // 1000)


def lease_end(*, deadlines: float) -> int:
    """When a hold ends that lasts for some deadlines of providers."""
    seconds = deadlines * services().settings.fanout_deadline_seconds + MARGIN
    return now_ms() + int(seconds * 1000)


def drop(hold_id: str) -> None:
    """Delete a hold without an answer. If the database is down, it ends with its lease."""
    try:
        with services().stores.database.writing() as session:
            holds.remove(session, hold_id)
    except SQLAlchemyError as error:
        log.warning("hold not deleted, it ends with its lease: %s", type(error).__name__)


def _promise(caller: Caller, hold_id: str, seconds: int) -> HoldView:
    """Make a hold count as busy in every process.

    :raise ApiError: when it has expired, or Redis is down, so that other processes would not see it
    """
    moment, stores = now_ms(), services().stores
    with stores.database.writing() as session:
        view = holds.promise(session, hold_id, expires_at=moment + seconds * 1000, now=moment)
        if view is None:
            raise ServiceUnavailable
        names = holds.names(session, hold_id)
        audit.record(session, actor=caller.visible, action="createHold", subject=_subject(view.users))
    try:
        stores.held_times.invalidate(names)
    except RedisError:
        with stores.database.writing() as session:
            holds.release(session, hold_id, reason="deleted", now=now_ms())
        raise
    return view


def _subject(names: Sequence[str]) -> str:
    return ", ".join(names)


def _calendars(wanted: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The calendars of each user; none: the main ones. A user who is named twice has those of both."""
    named: dict[str, list[str]] = {}
    for each in wanted:
        named.setdefault(each["id"], []).extend(each["calendarIds"] or [PRIMARY])
    return {user: [] if set(ids) == {PRIMARY} else list(dict.fromkeys(ids)) for user, ids in named.items()}


def is_past(end: int) -> bool:
    """Whether time that ends at this moment is over. A hold may have begun, as a meeting may."""
    return end <= now_ms()


def _time(body: Mapping[str, Any], zone: ZoneInfo) -> Time:
    start, end = body["start"].milliseconds(zone), body["end"].milliseconds(zone)
    if start >= end:
        raise Invalid("start must be before end", param="start")
    if is_past(end):
        raise Invalid("end must not be in the past", param="end")
    if end - start > LONGEST:
        raise Invalid("end must be at most 24 hours after start", param="end")
    return Time.of(start, end, body)
