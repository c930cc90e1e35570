"""Which calendars a request reads: by connection, by the id the provider is asked with, by the name shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from providers.base import PRIMARY, Failed
from providers.errors import ProviderError, Reason
from providers.names import ProviderName
from providers.scopes import Operation, allows, require
from store.cache.busy_cache import CalendarKey
from store.cache.calendar_lists import CalendarList, ListedCalendar
from store.sql.queries.connections import ConnectionRef


@dataclass(frozen=True, slots=True)
class CalendarSelector:
    """The calendars asked for: those named, else the main one of each account, else all of them."""

    ids: tuple[str, ...] = ()
    primary_only: bool = True

    @property
    def everything(self) -> bool:
        """Whether every calendar of each account is wanted."""
        return not self.ids and not self.primary_only


class Target(NamedTuple):
    """One calendar to read. ``key`` is what provider and cache know it by, ``shown`` what answers call it."""

    connection: ConnectionRef
    key: CalendarKey
    shown: str


def precheck(connection: ConnectionRef, *operations: Operation) -> Failed | None:
    """Why a connection need not be asked at all: its grant is gone, or too narrow for an operation."""
    return _refusal(connection.provider, connection.scope, connection.alive, operations)


# Every member of an organization is looked at; most have been granted the same.
@lru_cache(maxsize=1024)
def _refusal(
    provider: str, scope: frozenset[str], alive: bool, operations: tuple[Operation, ...]
) -> Failed | None:
    if not alive:
        # In the words that the worker used when the provider said so.
        message = f"{provider.title()} says that this connection has ended"
        return Failed(Reason.AUTHORIZATION_INVALID, message)
    try:
        for operation in operations:
            require(ProviderName(provider), scope, operation)
    except ProviderError as error:
        return Failed.because(error)
    return None


def reads_main_only(connection: ConnectionRef) -> bool:
    """Whether an account tells when it is busy, and not which calendars it has.

    Google's ``calendar.freebusy`` alone allows that much. Of such an account, all calendars are the main one.
    """
    provider, scope = ProviderName(connection.provider), connection.scope
    return allows(provider, scope, Operation.FREE_BUSY) and not allows(
        provider, scope, Operation.LIST_CALENDARS
    )


def main_calendar(connection: ConnectionRef) -> Target:
    """The main calendar of an account."""
    return Target(connection, CalendarKey(connection.id, PRIMARY), shown_as(connection, PRIMARY))


def shown_as(connection: ConnectionRef, calendar_id: str) -> str:
    """What answers call a calendar: by its real id, also when the alias was used.

    Before the provider has named the main calendar, the e-mail stands in at Google, where it is the id.
    """
    if calendar_id != PRIMARY:
        return calendar_id
    google = connection.provider == ProviderName.GOOGLE
    return connection.main_calendar_id or (google and connection.email) or PRIMARY


def is_main(connection: ConnectionRef, calendar_id: str) -> bool:
    """Whether an id is that of the account's main calendar, or its alias."""
    return calendar_id in (PRIMARY, connection.main_calendar_id)


def listed(connection: ConnectionRef, calendars: Iterable[ListedCalendar]) -> list[Target]:
    """Every calendar on an account's list, under its real id."""
    return [
        Target(connection, CalendarKey(connection.id, calendar.asked_as), calendar.id)
        for calendar in calendars
    ]


def to_list(connections: Sequence[ConnectionRef], wanted: CalendarSelector) -> Sequence[ConnectionRef]:
    """The accounts whose calendar list is needed: to know what to read, or whose what was named is."""
    connections = [connection for connection in connections if not reads_main_only(connection)]
    if wanted.everything:
        return connections
    if PRIMARY in wanted.ids and len(wanted.ids) > 1:
        # The main calendar might be named twice, by its alias and by its id.
        return connections
    if len(connections) > 1 and any(not _is_address(each) for each in wanted.ids if each != PRIMARY):
        # An address is Google's; anything else is Microsoft's unless Google lists it.
        return [connection for connection in connections if connection.provider == ProviderName.GOOGLE]
    return ()


def named(
    ids: Sequence[str],
    connections: Sequence[ConnectionRef],
    lists: Mapping[str, CalendarList],
) -> list[Target]:
    """The calendars of these ids, each in the account that lists it.

    The alias ``primary`` means every account's main calendar. An id on no list is asked for all the same,
    where its form points to: Google reads calendars that are not on the list, and names what it cannot.
    """
    targets: dict[CalendarKey, Target] = {}
    for calendar_id in ids if connections else ():
        if calendar_id == PRIMARY:
            found = [main_calendar(connection) for connection in connections]
        else:
            found = [_home(calendar_id, connections, lists)]
        targets.update((target.key, target) for target in found)
    return list(targets.values())


def _home(
    calendar_id: str,
    connections: Sequence[ConnectionRef],
    lists: Mapping[str, CalendarList],
) -> Target:
    for connection in connections:
        if is_main(connection, calendar_id):
            return main_calendar(connection)
    for connection in connections:
        found = lists.get(connection.id)
        for calendar in found.calendars if found else ():
            if calendar.id == calendar_id:
                return listed(connection, [calendar])[0]
    likely = ProviderName.GOOGLE if _is_address(calendar_id) else ProviderName.MICROSOFT
    by_form = [connection for connection in connections if connection.provider == likely]
    home = (by_form or list(connections))[0]
    return Target(home, CalendarKey(home.id, calendar_id), calendar_id)


def _is_address(calendar_id: str) -> bool:
    """Google's calendar ids are addresses; Microsoft's never hold an @."""
    return "@" in calendar_id
