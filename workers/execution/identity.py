"""Reads the provider's ids for the account of a connection once, and stores them with the connection.

The cache tags of a connection and of its calendars are derived from these ids. They must be known before a
cache entry or an event is written. Otherwise a write through one connection would not invalidate what another
connection of the same mailbox has cached.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property

from providers import registry
from providers.base import PRIMARY, Account, Calendar, CalendarProvider, MainCalendar
from providers.errors import AuthorizationInvalid, ProviderError
from providers.scopes import Operation
from scheduling.windows import zone_exists
from store.cache.busy_cache import CalendarKey
from store.cache.cache_tags import Tags, owner_of, read_tags
from store.cache.calendar_lists import ListedCalendar
from store.sql.queries import connections
from store.sql.queries.connection_rows import Credentials, SealedConnection
from store.stores import Stores

log = logging.getLogger(__name__)

# Why and for how many seconds the provider is not asked again for the main calendar. Writes ask again after a
# failure, because they need the answer.
REFUSED, FAILED = "refused", "failed"
PAUSE_SECONDS = {REFUSED: 3600, FAILED: 10}
# Per interval, only this many newly read main calendars invalidate the caches of other processes, which
# expire after a minute. Otherwise an upgrade would empty them for each of thousands of connections.
INVALIDATIONS, INVALIDATION_SECONDS = 20, 5

# The lengths of the database columns.
MAX_ID = 2048
MAX_ADDRESS = 320


def with_main_calendar(
    stores: Stores,
    credentials: Credentials,
    provider: CalendarProvider,
    account: Account,
    *,
    deadline: float,
) -> Credentials:
    """The connection with its main calendar's id and zone, read from the provider if no id is stored.

    A connection whose scopes do not allow that call, or whose provider refuses it, is returned unchanged. Its
    e-mail is then used as the address.

    :raise ProviderError: when the provider did not answer, or ended the grant
    """
    if credentials.main_calendar_id is not None or not _may_ask(stores, credentials):
        return credentials
    try:
        main = provider.main_calendar(replace(account, grace=0.0), deadline=deadline)
    except AuthorizationInvalid:
        raise
    except ProviderError as error:
        if error.retryable:
            raise
        log.info("main calendar not named: %s", error.reason, extra={"connection": credentials.id})
        pause(stores, credentials.id, REFUSED)
        return credentials
    return _store(stores, credentials, main)


def owners(
    stores: Stores,
    credentials: Credentials,
    provider: CalendarProvider,
    account: Account,
    calendars: Sequence[str],
    *,
    deadline: float,
) -> Mapping[str, str]:
    """The address of another mailbox that shares each calendar, ``""`` for the account's own.

    Google calendars have none, because their ids are global. For Graph, the calendar list is read if an
    owner is unknown.

    :raise ProviderError: when the list cannot be read
    """
    if registry.definition(credentials.provider).global_ids:
        return {}
    shared = _not_main(credentials, calendars)
    known = stores.calendar_lists.owners(credentials.id, shared)
    if len(known) < len(shared):
        found = provider.calendars(replace(account, grace=0.0), deadline=deadline)
        listed = {each.id: each.owner for each in listing(credentials, found)}
        # A calendar on no list cannot be read. It is stored, so that it is not searched again.
        known = dict.fromkeys(shared, "") | listed
        stores.calendar_lists.store_owners(credentials.id, known)
    return known


def known_tags(
    of: SealedConnection | Credentials, calendars: Sequence[str]
) -> Mapping[CalendarKey, Tags] | None:
    """The cache tags of calendars if they are known without a look-up, else None.

    The provider reads a delegated connection by its address, so the address identifies the mailbox.
    """
    main = of.main_calendar_id
    if main is None and (of.grant is None or tuple(calendars) != (PRIMARY,)):
        return None
    if not registry.definition(of.provider).global_ids and any(
        each not in (PRIMARY, main) for each in calendars
    ):
        # Another mailbox may own such a calendar.
        return None
    return {CalendarKey(of.id, each): read_tags(of, each) for each in calendars}


def register_listed(stores: Stores, credentials: Credentials, calendars: Sequence[str]) -> bool:
    """Register a connection as a reader of calendars whose owners are stored; returns whether all are.

    It has done nothing for calendars that :func:`known_tags` knows.
    """
    if known_tags(credentials, calendars) is not None:
        return True
    shared = _not_main(credentials, calendars)
    found = stores.calendar_lists.owners(credentials.id, shared)
    if credentials.main_calendar_id is None or len(found) < len(shared):
        return False
    stores.busy.register_readers(
        {
            CalendarKey(credentials.id, each): read_tags(credentials, each, found.get(each, ""))
            for each in calendars
        }
    )
    return True


def _not_main(credentials: Credentials, calendars: Sequence[str]) -> list[str]:
    return [each for each in calendars if each not in (PRIMARY, credentials.main_calendar_id)]


def listing(credentials: Credentials, calendars: Sequence[Calendar]) -> tuple[ListedCalendar, ...]:
    """A list of calendars as the cache keeps it, always with the main calendar.

    The person may have hidden that one, and its meetings still take place.
    """
    main = credentials.main_calendar_id
    listed = []
    for each in calendars:
        primary = each.primary or each.id == main
        listed.append(ListedCalendar(each.id, primary, "" if primary else owner_of(credentials, each.owner)))
    if not any(each.primary for each in listed):
        by_address = registry.definition(credentials.provider).global_ids
        main = main or (by_address and credentials.email) or PRIMARY
        listed.insert(0, ListedCalendar(main, primary=True, unlisted=True))
    return tuple(listed)


def note_list(stores: Stores, credentials: Credentials, calendars: Sequence[Calendar]) -> Credentials:
    """Store the main calendar and the calendars' owners from a list that was just read.

    A main calendar with another id or address than the stored one belongs to an account that was renamed.
    """
    global_ids = registry.definition(credentials.provider).global_ids
    for each in calendars:
        if each.primary:
            address = each.id if global_ids else each.owner
            before = credentials
            main = MainCalendar(each.id, address, each.known_time_zone)
            credentials = _store(stores, credentials, main)
            if before.main_calendar_id is not None and _names(credentials) != _names(before):
                # The cached calendars carry tags of the old name.
                stores.busy.invalidate_connections([credentials.id])
    if not global_ids:
        found = {each.id: each.owner for each in listing(credentials, calendars)}
        stores.calendar_lists.store_owners(credentials.id, found)
    return credentials


def register_readers(
    stores: Stores,
    credentials: Credentials,
    account: Account,
    calendars: Sequence[str],
    of: Mapping[str, str],
) -> None:
    """Register calendars with the cache before they are read; ``of`` has their owners."""
    former = account.former_calendars if set(calendars) - {PRIMARY} else frozenset()
    names = {each: PRIMARY if each in former else each for each in calendars}
    stores.busy.register_readers(
        {
            CalendarKey(credentials.id, each): read_tags(credentials, name, of.get(each, ""))
            for each, name in names.items()
        }
    )


def _may_ask(stores: Stores, credentials: Credentials) -> bool:
    provider = credentials.provider
    if not registry.scopes(provider).allows(credentials.scope, Operation.LIST_CALENDARS):
        return False
    return paused(stores, credentials.id) != REFUSED


def _store(stores: Stores, credentials: Credentials, main: MainCalendar) -> Credentials:
    if len(main.id) > MAX_ID or len(main.address) > MAX_ADDRESS:
        return credentials
    found = replace(
        credentials,
        main_calendar_id=main.id,
        mailbox=main.address.lower() or None,
        # A zone that is not known this time does not replace one that is.
        time_zone=main.time_zone if zone_exists(main.time_zone) else credentials.time_zone,
    )
    if found == credentials:
        return credentials
    # Hours that a user has stored without a zone count in that of the calendar. Before a connection is
    # identified, no process has cached such hours (``app.availability.profiles``).
    before = credentials.main_calendar_id
    known = credentials.time_zone if _names(found) == _names(credentials) else before
    invalidate = known is not None or _count_invalidation(stores)
    if before is not None and before != main.id:
        note_former_calendar(stores, credentials.id, before)
    with stores.database.writing() as session:
        connections.identify(
            session,
            found.id,
            main_calendar_id=main.id,
            mailbox=found.mailbox,
            time_zone=found.time_zone,
            invalidate=invalidate,
        )
    return found


def _names(credentials: Credentials) -> tuple[str | None, str | None]:
    """The provider's names of the main calendar, from which cache tags are made."""
    return credentials.main_calendar_id, credentials.mailbox


