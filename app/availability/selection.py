"""Which calendars a request reads: the connection, the id at the provider and the id in answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from providers import registry
from providers.base import PRIMARY, Failed
from providers.errors import GRANT_ENDED, ProviderError, Reason, connection_ended
from providers.scopes import Operation
from store.cache.busy_cache import CalendarKey
from store.cache.cache_tags import calendar_names
from store.cache.calendar_lists import CalendarList, ListedCalendar
from store.sql.queries.connection_rows import ConnectionRef

Lists = Mapping[str, CalendarList]
"""Calendar lists by connection id."""

# The share of a request's time for listing calendars. The rest is left for reading them.
LISTS_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class CalendarSelector:
    """The calendars of a request: ``ids`` if there are any, else main calendars only, or all calendars.

    ``counting`` are those of a user's profile, each with the id of its connection, instead of main calendars.
    ``failed``: no calendar is read, because this failure of the user is known already.
    """

    ids: tuple[str, ...] = ()
    primary_only: bool = True
    counting: tuple[CalendarKey, ...] = ()
    failed: Failed | None = None

    @property
    def everything(self) -> bool:
        """Whether all calendars of each account are requested."""
        return not self.ids and not self.primary_only


class CalendarRequest(NamedTuple):
    """One user's connections, and the selector of their calendars."""

    connections: Sequence[ConnectionRef]
    selector: CalendarSelector


class Target(NamedTuple):
    """A calendar to read: ``key`` identifies it at the provider and in the cache, ``shown`` in answers."""

    connection: ConnectionRef
    key: CalendarKey
    shown: str


def precheck(connection: ConnectionRef, *operations: Operation) -> Failed | None:
    """The failure if the grant is revoked or too narrow for an operation, else None. It calls no provider."""
    delegated = connection.grant is not None
    return _precheck(connection.provider, connection.scope, connection.alive, delegated, operations)


# A request may check every member of an organization, and most have the same scopes.
@lru_cache(maxsize=1024)
def _precheck(
    provider: str, scope: frozenset[str], alive: bool, delegated: bool, operations: tuple[Operation, ...]
) -> Failed | None:
    if not registry.is_known(provider):
        return Failed(Reason.PROVIDER_NOT_CONFIGURED, "This version of Almanac does not have the provider")
    if not alive:
        ended = GRANT_ENDED if delegated else connection_ended(registry.title(provider))
        return Failed(Reason.AUTHORIZATION_INVALID, ended)
    try:
        for operation in operations:
            registry.scopes(provider).require(scope, operation, delegated=delegated)
    except ProviderError as error:
        return Failed.from_error(error)
    return None


def reads_main_only(connection: ConnectionRef) -> bool:
    """Whether the grant allows to read busy periods, but not to list calendars.

    That is so with only Google's scope ``calendar.freebusy``. All calendars then means the main calendar.
    """
    provider, scope = connection.provider, connection.scope
    return registry.scopes(provider).allows(scope, Operation.FREE_BUSY) and not registry.scopes(
        provider
    ).allows(scope, Operation.LIST_CALENDARS)


def main_calendar(connection: ConnectionRef) -> Target:
    """The main calendar of an account."""
    return Target(connection, CalendarKey(connection.id, PRIMARY), shown_as(connection, PRIMARY))


def shown_as(connection: ConnectionRef, calendar_id: str) -> str:
    """The id of a calendar in answers: the real id, also if the request used the alias ``primary``.

    While the provider has not returned the id of the main calendar, the answer is the e-mail address at
    Google, where it is the id, and the alias at Microsoft.
    """
    if calendar_id != PRIMARY:
        return calendar_id
    if connection.main_calendar_id:
        return connection.main_calendar_id
    by_address = registry.definition(connection.provider).global_ids
    return (by_address and connection.email) or PRIMARY


