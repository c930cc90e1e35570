"""The mailboxes and calendars that a request books, by the names under which their time is locked and held.

Two users may book one mailbox or calendar, each through a connection of their own. Its name is the same for
both if both connections are identified, so a connection that is not yet is identified here, before anything
is locked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.availability.failures import Failures, connection_failure
from app.availability.selection import (
    CalendarSelector,
    Lists,
    connections_to_list,
    is_main,
    precheck,
    targets_by_id,
)
from app.events import free_time, worker_calls
from app.http.authentication import Authentication
from app.http.error_codes import Code
from app.http.errors import NotFound
from app.services import services
from providers.errors import Reason
from providers.names import ProviderName
from providers.scopes import Operation
from store.cache.cache_tags import booked_names
from store.cache.calendar_lists import CalendarList
from store.sql.queries import connection_rows, users
from store.sql.queries.connection_rows import ConnectionRef
from workers.jobs import ListCalendars
from workers.queues import Queue

# A provider that answers like this never names the calendars of the account. Its e-mail address is then used.
_REFUSALS = (Reason.ACCESS_DENIED, Reason.INSUFFICIENT_SCOPES, Reason.NOT_FOUND, Reason.MAILBOX_UNAVAILABLE)

# Calendars by the id of their connection.
Calendars = Mapping[str, Sequence[str]]
# The calendars that a request names, by user: they count instead of the main ones.
Named = Mapping[str, Sequence[str]]


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
) -> Booking:
    """The names of the calendars that count for these users, and of ``others``.

    The main ones count for a user, unless the request has ``named`` calendars.

    :raise NotFound: for a user that the key does not reach
    :raise ApiError: when a provider does not say whose calendars a connection reads
    """
    named = named or {}
    numbers, connections = _load(authentication, wanted)
    calendars = _together(others or {}, _by_connection(connections, named))
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
        owners = _owners(connections, calendars)
    names = {
        number: [
            name
            for ref in connections[user]
            for name in _names(ref, calendars.get(ref.id, ()), owners, with_main=not named.get(user))
        ]
        for user, number in numbers.items()
    }
    return Booking(numbers, connections, names)


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
        numbers = users.ids(session, wanted, organization_id=organization_id)
        connections = connection_rows.of_users(session, wanted, organization_id=organization_id)
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
    replies = worker_calls.gather(jobs, Queue.READS, deadline=worker_calls.deadline())
    failures: dict[str, Failures] = {}
    for each, ref in unknown.items():
        failed = replies[each].failed
        if failed is not None and failed.reason not in _REFUSALS:
            failures[ref.user] = Failures([connection_failure(ref, failed)], something_read=False)
    if failures:
        raise free_time.unread(failures)
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
    if ref.provider == ProviderName.GOOGLE:
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
