"""Free slots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from almanac_client.answers import Answer
from almanac_client.parameters import (
    SlotOptions,
    UserSlotOptions,
    When,
    answer,
    body,
    headers,
    query,
)
from almanac_client.records import (
    FailedUser,
    OrganizationSlots,
    UserEntry,
    UserSlots,
    WantedUser,
    Window,
)
from almanac_client.transport import Reply, Transport, path


class Scheduling:
    """Free slots of users and organizations."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def user(
        self,
        user_id: str,
        *,
        start: When,
        end: When,
        schedules: Sequence[Window] | None = None,
        **options: Unpack[UserSlotOptions],
    ) -> Answer[UserSlots]:
        """Slots of a user, inside a daily window and weekly ``schedules``, if given.

        >>> almanac.scheduling.user("ada", start="2026-11-23", end="2026-11-28", slot_duration=30).data
        """
        params = query(options, start=start, end=end)
        where = path("/users/{}/scheduling", user_id)
        return answer(ask_one(self._transport, where, params, schedules, headers(options)), UserSlots)

    def users(
        self,
        users: Iterable[str | WantedUser],
        *,
        start: When,
        end: When,
        schedules: Sequence[Window] | None = None,
        **options: Unpack[SlotOptions],
    ) -> Answer[list[UserEntry]]:
        """Slots of several users, an entry for each in order; ``failed_users`` repeats those without slots.

        >>> almanac.scheduling.users(["ada", "grace"], start="2026-11-23", end="2026-11-24").data
        """
        wanted = [{"id": each} if isinstance(each, str) else each for each in users]
        reply = self._transport.send(
            "POST",
            "/users/scheduling",
            query=query(options, start=start, end=end),
            body=body(users=wanted, schedules=schedules),
            headers=headers(options),
            repeatable=True,
        )
        found = answer(reply, list[UserEntry])
        return replace(
            found, failed_users=[_failed(each) for each in found.partial if each["status"] == "error"]
        )

    def organization(
        self, org_slug: str, *, start: When, end: When, **options: Unpack[SlotOptions]
    ) -> Answer[OrganizationSlots]:
        """Slots of every member; a member with an unreadable calendar has none, and is in ``failed_users``.

        >>> almanac.scheduling.organization("acme", start="2026-11-23", end="2026-11-24").partial
        """
        params = query(options, start=start, end=end)
        reply = self._transport.get(path("/organizations/{}/scheduling", org_slug), params, headers(options))
        return answer(reply, OrganizationSlots)


def ask_one(
    transport: Transport,
    where: str,
    params: Mapping[str, Any],
    schedules: Sequence[Window] | None,
    headers: Mapping[str, str],
) -> Reply:
    """Request one user's slots; weekly schedules need POST, which changes nothing here."""
    if schedules is None:
        return transport.get(where, params, headers)
    fields = {"schedules": list(schedules)}
    return transport.send("POST", where, query=params, body=fields, headers=headers, repeatable=True)


def _failed(entry: UserEntry) -> FailedUser:
    return {
        "customId": entry["userId"],
        # An entry without a reason means an unknown user or calendar.
        "reason": entry.get("reason", "notFound"),
        "message": entry["error"],
        "failedCalendars": entry["failedCalendars"],
    }
