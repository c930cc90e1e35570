"""The connections of users and members that the API key of a request may use, and the names of calendars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.availability import parameters
from app.availability.failures import NO_CALENDARS as NO_CALENDARS
from app.availability.failures import Failure, Failures, sufficient_scopes
from app.availability.selection import Target, precheck, shown_as
from app.http.authentication import Authentication
from app.http.errors import ApiError, NotFound
from app.http.provider_failures import one_calendar_failed
from app.schemas.error_codes import Code
from app.services import services
from providers.base import PRIMARY, Failed
from providers.scopes import Operation
from store.sql.queries import connection_rows, organizations
from store.sql.queries import connections as stored
from store.sql.queries.connection_rows import ConnectionRef


def of_user(authentication: Authentication, custom_id: str, query: Mapping[str, Any]) -> list[ConnectionRef]:
    """The user's connections that the query chooses, by provider, in each the default one first.

    :raise NotFound: for a user that the key does not reach, or an id of no connection
    """
    only = authentication.organization_id

    def load() -> list[ConnectionRef] | None:
        with services().stores.database.reading() as session:
            return connection_rows.of_user(session, custom_id, organization_id=only)

    refs = authentication.rows.get_or_load(_cache_key(authentication, custom_id), load)
    if refs is None:
        raise NotFound("User not found", Code.USER_NOT_FOUND)
    require_chosen(query, refs)
    return parameters.chosen(_identified_siblings(authentication, refs), query)


def _identified_siblings(authentication: Authentication, refs: list[ConnectionRef]) -> list[ConnectionRef]:
    """The connections, as stored now if two may read one mailbox, which would have each event twice."""
    several = Counter(ref.provider for ref in refs)
    unknown = [ref for ref in refs if several[ref.provider] > 1 and not is_identified(ref)]
    found = identified(authentication, unknown) if unknown else {}
    return [found.get(ref.id, ref) for ref in refs]


def require_chosen(query: Mapping[str, Any], refs: Iterable[ConnectionRef]) -> None:
    """Check that every id in the parameter ``connection`` is one of these connections.

    :raise NotFound: otherwise
    """
    if (ids := query.get("connection")) and not {ref.public_id for ref in refs}.issuperset(ids):
        raise NotFound("OAuth connection not found", Code.CONNECTION_NOT_FOUND)


def cached_of_user(
    authentication: Authentication, custom_id: str, query: Mapping[str, Any]
) -> list[ConnectionRef]:
    """As ``of_user``, from the cache of this process only; empty if they are not cached.

    :raise NotFound: for an id of none of them
    """
    refs = authentication.rows.get(_cache_key(authentication, custom_id))
    require_chosen(query, refs or ())
    return parameters.chosen(refs or (), query)


def of_users(authentication: Authentication, custom_ids: Iterable[str]) -> dict[str, Sequence[ConnectionRef]]:
    """The connections of each user; users that the key does not reach are left out."""
    cached = authentication.rows
    keys = {custom_id: _cache_key(authentication, custom_id) for custom_id in custom_ids}
    known = {custom_id: cached.get(key) for custom_id, key in keys.items()}
    missing = {custom_id for custom_id, refs in known.items() if refs is None}
    if missing:
        with services().stores.database.reading() as session:
            loaded = connection_rows.of_users(
                session, missing, organization_id=authentication.organization_id
            )
        for custom_id, refs in loaded.items():
            known[custom_id] = refs
            cached.put(keys[custom_id], refs)
    return {custom_id: refs for custom_id, refs in known.items() if refs is not None}


def _cache_key(authentication: Authentication, custom_id: str) -> tuple[str, str, int | None]:
    return "user", custom_id, authentication.organization_id


def of_members(authentication: Authentication, slug: str) -> Mapping[str, Sequence[ConnectionRef]]:
    """The connections of every member of an organization, by user, in the order of responses.

    :raise NotFound: for an organization that the key does not reach
    """
    only = authentication.organization_id

    def load() -> dict[str, list[ConnectionRef]] | None:
        with services().stores.database.reading() as session:
            found = organizations.ids(session, [slug], organization_id=only)
            if not found:
                return None
            return dict(
                sorted(connection_rows.of_members(session, found[slug], only_organization_id=only).items())
            )

    members = authentication.rows.get_or_load(("members", slug, only), load, weight=_connections)
    if members is None:
        raise NotFound("Organization not found", Code.ORGANIZATION_NOT_FOUND)
    return members


def _connections(members: Mapping[str, Sequence[ConnectionRef]] | None) -> int:
    return 1 if members is None else len(members) + sum(map(len, members.values()))


def is_identified(ref: ConnectionRef) -> bool:
    """Whether the provider has named the account of a connection, or will not do so.

    A delegated connection is read by the address of the mailbox.
    """
    return ref.grant is not None or is_zone_settled(ref)


def is_zone_settled(ref: ConnectionRef) -> bool:
    """Whether the main calendar and its zone are known, or the provider does not name them."""
    return ref.main_calendar_id is not None or precheck(ref, Operation.LIST_CALENDARS) is not None


def identified(authentication: Authentication, refs: Iterable[ConnectionRef]) -> dict[str, ConnectionRef]:
    """Those connections that were identified after they were cached, by id; ``refs`` are not identified.

    A worker identifies a connection with its first read. It does not always invalidate the cached rows of all
    processes then, because an upgrade would otherwise empty them for each of thousands of connections.
    """
    cached = authentication.rows
    known: dict[str, ConnectionRef | None] = {ref.id: cached.get(("identified", ref.id)) for ref in refs}
    missing = [each for each, ref in known.items() if ref is None]
    if missing:
        with services().stores.database.reading() as session:
            loaded = connection_rows.by_id(session, missing)
        for each, ref in loaded.items():
            if ref.main_calendar_id is not None:
                known[each] = ref
                cached.put(("identified", each), ref)
    return {each: ref for each, ref in known.items() if ref is not None}


def with_provider(
    authentication: Authentication, custom_id: str, provider: str, ids: Collection[str] = ()
) -> list[ConnectionRef]:
    """The user's connections with one provider, the default one first; ``ids`` limits to those.

    :raise NotFound: for a user that the key does not reach, or without such a connection
    """
    refs = of_user(authentication, custom_id, {"provider": [provider], "connection": ids})
    if not refs:
        raise NotFound("OAuth connection not found", Code.CONNECTION_NOT_FOUND)
    return refs


def require(ref: ConnectionRef, *operations: Operation, calendar_id: str = PRIMARY) -> None:
    """Check that the connection's grant is alive and has the scopes for these operations on a calendar.

    :raise ApiError: otherwise, before any provider call
    """
    failed = precheck(ref, *operations)
    if failed is not None:
        raise error(ref, failed, calendar_id)


def error(ref: ConnectionRef, failed: Failed, calendar_id: str = PRIMARY) -> ApiError:
    """The error for a failed read of a single calendar, or a failed write of an event in it."""
    failures = Failures([Failure(shown_as(ref, calendar_id), ref, failed)], something_read=False)
    return failures.named_in(one_calendar_failed(failed, sufficient_scopes(ref, failed)))


# A worker learns the id of a main calendar with the first provider call for its connection, and stores it.
# The first response looks it up; later requests load it with the connection.


def renamed(targets: Sequence[Target]) -> Sequence[Target]:
    """The targets with the names that are known by now."""
    unnamed = [each.connection for each in targets if _unnamed(each)]
    if not unnamed:
        return targets
    found = _main_calendars(unnamed)
    return [
        each._replace(shown=found.get(each.connection.id, each.shown)) if _unnamed(each) else each
        for each in targets
    ]


def calendar_name(connection: ConnectionRef, calendar_id: str) -> str:
    """The name, in responses, of a calendar that has been read or written."""
    if calendar_id == PRIMARY and connection.main_calendar_id is None:
        found = _main_calendars([connection]).get(connection.id)
        connection = replace(connection, main_calendar_id=found)
    return shown_as(connection, calendar_id)


def _unnamed(target: Target) -> bool:
    connection = target.connection
    return connection.main_calendar_id is None and target.shown in (PRIMARY, shown_as(connection, PRIMARY))


def _main_calendars(refs: Iterable[ConnectionRef]) -> Mapping[str, str]:
    with services().stores.database.reading() as session:
        return stored.main_calendars(session, {ref.id for ref in refs})
