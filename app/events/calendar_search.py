"""Which of a user's connections has the calendar that the path of an event route names."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from app.availability import connections
from app.availability.selection import id_at_provider, is_account_address, is_main, precheck
from app.events import worker_calls
from app.http.authentication import Authentication
from app.services import services
from providers import registry
from providers.base import PRIMARY
from providers.errors import Reason
from providers.scopes import Operation
from store.cache.calendar_lists import ListedCalendar
from store.sql.queries.connection_rows import ConnectionRef
from workers.jobs import ListCalendars

# An account that answers like this has no list. The calendar is then searched in the others only.
_REFUSALS = (
    Reason.ACCESS_DENIED,
    Reason.AUTHORIZATION_INVALID,
    Reason.INSUFFICIENT_SCOPES,
    Reason.MAILBOX_UNAVAILABLE,
    Reason.NOT_FOUND,
)


def find(
    authentication: Authentication, user: str, provider: str, calendar_id: str, ids: Collection[str] = ()
) -> tuple[ConnectionRef, str]:
    """The connection with a calendar, and the id under which its provider knows the calendar.

    ``ids`` are the connections to search, all of the provider without them. ``primary`` is the main calendar
    of the default one, the id of a main calendar means its own account, and any other one is searched on the
    lists of calendars, that of the default connection first. A calendar on no list belongs to the default
    connection: a provider may read calendars that are on none.

    :raise NotFound: for a user that the key does not reach, or without such a connection
    :raise ApiError: when the calendar is on no list, and a list could not be read
    """
    refs = connections.with_provider(authentication, user, provider, ids)
    ref = refs[0] if len(refs) == 1 or calendar_id == PRIMARY else _of_several(refs, calendar_id)
    return ref, id_at_provider(ref, calendar_id)


def _of_several(refs: Sequence[ConnectionRef], calendar_id: str) -> ConnectionRef:
    for ref in refs:
        if is_main(ref, calendar_id) or is_account_address(ref, calendar_id):
            return ref
    readable = [ref for ref in refs if precheck(ref, Operation.LIST_CALENDARS) is None]
    cached = services().stores.calendar_lists.load([ref.id for ref in readable])
    if len(cached) == len(readable):
        for ref in readable:
            if _lists(ref, cached[ref.id].calendars, calendar_id):
                return ref
    # A cached list may lack a new calendar.
    replies = worker_calls.read({ref.id: ListCalendars(ref.id) for ref in readable})
    for ref in readable:
        if _lists(ref, replies[ref.id].listed or (), calendar_id):
            return ref
    for ref in readable:
        failed = replies[ref.id].failed
        if failed is not None and failed.reason not in _REFUSALS:
            raise connections.error(ref, failed, calendar_id)
    return refs[0]


def _lists(ref: ConnectionRef, listed: Sequence[ListedCalendar], calendar_id: str) -> bool:
    same_id = registry.definition(ref.provider).same_id
    return any(same_id(calendar_id, each.id) for each in listed)
