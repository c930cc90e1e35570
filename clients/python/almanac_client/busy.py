"""Busy periods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from almanac_client.answers import Answer
from almanac_client.bodies import UserCalendars
from almanac_client.messages import Request, path
from almanac_client.operations import Operation, answer
from almanac_client.parameters import AccountReading, Reading, When, body, headers, query
from almanac_client.records import BusyPeriod, UserBusyEntry
from almanac_client.resources import Resource, TransportT, operation


class Busy(Resource[TransportT]):
    """Busy periods: merged, sorted, and clipped to the range."""

    @operation
    def user(
        self,
        user_id: str,
        *,
        start: When,
        end: When,
        primary_only: bool = False,
        **which: Unpack[AccountReading],
    ) -> Operation[Answer[list[BusyPeriod]]]:
        """Busy periods of a user, over all calendars, the given ones, or only the main ones.

        >>> almanac.busy.user("ada", start="2026-11-23", end="2026-11-24", zone="Europe/Berlin").data
        """
        params = query(which, start=start, end=end, primary_only=primary_only)
        request = Request.get(path("/users/{}/calendar/busy", user_id), params, headers(which))
        return Operation(request, answer(list[BusyPeriod]))

    @operation
    def users(
        self,
        users: Iterable[str | UserCalendars],
        *,
        start: When,
        end: When,
        primary_only: bool = False,
        **which: Unpack[Reading],
    ) -> Operation[Answer[list[UserBusyEntry]]]:
        """Busy periods of several users, an entry for each in order.

        >>> almanac.busy.users(["ada", "grace"], start="2026-11-23", end="2026-11-24").data
        """
        wanted = [{"id": each} if isinstance(each, str) else each for each in users]
        params = query(which, start=start, end=end, primary_only=primary_only)
        request = Request(
            "POST", "/users/calendar/busy", params, body(users=wanted), headers(which), repeatable=True
        )
        return Operation(request, answer(list[UserBusyEntry], accounted_for=True))

    @operation
    def organization(
        self,
        org_slug: str,
        *,
        start: When,
        end: When,
        primary_only: bool = False,
        **which: Unpack[Reading],
    ) -> Operation[Answer[list[BusyPeriod]]]:
        """Busy periods of all members of an organization together.

        >>> almanac.busy.organization("acme", start="2026-11-23", end="2026-11-24").data
        """
        params = query(which, start=start, end=end, primary_only=primary_only)
        request = Request.get(path("/organizations/{}/calendar/busy", org_slug), params, headers(which))
        return Operation(request, answer(list[BusyPeriod]))
