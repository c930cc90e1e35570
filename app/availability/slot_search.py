"""The search of a request for slots or for a reason: a query for each person, and their busy periods.

A query is that of the request, changed by the person's profile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from app.availability import connections, parameters, profiles
from app.availability.lookup import look_up, look_up_users
from app.availability.parameters import Freshness, RequestedHours
from app.availability.profiles import Applied, Person, Profile
from app.availability.result import BusyResult
from app.availability.selection import CalendarRequest
from app.http.authentication import Authentication
from app.http.errors import NotFound
from app.schemas.error_codes import Code
from scheduling.query import Own, Query


class Search(NamedTuple):
    """The search for one user; ``hours`` are those of the request, ``options`` as the answer repeats them."""

    user: str
    query: Query
    hours: RequestedHours
    profile: Profile | None
    options: Mapping[str, Any]

    @property
    def person(self) -> Person | None:
        """The user with the profile; None without one."""
        return None if self.profile is None else Person(self.user, self.profile, self.hours)


class MembersSearch(NamedTuple):
    """All members of an organization, and the busy periods of the ``connected`` ones.

    User ``i`` of ``result`` is ``connected[i]``. ``own`` has what differs from ``query`` for each of them,
    ``people`` those with a profile. ``options`` are as the answer repeats them.
    """

    query: Query
    all_users: Sequence[str]
    connected: Sequence[str]
    people: Sequence[Person | None]
    result: BusyResult
    own: Sequence[Own | None] | None
    options: Mapping[str, Any]

    def own_of(self, indexes: Sequence[int]) -> Sequence[Own | None] | None:
        """What differs for some of the connected users."""
        return None if self.own is None else [self.own[index] for index in indexes]


def of_user(
    authentication: Authentication,
    params: Mapping[str, Any],
    zone: ZoneInfo,
    hours: RequestedHours,
    user: str,
    freshness: Freshness,
) -> tuple[Search, BusyResult]:
    """The search for one user, and the busy periods of the user's calendars.

    :raise ApiError: for a range that could hold too many slots
    :raise NotFound: for a user that the key does not reach, or without calendars
    """
    requested = parameters.slot_query(params, zone, hours)
    profile = profiles.of_user(authentication, params, user)
    query = profiles.query_of_user(params, requested, hours, profile)
    parameters.check_slot_count({query: 1})
    refs = connections.of_user(authentication, user, params)
    if not refs:
        raise NotFound(connections.NO_CALENDARS, Code.NO_CONNECTED_CALENDARS)
    calendar_request = CalendarRequest(refs, parameters.selector(params, primary_only=True))
    calendar_request = profiles.calendars(calendar_request, profile)
    result = look_up(authentication, [calendar_request], *query.busy_range(), freshness)
    return _search(params, user, query, hours, profile), result


class UsersSearch(NamedTuple):
    """The searches of the users of a request, in its order; the key reaches those in ``existing``."""

    searches: Sequence[Search]
    existing: Collection[str]
    result: BusyResult


def of_users(
    authentication: Authentication,
    params: Mapping[str, Any],
    zone: ZoneInfo,
    body: Mapping[str, Any],
    freshness: Freshness,
) -> UsersSearch:
    """The searches for the users of a body, each with the hours and the calendars of its own entry.

    :raise ApiError: for a range that could hold too many slots
    """
    wanted = body["users"]
    hours = [RequestedHours.of(user, body) for user in wanted]
    users = [user["id"] for user in wanted]
    profiled = profiles.of_users(authentication, params, users)
    requested = parameters.slot_queries(params, zone, hours)
    queries = profiles.queries_of_users(params, requested, hours, users, profiled)
    parameters.check_slot_count(Counter(queries))
    span = parameters.common_range(queries)
    existing, result = look_up_users(authentication, params, wanted, span, freshness, profiled=profiled)
    searches = [
        _search(params, user, query, each, profiled.get(user))
        for user, query, each in zip(users, queries, hours, strict=True)
    ]
    return UsersSearch(searches, existing, result)


def of_members(
    authentication: Authentication,
    params: Mapping[str, Any],
    zone: ZoneInfo,
    hours: RequestedHours,
    slug: str,
    freshness: Freshness,
) -> MembersSearch:
    """The search for the members of an organization, and their busy periods.

    :raise ApiError: for a range that could hold too many slots
    :raise NotFound: for an organization that the key does not reach, or without members
    """
    query = parameters.slot_query(params, zone, hours)
    applied = Applied(params, query, profiles.of_members(authentication, params, slug), hours)
    selector = parameters.selector(params, primary_only=True)
    members = connections.of_members(authentication, slug)
    if not members:
        raise NotFound("Organization has no members", Code.ORGANIZATION_HAS_NO_MEMBERS)
    connections.require_chosen(params, chain.from_iterable(members.values()))
    calendar_requests = {
        user: profiles.calendars(CalendarRequest(refs, selector), applied.profiles.get(user))
        for user, connected in members.items()
        if (refs := parameters.chosen(connected, params))
    }
    users = list(calendar_requests)
    own = applied.of(users)
    parameters.check_slot_count({query: len(users)}, own)
    span = parameters.range_to_read(params, query.widened(own))
    result = look_up(authentication, list(calendar_requests.values()), *span, freshness)
    options = parameters.echoed_options(params, query, hours, profiled=own is not None)
    people = [applied.person(user) for user in users]
    return MembersSearch(query, list(members), users, people, result, own, options)


def _search(
    params: Mapping[str, Any], user: str, query: Query, hours: RequestedHours, profile: Profile | None
) -> Search:
    options = parameters.echoed_options(params, query, hours, profiled=profile is not None)
    return Search(user, query, hours, profile, options)
