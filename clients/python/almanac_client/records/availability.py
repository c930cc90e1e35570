"""Busy periods, slots, explanations, and the calendars and users that could not be read."""

from __future__ import annotations

import datetime as dt
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import field

from almanac_client.records.base import Record

if TYPE_CHECKING:
    from almanac_client.words import (
        EntryStatus,
        ErrorCode,
        FailureReason,
        GroupVerdict,
        Provider,
        SlotAlignment,
        Verdict,
        Weekday,
    )
else:
    # A newer server may use further words, so any text is decoded.
    EntryStatus = ErrorCode = FailureReason = GroupVerdict = Provider = SlotAlignment = Verdict = Weekday = (
        str
    )


class FailedCalendar(Record):
    """A calendar that could not be read."""

    calendar_id: str
    provider: Provider
    connection_id: str
    reason: FailureReason
    message: str
    code: ErrorCode


class FailedUser(Record):
    """A member with an unreadable calendar; ``failed_calendars`` is empty when no calendar could be read."""

    custom_id: str
    user_id: str
    reason: FailureReason
    message: str
    failed_calendars: list[FailedCalendar]
    code: ErrorCode


# There may be a million of the next three; they hold no references, so the garbage collector skips them.
class BusyPeriod(Record, gc=False):
    """A busy period; the end is exclusive."""

    start: datetime
    end: datetime


class Slot(Record, gc=False):
    """A free period of exactly the slot's duration."""

    start: datetime
    end: datetime


class MemberSlot(Record, gc=False):
    """A slot of one member."""

    start: datetime
    end: datetime
    user_id: str


class DateWindowAnswer(Record):
    """A window on one date, as requested."""

    start: str
    end: str


class OverrideAnswer(Record):
    """The windows of one date, as requested."""

    date: dt.date
    windows: list[DateWindowAnswer]


class Options(Record, kw_only=True):
    """The options that the slots were computed with."""

    start: datetime
    end: datetime
    max_overlaps: int
    padding: int
    slot_duration: int
    time_zone: str
    earliest_time_each_day: str | None = None
    latest_time_each_day: str | None = None
    slot_step: int | None = None
    align: SlotAlignment | None = None
    padding_before: int | None = None
    padding_after: int | None = None
    minimum_notice: int | None = None
    limit: int | None = None
    overrides: list[OverrideAnswer] | None = None
    # True where the stored availability of a user applied.
    profile: bool | None = None


class CountingCalendarAnswer(Record):
    """A calendar that counts for a user."""

    connection_id: str
    calendar_id: str


class HolidaysAnswer(Record):
    """Whose public holidays close days."""

    country: str
    subdivision: str | None = None


class Profile(Record, kw_only=True):
    """What counts for a user on every route of scheduling; None: not stated."""

    time_zone: str | None
    schedules: list[WindowAnswer] | None
    overrides: list[OverrideAnswer] | None
    calendars: list[CountingCalendarAnswer] | None
    padding_before: int | None
    padding_after: int | None
    minimum_notice: int | None
    holidays: HolidaysAnswer | None


class UserSlots(Record):
    """Slots of one user."""

    available_slots: list[Slot]
    options: Options


class OrganizationSlots(Record):
    """Slots of all members."""

    available_slots: list[MemberSlot]
    options: Options


class SharedSlot(Record):
    """A slot in which enough users of every group are free, and all users who are."""

    start: datetime
    end: datetime
    users: list[str]


class GroupSlots(Record):
    """The slots that all groups share."""

    available_slots: list[SharedSlot]
    options: Options


class WindowAnswer(Record):
    """A weekly schedule window, as requested."""

    days: list[Weekday]
    start: str
    end: str


