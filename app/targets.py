"""Which calendars a request reads: by connection, by the id the provider is asked with, by the name shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from providers.base import PRIMARY, Failed, ProviderName
from providers.errors import ProviderError, Reason
from providers.scopes import Operation, require
from store.busy_cache import CalendarKey
from store.calendar_lists import CalendarList, ListedCalendar
from store.queries.connections import ConnectionRef
from workers.reads import asked_as

DEAD = Failed(
    Reason.AUTHORIZATION_INVALID, "The account's access has ended or was withdrawn; connect it again"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The calendars asked for: those named, else the main one of each account, else all of them."""

    ids: tuple[str, ...] = ()
    primary_only: bool = True

    @property
    def everything(self) -> bool:
        """Whether every calendar of each account is wanted."""
        return not self.ids and not self.primary_only

    def needs_lists(self, accounts: int) -> bool:
        """Whether calendar lists are needed: to know all calendars, or whose each of those named is.

        Of one account alone whatever is named belongs to it; but the main calendar might be named twice.
        """
        may_repeat = PRIMARY in self.ids and len(self.ids) > 1
        return self.everything or may_repeat or (bool(self.ids) and accounts > 1)


class Target(NamedTuple):
    """One calendar to read. ``key`` is what provider and cache know it by, ``shown`` what answers call it."""

    connection: ConnectionRef
    key: CalendarKey
    shown: str


def refusal(connection: ConnectionRef, *, lists: bool) -> Failed | None:
    """Why a connection need not be asked at all: its grant is gone, or too narrow."""
    if not connection.alive:
        return DEAD
    provider = ProviderName(connection.provider)
    operations = [Operation.LIST_CALENDARS] if lists else []
    try:
        for operation in [*operations, Operation.FREE_BUSY]:
            require(provider, connection.scope, operation)
    except ProviderError as error:
        return Failed.because(error)
    return None


def main_calendar(connection: ConnectionRef) -> Target:
    """The main calendar of an account."""
    return _target(connection, PRIMARY)


def listed(connection: ConnectionRef, calendars: Iterable[ListedCalendar]) -> list[Target]:
    """Every calendar on an account's list, under its real id."""
    return [
        Target(connection, CalendarKey(connection.id, asked_as(calendar)), calendar.id)
        for calendar in calendars
    ]


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
    for calendar_id in ids:
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
        found = lists.get(connection.id)
        for calendar in found.calendars if found else ():
            if calendar.id == calendar_id:
                return listed(connection, [calendar])[0]
    unlisted = [connection for connection in connections if connection.id not in lists] or connections
    # Google's calendar ids are addresses; Microsoft's never hold an @.
    likely = ProviderName.GOOGLE if "@" in calendar_id else ProviderName.MICROSOFT
    by_form = [connection for connection in unlisted if connection.provider == likely]
    return _target((by_form or list(unlisted))[0], calendar_id)


def _target(connection: ConnectionRef, calendar_id: str) -> Target:
    """A target by id; Google's main calendar has the account's address for its id."""
    address = connection.email if connection.provider == ProviderName.GOOGLE else None
    if address is not None and calendar_id.casefold() in (PRIMARY, address.casefold()):
        return Target(connection, CalendarKey(connection.id, PRIMARY), address)
    return Target(connection, CalendarKey(connection.id, calendar_id), calendar_id)
