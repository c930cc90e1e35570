"""Slots that groups of users share, and why a moment is, or is not, in one: who of each group is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from app.availability import connections, explanation, explanation_text, parameters, profiles
from app.availability.explanation import UserVerdict
from app.availability.failures import Failures, failed_user
from app.availability.lookup import look_up
from app.availability.parameters import ANY_HOURS, Freshness, RequestedHours, now_ms, within_hours
from app.availability.profiles import Person, Profile
from app.availability.result import BusyResult
from app.availability.selection import CalendarRequest
from app.http.authentication import Authentication
from app.http.errors import Invalid, NotFound
from app.schemas.availability import MAX_USERS
from app.schemas.error_codes import Code
from app.schemas.explain import NO_CALENDARS
from app.schemas.groups import NOT_ENOUGH_FREE
from app.schemas.parameters import LEAST_BUSY
from providers.base import Failed
from providers.errors import Reason
from scheduling import hours as zoned
from scheduling.explain import Pair, Verdict, explain
from scheduling.intervals import Groups, Indexes
from scheduling.query import (
    OfMembers,
    Own,
    Query,
    Requirement,
    Slots,
    free,
    least_busy_first,
    shared,
    slots,
)
from store.sql.queries.connection_rows import ConnectionRef

_NO_USER = Failed(Reason.NOT_FOUND, "User not found")
_NO_CALENDARS = Failed(Reason.NOT_FOUND, connections.NO_CALENDARS)


@dataclass(frozen=True, slots=True)
class Group:
    """The users of a group, and how many of them have to be free; None: all."""

    users: Sequence[str]
    required: int | None
    hours: RequestedHours = ANY_HOURS


@dataclass(frozen=True, slots=True, eq=False)
class GroupAvailability:
    """Groups, and the busy periods of their users.

    - ``users``: every user of a group once, in the order of the request.
    - ``existing``: the users that exist; user ``i`` of ``result`` is ``connected[i]``, one of them.
    - ``partial``: users who cannot be read do not count among all.
    - ``own``: what differs from the query, by user of ``connected``.
    - ``people``: the users whose profiles count.
    """

    groups: Sequence[Group]
    users: Sequence[str]
    existing: frozenset[str]
    connected: Sequence[str]
    result: BusyResult
    partial: bool
    own: OfMembers = None
    people: Mapping[str, Person] = field(default_factory=dict)
    least_busy: bool = False

    def own_of(self, indexes: Sequence[int]) -> OfMembers:
        """What differs for some of the connected users."""
        return None if self.own is None else [self.own[index] for index in indexes]

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
        readable = self.readable()
        busy = self.result.of_users(readable)
        return slots(replace(query, limit=None), *busy, self.own_of(readable.tolist()))

    def shared_slots(self, query: Query) -> tuple[Slots, list[str]]:
        """The slots that the groups share, and the user ids of the engine's members."""
        readable = self.readable()
        found = shared(self.member_slots(query), self.requirements(), int(readable.size), query.limit)
        if self.least_busy:
            found = least_busy_first(found, *self.result.of_users(readable), parameters.AROUND)
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
    body: Mapping[str, Any],
    freshness: Freshness,
) -> GroupAvailability:
    """The busy periods that decide the slots of groups; ``query`` has the hours of the body.

    :raise ApiError: for too many users, for a requirement above the size of its group, or for a range that
        could hold too many slots
    :raise NotFound: for an organization that the key does not reach, or without members
    """
    refs_of: dict[str, Sequence[ConnectionRef]] = {}
    profiled: dict[str, Profile] = {}
    participants = body["participants"]
    groups = [
        _group(authentication, each, n, refs_of, params, RequestedHours.of(each, body), profiled)
        for n, each in enumerate(participants)
    ]
    users = list(dict.fromkeys(user for group in groups for user in group.users))
    if len(users) > MAX_USERS:
        raise Invalid(
            f"participants must have at most {MAX_USERS} users together, and have {len(users)}",
            param="participants",
        )
    refs_of |= connections.of_users(authentication, [user for user in users if user not in refs_of])
    connections.require_chosen(params, chain.from_iterable(refs_of.values()))
    named = [user for group in groups for user in group.users if user not in profiled]
    profiled |= profiles.of_users(authentication, params, named)
    selector = parameters.selector(params, primary_only=True)
    calendar_requests = {
        user: profiles.calendars(CalendarRequest(refs, selector), profiled.get(user))
        for user in users
        if (refs := parameters.chosen(refs_of.get(user, ()), params))
    }
    # The limit applies to shared slots. Those of each member are computed without it.
    connected = list(calendar_requests)
    own = _own(params, query, RequestedHours.of(body), groups, connected, profiled)
    parameters.check_slot_count({replace(query, limit=None): len(connected)}, own)
    span = parameters.range_to_read(params, query.widened(own))
    result = look_up(authentication, list(calendar_requests.values()), *span, freshness)
    return GroupAvailability(
        groups,
        users,
        frozenset(refs_of),
        connected,
        result,
        params["onFailure"] == "partial",
        own,
        {user: _person(user, profiled[user], groups) for user in connected if user in profiled},
        params["order"] == LEAST_BUSY,
    )