def is_main(connection: ConnectionRef, calendar_id: str) -> bool:
    """Whether an id, or the alias ``primary``, identifies the account's main calendar."""
    return calendar_id == PRIMARY or _is_same(connection, calendar_id, connection.main_calendar_id)


def is_account_address(connection: ConnectionRef, calendar_id: str) -> bool:
    """Whether an id is the address with which a Google account was connected, in any of its spellings."""
    by_address = registry.definition(connection.provider).global_ids
    return by_address and _is_same(connection, calendar_id, connection.email)


def id_at_provider(connection: ConnectionRef, calendar_id: str) -> str:
    """The id under which the provider knows a calendar: for the main one the alias, which is never outdated.

    Until the id of the main calendar is known, its address is spelled as the account was connected.
    """
    if is_main(connection, calendar_id):
        return PRIMARY
    unknown = connection.main_calendar_id is None and is_account_address(connection, calendar_id)
    return connection.email or calendar_id if unknown else calendar_id


def _is_same(connection: ConnectionRef, calendar_id: str, known: str | None) -> bool:
    """Whether an id names the calendar with the id ``known``. Some providers have several spellings."""
    return known is not None and registry.definition(connection.provider).same_id(calendar_id, known)


def distinct(targets: Sequence[Target], *operations: Operation) -> list[Target]:
    """The calendars of one user, each once: several connections may read the same one.

    Of two connections, the one whose grant allows ``operations`` reads it, or the first one.
    """
    connections = {target.connection.id: target.connection.provider for target in targets}
    if len(connections) == len(set(connections.values())):
        return list(targets)
    found: list[Target] = []
    index_of: dict[str, int] = {}
    for target in targets:
        names = _calendar_names(target)
        index = next((index_of[name] for name in names if name in index_of), len(found))
        if index == len(found):
            found.append(target)
        elif precheck(found[index].connection, *operations) and not precheck(target.connection, *operations):
            found[index] = target
        index_of.update(dict.fromkeys(names, index))
    return found


def distinct_accounts(connections: Sequence[ConnectionRef], *operations: Operation) -> list[ConnectionRef]:
    """The connections of one user, each main calendar once, see ``distinct``."""
    return [each.connection for each in distinct(list(map(main_calendar, connections)), *operations)]


def _calendar_names(target: Target) -> tuple[str, ...]:
    connection, key, _ = target
    if is_main(connection, key.calendar):
        return connection.main_names
    return calendar_names(connection, key.calendar)


def listed_targets(connection: ConnectionRef, calendars: Iterable[ListedCalendar]) -> list[Target]:
    """Targets for calendars on an account's list, shown under their real ids."""
    return [
        Target(connection, CalendarKey(connection.id, calendar.read_id), calendar.id)
        for calendar in calendars
    ]


def connections_to_list(
    connections: Sequence[ConnectionRef], selector: CalendarSelector
) -> Sequence[ConnectionRef]:
    """The connections whose list is needed to find all their calendars, or the connection of an id."""
    connections = [connection for connection in connections if not reads_main_only(connection)]
    if selector.everything:
        return connections
    if PRIMARY in selector.ids and len(selector.ids) > 1:
        # The request may name the main calendar twice: by its alias and by its id.
        return connections
    ids = [each for each in selector.ids if each != PRIMARY]
    by_address = [each for each in connections if registry.definition(each.provider).global_ids]
    others = [each for each in connections if each not in by_address]
    listing: set[str] = set()
    if len(connections) > 1 and not all(map(_is_address, ids)):
        # An e-mail address is a Google id; any other id is Microsoft's, unless a Google account lists it.
        listing |= {each.id for each in by_address}
    for same_form, is_address in ((by_address, True), (others, False)):
        unknown = (
            each for each in ids if _is_address(each) is is_address and not _is_any_main(same_form, each)
        )
        if len(same_form) > 1 and any(unknown):
            # Each of several accounts may have it.
            listing |= {each.id for each in same_form}
    # Google may know the main calendar by another spelling of the address than the connection.
    listing |= {
        connection.id
        for connection in connections
        if connection.main_calendar_id is None
        and any(each != connection.email and is_account_address(connection, each) for each in ids)
    }
    return [each for each in connections if each.id in listing]


