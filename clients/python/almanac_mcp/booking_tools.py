"""The tools that hold and book. An assistant has to repeat what the person has confirmed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mcp.types import CallToolResult
from pydantic import Field

from almanac_client import Almanac
from almanac_client.words import Provider
from almanac_mcp.results import error_result, result, span
from almanac_mcp.tools import Moment, TimeZone, User, Users, sentences

HoldId = Annotated[str, Field(description="The id of a hold, as returned by hold_time.")]
KeepMinutes = Annotated[int, Field(description="How long the person has to confirm.", ge=1, le=60)]
Invited = Annotated[
    list[str], Field(description="E-mail addresses of the invited people. The provider writes to them.")
]
Confirmed = Annotated[
    bool,
    Field(description="True only after the person has agreed to exactly this time, subject and invitation."),
]
ConfirmedTime = Annotated[
    str, Field(description="The time that the person has confirmed, local to time_zone: 2026-11-23T14:00.")
]

NOT_CONFIRMED = (
    "Nothing was booked, because confirmed is false. Tell the person the time with its zone, the subject and "
    "who is invited, and call this again when they have agreed."
)


class BookingTools:
    """The tools, on the client of the caller."""

    def __init__(self, almanac: Callable[[], Almanac]) -> None:
        self._almanac = almanac

    def every(self) -> list[Callable[..., CallToolResult]]:
        """All tools."""
        return [self.hold_time, self.release_hold, self.book_held_time]

    @sentences
    def hold_time(
        self,
        user_ids: Users,
        start: Moment,
        end: Moment,
        time_zone: TimeZone = "UTC",
        keep_minutes: KeepMinutes = 10,
    ) -> CallToolResult:
        """Hold a time of users, so that no one else gets it while the person decides. Books nothing."""
        hold = self._almanac().holds.create(
            user_ids, start=start, end=end, expires_in=60 * keep_minutes, zone=time_zone
        )
        lines = [
            f"Held: {span(hold.start, hold.end, time_zone)} ({time_zone}) of {', '.join(hold.users)}.",
            f"Ask the person to confirm this time within {keep_minutes} minutes, then call book_held_time.",
        ]
        return result(lines, {"hold": hold.as_json()})

    @sentences
    def release_hold(self, hold_id: HoldId) -> CallToolResult:
        """Release a hold that the person does not want, so that others get its time."""
        self._almanac().holds.release(hold_id)
        return result(["Released."], {"released": hold_id})

    @sentences
    def book_held_time(
        self,
        hold_id: HoldId,
        user_id: User,
        subject: str,
        confirmed_start: ConfirmedTime,
        confirmed_end: ConfirmedTime,
        confirmed: Confirmed,
        time_zone: TimeZone = "UTC",
        invited: Invited | None = None,
        description: str = "",
        account: Literal["google", "microsoft"] | None = None,
    ) -> CallToolResult:
        """Create an event in the calendar of one user, in held time that the person has confirmed.

        A repeated call with the same hold creates no second event.
        """
        if not confirmed:
            return error_result(NOT_CONFIRMED)
        almanac = self._almanac()
        start, end = _local(confirmed_start, time_zone), _local(confirmed_end, time_zone)
        event = almanac.events.create(
            user_id,
            account or _provider(almanac, user_id),
            "primary",
            start=start,
            end=end,
            hold=hold_id,
            idempotency_key=f"assistant-{hold_id}",
            subject=subject,
            description=description,
            attendees=[{"email": each} for each in invited or ()],
            send_notifications=bool(invited),
        )
        with_whom = f", invited: {', '.join(invited)}" if invited else ""
        line = f"Booked: {span(event.start, event.end, time_zone)} ({time_zone}), {subject}{with_whom}."
        return result([line], {"event": {"id": event.id, "userId": user_id}})


def _local(moment: str, zone: str) -> datetime:
    """:raise ValueError: if it is no time, or the zone is unknown"""
    found = datetime.fromisoformat(moment)
    try:
        return found if found.tzinfo else found.replace(tzinfo=ZoneInfo(zone))
    except ZoneInfoNotFoundError as error:
        raise ValueError(f"time_zone must be a time zone name, not {zone}") from error


def _provider(almanac: Almanac, user_id: str) -> Provider:
    """The provider of the first account that is connected.

    :raise ValueError: if there is none
    """
    for each in almanac.users.get(user_id).oauth_connections or ():
        if each.alive:
            return each.provider
    raise ValueError(f"{user_id} has no connected account")