def _person(user: str, profile: Profile, groups: Sequence[Group]) -> Person:
    """A user with a profile; the hours are those of the first group that states some."""
    stated = [group.hours for group in groups if user in group.users]
    return Person(user, profile, next((each for each in stated if each.are_given), stated[0]))


def _requested(query: Query) -> tuple[zoned.Hours, ...]:
    """The hours that a query of the request has."""
    if query.hours:
        return query.hours
    plain = zoned.Hours(query.zone, query.windows, query.overrides)
    return () if plain.are_any else (plain,)


def _own(
    params: Mapping[str, Any],
    query: Query,
    of_body: RequestedHours,
    groups: Sequence[Group],
    users: Sequence[str],
    profiled: Mapping[str, Profile],
) -> OfMembers:
    """What differs for each user from the query, which has the hours of the body; None if nothing does.

    A user in several groups is free only in the windows of all of them.
    """
    stated: dict[str, list[RequestedHours]] = {}
    for group in groups:
        for user in group.users:
            stated.setdefault(user, []).append(group.hours)
    without = replace(query, windows=None, overrides=())
    now = now_ms()
    queries: dict[Any, Query] = {}
    own: list[Own | None] = []
    for user in users:
        distinct = list({parameters.identity(each): each for each in stated[user]}.values())
        profile = profiled.get(user)
        if profile is None and distinct == [of_body]:
            own.append(None)
            continue
        of_user: list[Own] = []
        for hours in distinct:
            key = parameters.identity(hours)
            asked = queries.setdefault(key, within_hours(without, hours))
            of_user.append(
                Own(_requested(asked), query.padding_before, query.padding_after, query.not_before)
                if profile is None
                else profiles.terms(params, asked, hours, profile, now)
            )
        together = {id(each): each for terms in of_user for each in terms.hours}
        own.append(of_user[0]._replace(hours=tuple(together.values())))
    if all(each is None for each in own):
        return None
    profiles.check_windows(query, own)
    return own


def _group(
    authentication: Authentication,
    participant: Mapping[str, Any],
    number: int,
    refs_of: dict[str, Sequence[ConnectionRef]],
    params: Mapping[str, Any],
    hours: RequestedHours,
    profiled: dict[str, Profile],
) -> Group:
    """A group of the request. The connections and profiles of an organization's members are added.

    Members without connected calendars do not belong to the group: they never connected.
    """
    required = participant["required"]
    if (users := participant.get("users")) is not None:
        return Group(list(dict.fromkeys(users)), required, hours)
    members = connections.of_members(authentication, participant["organization"])
    if not members:
        raise NotFound("Organization has no members", Code.ORGANIZATION_HAS_NO_MEMBERS)
    if required is not None and required > len(members):
        sentence = f"participants[{number}].required must be at most {len(members)}, the size of the group"
        raise Invalid(sentence, param=f"participants.{number}.required")
    refs_of.update(members)
    profiled.update(profiles.of_members(authentication, params, participant["organization"]))
    connected = [user for user, refs in members.items() if parameters.chosen(refs, params)]
    return Group(connected, required, hours)


class MissingUser(NamedTuple):
    """A user who is not free for the whole slot; ``at`` is the first moment at which that is so."""

    user: str
    at: int
    explained: UserVerdict


@dataclass(frozen=True, slots=True)
class ExplainedGroup:
    """The users of a group who are free for the whole slot, and those who are missing."""

    required: int
    free: Sequence[str]
    missing: Sequence[MissingUser]