def _is_any_main(connections: Sequence[ConnectionRef], calendar_id: str) -> bool:
    return any(is_main(connection, calendar_id) for connection in connections)


def targets_by_id(
    ids: Sequence[str],
    connections: Sequence[ConnectionRef],
    lists: Lists,
) -> list[Target]:
    """The calendars with these ids, each in the account that lists it.

    The alias ``primary`` means the main calendar of every account. An id on no list goes to an account of
    the provider that uses ids of this form: Google reads calendars that are not on the list, and returns an
    error for each one that it cannot read.
    """
    targets: dict[CalendarKey, Target] = {}
    for calendar_id in ids if connections else ():
        if calendar_id == PRIMARY:
            found = [main_calendar(connection) for connection in connections]
        else:
            found = [_in_account(calendar_id, connections, lists)]
        targets.update((target.key, target) for target in found)
    return list(targets.values())


def known_targets(calendar_request: CalendarRequest, lists: Lists) -> list[Target]:
    """The calendars of a user whose ids are known without another call to a provider, each once."""
    return distinct(_targets(calendar_request, lists), Operation.FREE_BUSY)


def _targets(calendar_request: CalendarRequest, lists: Lists) -> list[Target]:
    connections, selector = calendar_request
    if selector.ids:
        return targets_by_id(selector.ids, connections, lists)
    if selector.everything:
        targets: list[Target] = []
        for connection in connections:
            if reads_main_only(connection):
                targets.append(main_calendar(connection))
            elif connection.id in lists:
                targets += listed_targets(connection, lists[connection.id].calendars)
        return targets
    if selector.counting:
        return counting_targets(connections, selector.counting)
    return [main_calendar(connection) for connection in connections]


def counting_targets(connections: Sequence[ConnectionRef], counting: Sequence[CalendarKey]) -> list[Target]:
    """The calendars that count for a user by the profile, as far as their connections are given."""
    by_id = {connection.id: connection for connection in connections}
    targets: dict[CalendarKey, Target] = {}
    for connection_id, calendar in counting:
        connection = by_id.get(connection_id)
        if connection is not None:
            key = CalendarKey(connection_id, id_at_provider(connection, calendar))
            shown = shown_as(connection, PRIMARY if key.calendar == PRIMARY else calendar)
            targets.setdefault(key, Target(connection, key, shown))
    return list(targets.values())


def unlisted_connections(calendar_request: CalendarRequest, lists: Lists) -> list[ConnectionRef]:
    """The connections of which all calendars are requested and the list is not known."""
    if not calendar_request.selector.everything:
        return []
    return [
        each for each in calendar_request.connections if each.id not in lists and not reads_main_only(each)
    ]


def _in_account(
    calendar_id: str,
    connections: Sequence[ConnectionRef],
    lists: Lists,
) -> Target:
    for connection in connections:
        if is_main(connection, calendar_id):
            return main_calendar(connection)
    for connection in connections:
        found = lists.get(connection.id)
        for calendar in found.calendars if found else ():
            if _is_same(connection, calendar_id, calendar.id):
                return listed_targets(connection, [calendar])[0]
    for connection in connections:
        calendar_id = id_at_provider(connection, calendar_id)
    global_ids = _is_address(calendar_id)
    by_form = [each for each in connections if registry.definition(each.provider).global_ids is global_ids]
    connection = (by_form or list(connections))[0]
    return Target(connection, CalendarKey(connection.id, calendar_id), calendar_id)


def _is_address(calendar_id: str) -> bool:
    """Whether an id has the form of Google's, an e-mail address. Microsoft's ids never contain an @."""
    return "@" in calendar_id