class UserEntry(Record, kw_only=True):
    """One of several users: slots (``ok``), or why there are none (``error``).

    ``available_slots`` of a user without an answer is None, never an empty list.
    """

    user_id: str
    status: EntryStatus
    available_slots: list[Slot] | None = None
    options: Options | None = None
    calendar_ids: list[str] | None = None
    schedules: list[WindowAnswer] | None = None
    error: str | None = None
    code: ErrorCode | None = None
    reason: FailureReason | None = None
    failed_calendars: list[FailedCalendar]


class UserBusyEntry(Record, kw_only=True):
    """One of several users: busy periods (``ok``), or why there are none (``error``).

    ``busy`` of a user without an answer is None, never an empty list.
    """

    user_id: str
    status: EntryStatus
    busy: list[BusyPeriod] | None = None
    calendar_ids: list[str] | None = None
    error: str | None = None
    code: ErrorCode | None = None
    reason: FailureReason | None = None
    failed_calendars: list[FailedCalendar]


class Blocking(Record):
    """A busy period that, with its padding, covers the time."""

    start: datetime
    end: datetime
    calendar_id: str
    provider: Provider
    connection_id: str
    email: str | None
    padded_start: datetime
    padded_end: datetime


class HeldBlocking(Record):
    """Held time that, with the padding, covers the time."""

    start: datetime
    end: datetime
    padded_start: datetime
    padded_end: datetime
    expires_at: datetime


class Hold(Record):
    """Time of users that is kept free until it expires."""

    id: str
    users: list[str]
    start: datetime
    end: datetime
    expires_at: datetime
    note: str | None = None


class BusyCalendar(Record):
    """A calendar that is busy."""

    connection_id: str
    calendar_id: str


class Conflict(Record):
    """A part of the time that is taken, for one user.

    ``calendars`` are the busy ones, where those of the user were named; ``reason`` is given where the user's
    hours or notice are the reason.
    """

    user_id: str
    start: datetime
    end: datetime
    calendars: list[BusyCalendar] | None = None
    reason: str | None = None


class _Explained(Record, kw_only=True):
    offered: bool
    reason: Verdict
    sentence: str
    slot: Slot | None
    starts_slot: bool
    free: BusyPeriod | None
    window: BusyPeriod | None
    next_slot: Slot | None
    previous_slot: Slot | None
    blocked_by: list[Blocking]
    held_by: list[HeldBlocking] = field(default_factory=list)


class UserExplained(_Explained):
    """Why a user is, or is not, offered at the time."""

    at: datetime
    options: Options


class UserExplainedEntry(Record, kw_only=True):
    """One of several users: the explanation (``ok``), or why there is none (``error``)."""

    user_id: str
    status: EntryStatus
    at: datetime | None = None
    offered: bool | None = None
    # A verdict, or the reason of the error.
    reason: Verdict | FailureReason | None = None
    sentence: str | None = None
    slot: Slot | None = None
    starts_slot: bool | None = None
    free: BusyPeriod | None = None
    window: BusyPeriod | None = None
    next_slot: Slot | None = None
    previous_slot: Slot | None = None
    blocked_by: list[Blocking] | None = None
    held_by: list[HeldBlocking] | None = None
    options: Options | None = None
    error: str | None = None
    code: ErrorCode | None = None
    failed_calendars: list[FailedCalendar]


class MemberExplained(_Explained):
    """Why a member is, or is not, offered at the time."""

    user_id: str


class OrganizationExplained(Record):
    """The members who are offered at the time, and the reasons for every member."""

    at: datetime
    offered_by: list[str]
    members: list[MemberExplained]
    options: Options


class MissingUser(_Explained):
    """A user who is not free for the whole slot; the explanation is about ``at``, the first such moment."""

    user_id: str
    at: datetime


class ExplainedGroup(Record):
    """The users of a group who are free for the whole slot, and the missing ones."""

    required: int
    free: list[str]
    missing: list[MissingUser]


class GroupExplained(Record):
    """Why a time is, or is not, in a slot that all groups share."""

    at: datetime
    offered: bool
    reason: GroupVerdict
    sentence: str
    slot: Slot | None
    groups: list[ExplainedGroup]
    options: Options
