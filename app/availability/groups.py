"""Group availability: the members of each group, their busy periods, and the slots that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.accounts import connections
from app.availability import parameters
from app.availability.failures import Failures, failed_user
from app.availability.freshness import Freshness
from app.availability.lookup import look_up
from app.availability.result import BusyResult
from app.availability.selection import CalendarRequest
from app.http.authentication import Authentication
from app.http.error_codes import Code
from app.http.errors import Invalid, NotFound
from app.schemas.availability import MAX_USERS
from providers.base import Failed
from providers.errors import Reason
from scheduling.intervals import Indexes
from scheduling.query import Query, Slots, slots
from scheduling.shared_slots import Requirement, shared
from store.sql.queries.connection_rows import ConnectionRef

_NO_USER = Failed(Reason.NOT_FOUND, "User not found")
_NO_CALENDARS = Failed(Reason.NOT_FOUND, connections.NO_CALENDARS)


@dataclass(frozen=True, slots=True)
class Group:
    """The users of a group, and how many of them have to be free; None: all."""

    users: Sequence[str]
    required: int | None


@dataclass(frozen=True, slots=True, eq=False)
class GroupAvailability:
    """Groups, and the busy periods of their users.

    - ``users``: every user of a group once, in the order of the request.
    - ``existing``: the users that exist; user ``i`` of ``result`` is ``connected[i]``, one of them.
    - ``partial``: users who cannot be read do not count among all.
    """

    groups: Sequence[Group]
    users: Sequence[str]
    existing: frozenset[str]
    connected: Sequence[str]
    result: BusyResult
    partial: bool

    def readable(self) -> Indexes:
        """The indexes of the users who could be read. In the engine, member ``n`` is the n-th of them."""
        return np.delete(np.arange(len(self.connected)), sorted(self.result.failing()))

    def requirements(self) -> list[Requirement]:
        """Of each group, the members of the engine, and how many of them have to be free."""
        member_of = {self.connected[index]: n for n, index in enumerate(self.readable().tolist())}
        requirements = []
        for group in self.groups:
            members = [member_of[user] for user in group.users if user in member_of]
            required = group.required
            if required is None:
                # A group without readable users has no slots, also if unreadable users do not count.
                required = max(1, len(members if self.partial else group.users))
            requirements.append(Requirement(np.array(members, np.int64), required))
        return requirements

    def member_slots(self, query: Query) -> Slots:
        """The slots of every readable member, on one grid, without a limit."""
        return slots(replace(query, limit=None), *self.result.of_users(self.readable()))

    def shared_slots(self, query: Query) -> tuple[Slots, list[str]]:
        """The slots that the groups share, and the user ids of the engine's members."""
        readable = self.readable()
        found = shared(self.member_slots(query), self.requirements(), int(readable.size), query.limit)
        return found, [self.connected[index] for index in readable.tolist()]

    def failed_users(self) -> list[dict[str, Any]]:
        """Entries for ``failedUsers``, in the order of the request."""
        index_of = {user: index for index, user in enumerate(self.connected)}
        failing = self.result.failing()
        return [
            self._failed_user(user, index_of.get(user))
            for user in self.users
            if index_of.get(user) is None or index_of[user] in failing
        ]

    def _failed_user(self, user: str, index: int | None) -> dict[str, Any]:
        if index is not None:
            return Failures.of(self.result, index).as_failed_user(user)
        if user in self.existing:
            return failed_user(user, _NO_CALENDARS, code=Code.NO_CONNECTED_CALENDARS)
        return failed_user(user, _NO_USER, code=Code.USER_NOT_FOUND)


def look_up_groups(
    authentication: Authentication,
    params: Mapping[str, Any],
    query: Query,
    participants: Sequence[Mapping[str, Any]],
    freshness: Freshness,
) -> GroupAvailability:
    """The busy periods that decide the slots of groups.

    :raise ApiError: for too many users, for a requirement above the size of its group, or for a range that
        could hold too many slots
    :raise NotFound: for an organization that the key does not reach, or without members
    """
    refs_of: dict[str, Sequence[ConnectionRef]] = {}
    groups = [_group(authentication, each, n, refs_of, params) for n, each in enumerate(participants)]
    users = list(dict.fromkeys(user for group in groups for user in group.users))
    if len(users) > MAX_USERS:
        raise Invalid(
            f"participants must have at most {MAX_USERS} users together, and have {len(users)}",
            param="participants",
        )
    refs_of |= connections.of_users(authentication, [user for user in users if user not in refs_of])
    selector = parameters.selector(params, primary_only=True)
    calendar_requests = {
        user: CalendarRequest(refs, selector)
        for user in users
        if (refs := parameters.of_provider(refs_of.get(user, ()), params))
    }
    # The limit applies to shared slots. Those of each member are computed without it.
    parameters.check_slot_count({replace(query, limit=None): len(calendar_requests)})
    result = look_up(authentication, list(calendar_requests.values()), *query.busy_range(), freshness)
    partial = params["onFailure"] == "partial"
    return GroupAvailability(groups, users, frozenset(refs_of), list(calendar_requests), result, partial)


def _group(
    authentication: Authentication,
    participant: Mapping[str, Any],
    number: int,
    refs_of: dict[str, Sequence[ConnectionRef]],
    params: Mapping[str, Any],
) -> Group:
    """A group of the request. The connections of an organization's members are added to ``refs_of``.

    Members without connected calendars do not belong to the group: they never connected.
    """
    required = participant["required"]
    if (users := participant.get("users")) is not None:
        return Group(list(dict.fromkeys(users)), required)
    members = connections.of_members(authentication, participant["organization"])
    if not members:
        raise NotFound("Organization has no members", Code.ORGANIZATION_HAS_NO_MEMBERS)
    if required is not None and required > len(members):
        sentence = f"participants[{number}].required must be at most {len(members)}, the size of the group"
        raise Invalid(sentence, param=f"participants.{number}.required")
    refs_of.update(members)
    connected = [user for user, refs in members.items() if parameters.of_provider(refs, params)]
    return Group(connected, required)
