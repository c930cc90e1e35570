"""Free slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from almanac_client.answers import Answer
from almanac_client.bodies import Group, Override, WantedUser, Window
from almanac_client.messages import Reply, Request, path
from almanac_client.operations import Operation, answer
from almanac_client.parameters import (
    GroupOptions,
    OrganizationSlotOptions,
    SlotOptions,
    UserSlotOptions,
    When,
    body,
    headers,
    query,
)
from almanac_client.records import FailedUser, GroupSlots, OrganizationSlots, UserEntry, UserSlots
from almanac_client.resources import Resource, TransportT, operation


class Scheduling(Resource[TransportT]):
    """Free slots of users, organizations and groups."""

    @operation
    def user(
        self,
        user_id: str,
        *,
        start: When,
        end: When,
        schedules: Sequence[Window] | None = None,
        overrides: Sequence[Override] | None = None,
        **options: Unpack[UserSlotOptions],
    ) -> Operation[Answer[UserSlots]]:
        """Slots of a user, inside a daily window and weekly ``schedules``, if given.

        ``overrides`` replaces the windows of single dates.

        >>> almanac.scheduling.user("ada", start="2026-11-23", end="2026-11-28", slot_duration=30).data
        """
        params = query(options, start=start, end=end)
        where = path("/users/{}/scheduling", user_id)
        request = request_of_one(where, params, hours(schedules, overrides), headers(options))
        return Operation(request, answer(UserSlots))

    @operation
    def users(
        self,
        users: Iterable[str | WantedUser],
        *,
        start: When,
        end: When,
        schedules: Sequence[Window] | None = None,
        overrides: Sequence[Override] | None = None,
        **options: Unpack[SlotOptions],
    ) -> Operation[Answer[list[UserEntry]]]:
        """Slots of several users, an entry for each in order; ``failed_users`` repeats those without slots.

        >>> almanac.scheduling.users(["ada", "grace"], start="2026-11-23", end="2026-11-24").data
        """
        params = query(options, start=start, end=end)
        request = request_of_users(
            "/users/scheduling", params, users, hours(schedules, overrides), headers(options)
        )
        return Operation(request, _with_failed_users(answer(list[UserEntry])))

    @operation
    def organization(
        self,
        org_slug: str,
        *,
        start: When,
        end: When,
        schedules: Sequence[Window] | None = None,
        overrides: Sequence[Override] | None = None,
        **options: Unpack[OrganizationSlotOptions],
    ) -> Operation[Answer[OrganizationSlots]]:
        """Slots of every member; a member with an unreadable calendar has none, and is in ``failed_users``.

        >>> almanac.scheduling.organization("acme", start="2026-11-23", end="2026-11-24").partial
        """
        params = query(options, start=start, end=end)
        where = path("/organizations/{}/scheduling", org_slug)
        request = request_of_one(where, params, hours(schedules, overrides), headers(options))
        return Operation(request, answer(OrganizationSlots))

    @operation
    def groups(
        self,
        participants: Sequence[Group],
        *,
        start: When,
        end: When,
        schedules: Sequence[Window] | None = None,
        overrides: Sequence[Override] | None = None,
        **options: Unpack[GroupOptions],
    ) -> Operation[Answer[GroupSlots]]:
        """Slots at which enough users of every group are free; each names all users who are.

        >>> almanac.scheduling.groups([{"users": ["ada", "grace"]}], start=monday, end=friday).data
        """
        params = query(options, start=start, end=end)
        request = request_of_groups(
            "/scheduling", params, participants, hours(schedules, overrides), headers(options)
        )
        return Operation(request, answer(GroupSlots))


def request_of_groups(
    where: str,
    params: Mapping[str, Any],
    participants: Sequence[Group],
    hours: Mapping[str, Any],
    headers: Mapping[str, str],
) -> Request:
    """The request for the slots of groups, or for their explanation; it changes nothing."""
    sent = body(hours, participants=participants)
    return Request("POST", where, params, sent, headers, repeatable=True)


def request_of_users(
    where: str,
    params: Mapping[str, Any],
    users: Iterable[str | WantedUser],
    hours: Mapping[str, Any],
    headers: Mapping[str, str],
) -> Request:
    """The request for the slots of several users, or for their explanation; it changes nothing."""
    wanted = [{"id": each} if isinstance(each, str) else each for each in users]
    return Request("POST", where, params, body(hours, users=wanted), headers, repeatable=True)


def request_of_one(
    where: str,
    params: Mapping[str, Any],
    hours: Mapping[str, Any],
    headers: Mapping[str, str],
) -> Request:
    """The request for slots of a user or an organization; with hours, by POST, which changes nothing here."""
    if not hours:
        return Request.get(where, params, headers)
    return Request("POST", where, params, hours, headers, repeatable=True)


def hours(schedules: Sequence[Window] | None, overrides: Sequence[Override] | None) -> dict[str, Any]:
    """The body of a request inside weekly schedules; empty if there are none."""
    return body(schedules=schedules, overrides=overrides)


def _with_failed_users(
    read: Callable[[Reply], Answer[list[UserEntry]]],
) -> Callable[[Reply], Answer[list[UserEntry]]]:
    """Read the entries without slots as failed users too."""

    def read_both(reply: Reply) -> Answer[list[UserEntry]]:
        found = read(reply)
        return replace(
            found, failed_users=[_failed(each) for each in found.partial if each.status == "error"]
        )

    return read_both


def _failed(entry: UserEntry) -> FailedUser:
    return FailedUser(
        custom_id=entry.user_id,
        user_id=entry.user_id,
        # An entry without a reason means an unknown user or calendar.
        reason=entry.reason or "notFound",
        message=entry.error or "",
        failed_calendars=entry.failed_calendars,
        code=entry.code or "notFound",
    )
