"""Parts of request bodies. Keys are snake_case; the client sends them under the names of the API."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from datetime import time
from typing import Literal, NotRequired, TypedDict

from almanac_client.words import Weekday


class AttendeeBody(TypedDict):
    """An attendee to invite, or a resource such as a room."""

    email: str
    name: NotRequired[str]
    optional: NotRequired[bool]
    resource: NotRequired[bool]


class QuotasBody(TypedDict):
    """Quotas of an organization to change; missing ones stay unchanged, None is the installation's."""

    requests_per_minute: NotRequired[int | None]
    waiting_reads: NotRequired[int | None]
    waiting_writes: NotRequired[int | None]
    held_users: NotRequired[int | None]
    webhook_turns: NotRequired[int | None]


class MeetingUrl(TypedDict):
    """The address of an external online meeting."""

    url: str


class MemberImport(TypedDict):
    """A member to read by the grant of an organization, and the address of the mailbox."""

    user_id: str
    email: str


class Window(TypedDict):
    """A weekly schedule window, in local times like ``time(9)`` or ``"09:00"``."""

    days: Sequence[Weekday]
    start: time | str
    end: time | str


class DateWindow(TypedDict):
    """A window on one date, in local times like ``time(9)`` or ``"09:00"``."""

    start: time | str
    end: time | str


class Override(TypedDict):
    """A date with windows of its own instead of the weekly ones; without any it is closed."""

    date: dt.date | str
    windows: Sequence[DateWindow]


class UserCalendars(TypedDict):
    """A user, and the calendars that count instead of those of the route."""

    id: str
    calendar_ids: NotRequired[Sequence[str]]


class WantedUser(TypedDict):
    """One of several users; its calendars, schedules and overrides take precedence over the request's."""

    id: str
    calendar_ids: NotRequired[Sequence[str]]
    schedules: NotRequired[Sequence[Window] | None]
    overrides: NotRequired[Sequence[Override] | None]
    # The zone of the schedules and the overrides; default: that of the request.
    time_zone: NotRequired[str | None]


class Group(TypedDict):
    """A group: ``users``, or all members of an ``organization``; ``required`` of them have to be free.

    Its schedules and overrides take precedence over the request's.
    """

    users: NotRequired[Sequence[str]]
    organization: NotRequired[str]
    required: NotRequired[Literal["all"] | int]
    schedules: NotRequired[Sequence[Window] | None]
    overrides: NotRequired[Sequence[Override] | None]
    time_zone: NotRequired[str | None]


class CountingCalendar(TypedDict):
    """A calendar that counts for a user."""

    connection_id: str
    calendar_id: str


class Holidays(TypedDict):
    """Whose public holidays close days: an ISO 3166 country, and perhaps a subdivision of it."""

    country: str
    subdivision: NotRequired[str]


class ProfileBody(TypedDict):
    """What counts for a user on every route of scheduling; None: not stated."""

    time_zone: NotRequired[str | None]
    schedules: NotRequired[Sequence[Window] | None]
    overrides: NotRequired[Sequence[Override] | None]
    calendars: NotRequired[Sequence[CountingCalendar] | None]
    padding_before: NotRequired[int | None]
    padding_after: NotRequired[int | None]
    minimum_notice: NotRequired[int | None]
    holidays: NotRequired[Holidays | None]
