"""Why a moment is, or is not, in a slot that groups share, and who of each group is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from app.availability import explanation, explanation_text
from app.availability.explanation import UserVerdict
from app.availability.groups import Group, GroupAvailability
from scheduling.explain import Pair, Verdict, explain
from scheduling.intervals import Groups, Indexes
from scheduling.query import Query, Slots, free, slots
from scheduling.shared_slots import Requirement

NOT_ENOUGH_FREE = "notEnoughFree"
# The verdicts of the engine that only busy time causes.
_OF_BUSY_TIME = (Verdict.BUSY, Verdict.PADDING, Verdict.TOO_MANY_OVERLAPS)
# All other verdicts of the engine, and the one that only groups have.
GROUP_REASONS = (*(verdict for verdict in Verdict if verdict not in _OF_BUSY_TIME), NOT_ENOUGH_FREE)


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
    (facts,) = explain(replace(query, limit=None), at, *nobody_busy)
    if facts.verdict is not Verdict.OFFERED:
        return ExplainedMoment(facts.verdict, explanation_text.verdict_sentence(facts, query, ()))
    possible = slots(replace(query, limit=None), *nobody_busy).starts
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
        at = slot[0] if index is None else _first_blocked(availability, query, index, slot[0])
        if index is not None:
            explained = explanation.explain_user(availability.result, replace(query, limit=None), at, index)
        elif user in availability.existing:
            explained = explanation.explain_no_calendars(query, at)
        else:
            # The reason of users without calendars, so that clients need not know one more.
            explained = replace(explanation.explain_missing_user(query, at), reason=explanation.NO_CALENDARS)
        missing.append(MissingUser(user, at, explained))
    shown = [user for user in group.users if user in free_users]
    return ExplainedGroup(requirement.required, shown, missing)


def _first_blocked(availability: GroupAvailability, query: Query, index: int, start: int) -> int:
    """The first moment from ``start`` on at which the user is not free."""
    stretches = free(query, *availability.result.of_user(index)).flat()
    around = ((stretches.starts <= start) & (start < stretches.ends)).nonzero()[0]
    return int(stretches.ends[around[0]]) if around.size else start
