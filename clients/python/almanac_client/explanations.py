"""Explanations of why a time is, or is not, offered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from almanac_client.answers import Answer
from almanac_client.bodies import Group, Override, WantedUser, Window
from almanac_client.messages import Request, path
from almanac_client.operations import Operation, answer
from almanac_client.parameters import (
    GroupOptions,
    OrganizationSlotOptions,
    SlotOptions,
    UserSlotOptions,
    When,
    headers,
    query,
)
from almanac_client.records import GroupExplained, OrganizationExplained, UserExplained, UserExplainedEntry
from almanac_client.resources import Resource, TransportT, operation
from almanac_client.scheduling import hours, request_of_groups, request_of_one, request_of_users


class Explaining(Resource[TransportT]):
    """Explains why a time is, or is not, offered. ``data`` is complete: failures are reasons in it."""

    @operation
    def user(
        self,
        user_id: str,
        *,
        at: When,
        start: When,
        end: When,
        schedules: Sequence[Window] | None = None,
        overrides: Sequence[Override] | None = None,
        **options: Unpack[UserSlotOptions],
    ) -> Operation[Answer[UserExplained]]:
        """Why a user is, or is not, offered at a time; parameters as for ``scheduling.user``.

        >>> almanac.explain.user("ada", at=at_nine, start="2026-11-23", end="2026-11-24").data.sentence
        """
        params = query(options, start=start, end=end, at=at)
        where = path("/users/{}/scheduling/explain", user_id)
        request = request_of_one(where, params, hours(schedules, overrides), headers(options))
        return Operation(request, answer(UserExplained, accounted_for=True))

    @operation
    def users(
        self,
        users: Iterable[str | WantedUser],
        *,
        at: When,
        start: When,
        end: When,
        schedules: Sequence[Window] | None = None,
        overrides: Sequence[Override] | None = None,
        **options: Unpack[SlotOptions],
    ) -> Operation[Answer[list[UserExplainedEntry]]]:
        """Why several users are, or are not, offered at a time; parameters as for ``scheduling.users``.

        >>> almanac.explain.users(["ada", "grace"], at=at_nine, start=monday, end=friday).data
        """
        request = request_of_users(
            "/users/scheduling/explain",
            query(options, start=start, end=end, at=at),
            users,
            hours(schedules, overrides),
            headers(options),
        )
        return Operation(request, answer(list[UserExplainedEntry], accounted_for=True))

    @operation
    def organization(
        self, org_slug: str, *, at: When, start: When, end: When, **options: Unpack[OrganizationSlotOptions]
    ) -> Operation[Answer[OrganizationExplained]]:
        """The members who are offered at a time, and the reasons for every member.

        >>> almanac.explain.organization("acme", at=at_nine, start=monday, end=friday).data.offered_by
        """
        params = query(options, start=start, end=end, at=at)
        where = path("/organizations/{}/scheduling/explain", org_slug)
        request = Request.get(where, params, headers(options))
        return Operation(request, answer(OrganizationExplained, accounted_for=True))

    @operation
    def groups(
        self,
        participants: Sequence[Group],
        *,
        at: When,
        start: When,
        end: When,
        schedules: Sequence[Window] | None = None,
        overrides: Sequence[Override] | None = None,
        **options: Unpack[GroupOptions],
    ) -> Operation[Answer[GroupExplained]]:
        """Who of each group is missing at a time, and why; parameters as for ``scheduling.groups``.

        >>> almanac.explain.groups([{"users": ["ada", "grace"]}], at=at_nine, start=monday, end=friday).data
        """
        params = query(options, start=start, end=end, at=at)
        where = "/scheduling/explain"
        request = request_of_groups(
            where, params, participants, hours(schedules, overrides), headers(options)
        )
        return Operation(request, answer(GroupExplained, accounted_for=True))
