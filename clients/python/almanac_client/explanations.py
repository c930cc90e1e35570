"""Explanations of why a time is, or is not, offered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from almanac_client.answers import Answer
from almanac_client.parameters import SlotOptions, UserSlotOptions, When, answer, headers, query
from almanac_client.records import OrganizationExplained, UserExplained, Window
from almanac_client.scheduling import ask_one
from almanac_client.transport import Transport, path


class Explaining:
    """Explains why a time is, or is not, offered. ``data`` is complete: failures are reasons in it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def user(
        self,
        user_id: str,
        *,
        at: When,
        start: When,
        end: When,
        schedules: Sequence[Window] | None = None,
        **options: Unpack[UserSlotOptions],
    ) -> Answer[UserExplained]:
        """Why a user is, or is not, offered at a time; parameters as for ``scheduling.user``.

        >>> almanac.explain.user("ada", at=at_nine, start="2026-11-23", end="2026-11-24").data["sentence"]
        """
        params = query(options, start=start, end=end, at=at)
        where = path("/users/{}/scheduling/explain", user_id)
        reply = ask_one(self._transport, where, params, schedules, headers(options))
        return answer(reply, UserExplained, accounted_for=True)

    def organization(
        self, org_slug: str, *, at: When, start: When, end: When, **options: Unpack[SlotOptions]
    ) -> Answer[OrganizationExplained]:
        """The members who are offered at a time, and the reasons for every member.

        >>> almanac.explain.organization("acme", at=at_nine, start=monday, end=friday).data["offeredBy"]
        """
        params = query(options, start=start, end=end, at=at)
        where = path("/organizations/{}/scheduling/explain", org_slug)
        reply = self._transport.get(where, params, headers(options))
        return answer(reply, OrganizationExplained, accounted_for=True)