@dataclass(frozen=True, slots=True)
class ExplainedMoment:
    """Why a moment is, or is not, offered; ``reason`` is one of ``GROUP_REASONS``.

    ``slot`` is the slot around the moment that ``groups`` is about; None if no slot may hold the moment.
    """

    reason: str
    sentence: str
    slot: Pair | None = None
    groups: Sequence[ExplainedGroup] = ()

    @property
    def offered(self) -> bool:
        """Whether the moment is in a shared slot."""
        return self.reason == Verdict.OFFERED


def explain_groups(availability: GroupAvailability, query: Query, at: int) -> ExplainedMoment:
    """Explain whether a slot that the groups share holds the moment ``at``.

    It is offered if and only if one of the shared slots contains it (start included, end excluded).
    """
    nobody_busy = Groups.of([]), np.zeros(0, np.int64), 1
    common = replace(query, limit=None)
    if availability.own is not None:
        # The windows differ from user to user, and are among the reasons of each.
        common = replace(common, windows=None, overrides=())
    (facts,) = explain(common, at, *nobody_busy)
    if facts.verdict is not Verdict.OFFERED:
        return ExplainedMoment(facts.verdict, explanation_text.verdict_sentence(facts, common, ()))
    possible = slots(common, *nobody_busy).starts
    around = possible[(possible > at - query.duration) & (possible <= at)].tolist()
    of_each = availability.member_slots(query)
    requirements = availability.requirements()
    start = max(around, key=lambda each: (_satisfied(of_each, each, requirements), -each))
    members = set(_free_members(of_each, start).tolist())
    connected = [availability.connected[index] for index in availability.readable().tolist()]
    free_users = {connected[member] for member in members}
    slot = (start, start + query.duration)
    groups = [
        _explained_group(availability, query, slot, group, requirement, free_users)
        for group, requirement in zip(availability.groups, requirements, strict=True)
    ]
    counts = [(len(each.free), each.required) for each in groups]
    if any(free < required for free, required in counts):
        sentence = explanation_text.not_enough_free_sentence(at, query.zone, slot, counts)
        return ExplainedMoment(NOT_ENOUGH_FREE, sentence, slot, groups)
    if start not in availability.shared_slots(query)[0].starts:
        sentence = explanation_text.beyond_limit_sentence(at, query, slot)
        return ExplainedMoment(Verdict.BEYOND_LIMIT, sentence, slot, groups)
    return ExplainedMoment(
        Verdict.OFFERED, explanation_text.shared_sentence(at, query.zone, slot), slot, groups
    )


def _free_members(of_each: Slots, start: int) -> Indexes:
    """The engine's members that have a slot at this start."""
    first, after = of_each.starts.searchsorted((start, start + 1)).tolist()
    return of_each.members[first:after]


def _satisfied(of_each: Slots, start: int, requirements: Sequence[Requirement]) -> int:
    """How many requirements are met at a start."""
    members = _free_members(of_each, start)
    return sum(
        int(np.isin(members, requirement.members).sum()) >= requirement.required
        for requirement in requirements
    )


def _explained_group(
    availability: GroupAvailability,
    query: Query,
    slot: Pair,
    group: Group,
    requirement: Requirement,
    free_users: set[str],
) -> ExplainedGroup:
    index_of = {user: index for index, user in enumerate(availability.connected)}
    missing = []
    for user in group.users:
        if user in free_users:
            continue
        index = index_of.get(user)
        own = None if index is None or availability.own is None else availability.own[index]
        alone = replace(query, limit=None).of_member(own)
        at = slot[0] if index is None else _first_blocked(availability, alone, index, slot[0])
        if index is not None:
            person = availability.people.get(user)
            explained = explanation.explain_user(availability.result, alone, at, index, person=person)
        elif user in availability.existing:
            explained = explanation.explain_no_calendars(query, at)
        else:
            # The reason of users without calendars, so that clients need not know one more.
            explained = replace(explanation.explain_missing_user(query, at), reason=NO_CALENDARS)
        missing.append(MissingUser(user, at, explained))
    shown = [user for user in group.users if user in free_users]
    return ExplainedGroup(requirement.required, shown, missing)


def _first_blocked(availability: GroupAvailability, query: Query, index: int, start: int) -> int:
    """The first moment from ``start`` on at which the user is not free; ``start`` if they were not read."""
    if index in availability.result.failing():
        return start
    stretches = free(query, *availability.result.of_user(index)).flat()
    around = ((stretches.starts <= start) & (start < stretches.ends)).nonzero()[0]
    return int(stretches.ends[around[0]]) if around.size else start