def paused(stores: Stores, connection_id: str) -> str | None:
    """Why the provider is not asked for the main calendar now; None if it is."""
    reason = stores.redis.get(_pause(connection_id))
    return reason.decode() if isinstance(reason, bytes) else None


def pause(stores: Stores, connection_id: str, reason: str) -> None:
    """Do not ask the provider for the main calendar for a while."""
    stores.redis.set(_pause(connection_id), reason, ex=PAUSE_SECONDS[reason])


def _count_invalidation(stores: Stores) -> bool:
    """Count a first identification; returns whether it may invalidate the caches of all processes."""
    with stores.redis.pipeline(transaction=True) as pipe:
        pipe.set("main-calendars-learned", 0, nx=True, ex=INVALIDATION_SECONDS)
        pipe.incr("main-calendars-learned")
        _, learned = pipe.execute()
    return int(learned) <= INVALIDATIONS


def _pause(connection: str) -> str:
    return f"pause:main-calendar:{connection}"


# Seconds for which an earlier id is known.
KEPT_SECONDS = 400 * 86_400


class FormerCalendars(Set[str]):
    """The earlier ids of one connection's main calendar, loaded when they are first needed.

    Microsoft gives a default calendar another id when a mailbox moves, and clients keep the earlier one. The
    adapter then reads and writes the main calendar.
    """

    def __init__(self, stores: Stores, connection_id: str) -> None:
        self._stores = stores
        self._connection_id = connection_id

    @cached_property
    def _ids(self) -> frozenset[str]:
        known = self._stores.redis.smembers(_former_key(self._connection_id))
        return frozenset(each.decode() if isinstance(each, bytes) else each for each in known)

    def __contains__(self, calendar: object) -> bool:
        return calendar in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def note_former_calendar(stores: Stores, connection_id: str, calendar: str) -> None:
    """Store an earlier id of the main calendar."""
    with stores.redis.pipeline(transaction=False) as pipe:
        pipe.sadd(_former_key(connection_id), calendar)
        pipe.expire(_former_key(connection_id), KEPT_SECONDS)
        pipe.execute()


def _former_key(connection_id: str) -> str:
    return f"former-main-calendars:{connection_id}"
