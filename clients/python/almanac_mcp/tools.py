"""The tools of an assistant. Each tool only reads, and first names calendars that could not be read."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import islice
from typing import Annotated, Any, ParamSpec, get_args

from mcp.types import CallToolResult
from pydantic import Field

from almanac_client import Almanac, AlmanacError, Answer
from almanac_client.bodies import Window
from almanac_client.parameters import SlotOptions
from almanac_client.records import BusyPeriod, MemberSlot, Slot
from almanac_client.words import Weekday
from almanac_mcp.results import error_result, failures, result, some, span, unread

P = ParamSpec("P")

User = Annotated[str, Field(description="The id of a user, as returned by list_users.")]
Users = Annotated[list[str], Field(description="Ids of users.", min_length=1, max_length=100)]
Organization = Annotated[str, Field(description="The slug of an organization, as list_organizations does.")]
Start = Annotated[str, Field(description="ISO 8601 date or time, local to time_zone: 2026-11-23.")]
End = Annotated[str, Field(description="The same, not included: the day after, for a whole day.")]
Moment = Annotated[str, Field(description="ISO 8601 time, local to time_zone: 2026-11-23T14:00.")]
TimeZone = Annotated[str, Field(description="IANA name, like Europe/Berlin.")]
Minutes = Annotated[int, Field(description="How long a meeting is, in minutes.", ge=1, le=10_080)]
Padding = Annotated[int, Field(description="Minutes kept free around meetings.", ge=0, le=10_080)]
Clock = Annotated[str | None, Field(description="HH:MM each day, local to time_zone.")]
Most = Annotated[int, Field(description="How many to tell of; the count is always whole.", ge=1, le=500)]


def sentences(tool: Callable[P, CallToolResult]) -> Callable[P, CallToolResult]:
    """Make a tool return Almanac's error sentence when it fails."""

    @wraps(tool)
    def telling(*args: P.args, **named: P.kwargs) -> CallToolResult:
        try:
            return tool(*args, **named)
        except (AlmanacError, ValueError) as error:
            return error_result(str(error))

    return telling


class Tools:
    """The tools, on the client of the caller."""

    def __init__(self, almanac: Callable[[], Almanac]) -> None:
        self._almanac = almanac

    def every(self) -> list[Callable[..., CallToolResult]]:
        """All tools."""
        return [
            self.find_free_slots_of_user,
            self.find_free_slots_of_users,
            self.find_free_slots_of_organization,
            self.busy_times_of_user,
            self.busy_times_of_organization,
            self.why_user_is_not_offered,
            self.why_organization_is_not_offered,
            self.working_hours_of_user,
            self.list_users,
            self.list_organizations,
        ]

    @sentences
    def find_free_slots_of_user(
        self,
        user_id: User,
        start: Start,
        end: End,
        time_zone: TimeZone = "UTC",
        slot_minutes: Minutes = 30,
        padding_minutes: Padding = 0,
        earliest: Clock = None,
        latest: Clock = None,
        most: Most = 50,
    ) -> CallToolResult:
        """When one user is free. If any calendar cannot be read, the result is an error, not slots."""
        options = _daily(time_zone, slot_minutes, padding_minutes, earliest, latest)
        answer = self._almanac().scheduling.user(user_id, start=start, end=end, **options)
        slots = answer.data.available_slots
        lines = some(slots, most, lambda slot: _span(slot, time_zone), "free slot")
        shown = [slot.as_json() for slot in slots[:most]]
        return result(lines, {"total": len(slots), "slots": shown, "complete": True})

    @sentences
    def find_free_slots_of_users(
        self,
        user_ids: Users,
        start: Start,
        end: End,
        time_zone: TimeZone = "UTC",
        slot_minutes: Minutes = 30,
        padding_minutes: Padding = 0,
        earliest: Clock = None,
        latest: Clock = None,
        most: Most = 50,
    ) -> CallToolResult:
        """When each of several users is free. Users who could not be read are named first."""
        options = _slots(time_zone, slot_minutes, padding_minutes)
        schedules = _every_day(earliest, latest)
        answer = self._almanac().scheduling.users(
            user_ids, start=start, end=end, schedules=schedules, **options
        )
        slots = [
            MemberSlot(slot.start, slot.end, entry.user_id)
            for entry in answer.partial
            for slot in entry.available_slots or ()
        ]
        slots.sort(key=lambda slot: (slot.start, slot.user_id))
        return _of_members(slots, answer, time_zone, most)

    @sentences
    def find_free_slots_of_organization(
        self,
        organization: Organization,
        start: Start,
        end: End,
        time_zone: TimeZone = "UTC",
        slot_minutes: Minutes = 30,
        padding_minutes: Padding = 0,
        earliest: Clock = None,
        latest: Clock = None,
        most: Most = 50,
    ) -> CallToolResult:
        """When each member of an organization is free. Members who could not be read are named first."""
        options = _daily(time_zone, slot_minutes, padding_minutes, earliest, latest)
        answer = self._almanac().scheduling.organization(organization, start=start, end=end, **options)
        return _of_members(answer.partial.available_slots, answer, time_zone, most)

    @sentences
    def busy_times_of_user(
        self, user_id: User, start: Start, end: End, time_zone: TimeZone = "UTC", most: Most = 50
    ) -> CallToolResult:
        """When one user is busy, over all calendars. Calendars that could not be read are named first."""
        answer = self._almanac().busy.user(user_id, start=start, end=end, zone=time_zone)
        return _busy(answer.partial, answer, time_zone, most)

    @sentences
    def busy_times_of_organization(
        self, organization: Organization, start: Start, end: End, time_zone: TimeZone = "UTC", most: Most = 50
    ) -> CallToolResult:
        """When any member of an organization is busy. Members who could not be read are named first."""
        answer = self._almanac().busy.organization(organization, start=start, end=end, zone=time_zone)
        return _busy(answer.partial, answer, time_zone, most)

    @sentences
    def why_user_is_not_offered(
        self,
        user_id: User,
        at: Moment,
        start: Start,
        end: End,
        time_zone: TimeZone = "UTC",
        slot_minutes: Minutes = 30,
        padding_minutes: Padding = 0,
        earliest: Clock = None,
        latest: Clock = None,
    ) -> CallToolResult:
        """Why one user is, or is not, free for a slot at a time, asked with the parameters of the slots."""
        options = _daily(time_zone, slot_minutes, padding_minutes, earliest, latest)
        answer = self._almanac().explain.user(user_id, at=at, start=start, end=end, **options)
        explained = answer.data
        return result([*unread(answer), explained.sentence], {**explained.as_json(), **failures(answer)})

    @sentences
    def why_organization_is_not_offered(
        self,
        organization: Organization,
        at: Moment,
        start: Start,
        end: End,
        time_zone: TimeZone = "UTC",
        slot_minutes: Minutes = 30,
        padding_minutes: Padding = 0,
        earliest: Clock = None,
        latest: Clock = None,
    ) -> CallToolResult:
        """Which members of an organization are free for a slot at a time, and why the others are not."""
        options = _daily(time_zone, slot_minutes, padding_minutes, earliest, latest)
        answer = self._almanac().explain.organization(organization, at=at, start=start, end=end, **options)
        explained = answer.data
        lines = [f"{each.user_id}: {each.sentence}" for each in explained.members]
        return result([*unread(answer), *lines], {**explained.as_json(), **failures(answer)})

    @sentences
    def working_hours_of_user(self, user_id: User) -> CallToolResult:
        """When a user works, in which time zone, and which calendars count, as far as it is stated."""
        profile = self._almanac().users.availability(user_id)
        stated = {name: each for name, each in profile.as_json().items() if each is not None}
        week = [f"{', '.join(each.days)}: {each.start}-{each.end}" for each in profile.schedules or ()]
        if profile.schedules is None:
            week = ["The week is not stated: any time counts."]
        closed = [f"{each.date}: closed" for each in profile.overrides or () if not each.windows]
        zone = profile.time_zone or "the time zone of the main calendar"
        return result([f"Hours in {zone}:", *(week or ["No hours in any week."]), *closed], stated)

    @sentences
    def list_users(self, most: Most = 100) -> CallToolResult:
        """The users, by id."""
        users = [each.id for each in islice(self._almanac().users.list(), most)]
        return result([f"{len(users)} users:", ", ".join(users)], {"users": users})

    @sentences
    def list_organizations(self, most: Most = 100) -> CallToolResult:
        """The organizations, each with the ids of its members."""
        found: list[dict[str, Any]] = [
            {
                "slug": each.slug,
                "name": each.name,
                "members": [member.id for member in each.members],
            }
            for each in islice(self._almanac().organizations.list(), most)
        ]
        lines = [f"{each['slug']}: {', '.join(each['members']) or 'nobody'}" for each in found]
        return result([f"{len(found)} organizations and their members:", *lines], {"organizations": found})


def _slots(time_zone: str, slot_minutes: int, padding_minutes: int) -> SlotOptions:
    return {"zone": time_zone, "slot_duration": slot_minutes, "padding": padding_minutes}


def _daily(
    time_zone: str, slot_minutes: int, padding_minutes: int, earliest: str | None, latest: str | None
) -> SlotOptions:
    options: SlotOptions = {
        "zone": time_zone,
        "slot_duration": slot_minutes,
        "padding": padding_minutes,
    }
    if earliest is not None:
        options["earliest_time_each_day"] = earliest
    if latest is not None:
        options["latest_time_each_day"] = latest
    return options


def _every_day(earliest: str | None, latest: str | None) -> list[Window] | None:
    """The daily window as a weekly schedule, for requests with a body."""
    if earliest is None and latest is None:
        return None
    return [{"days": list(get_args(Weekday)), "start": earliest or "00:00", "end": latest or "00:00"}]


def _of_members(slots: list[MemberSlot], answer: Answer[Any], zone: str, most: int) -> CallToolResult:
    lines = some(slots, most, lambda slot: f"{_span(slot, zone)} {slot.user_id}", "free slot")
    shown = [slot.as_json() for slot in slots[:most]]
    return result([*unread(answer), *lines], {"total": len(slots), "slots": shown, **failures(answer)})


def _busy(periods: list[BusyPeriod], answer: Answer[Any], zone: str, most: int) -> CallToolResult:
    lines = some(periods, most, lambda period: _span(period, zone), "busy period")
    shown = [period.as_json() for period in periods[:most]]
    return result([*unread(answer), *lines], {"total": len(periods), "busy": shown, **failures(answer)})


def _span(stretch: Slot | MemberSlot | BusyPeriod, zone: str) -> str:
    return span(stretch.start, stretch.end, zone)
