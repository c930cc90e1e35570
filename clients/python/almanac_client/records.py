"""Request and response types: the schemas of Almanac's OpenAPI document, by their names and fields.

They are TypedDicts because they are the JSON itself: a million slots are not copied into objects, fields that
a later server adds break nothing, and a test compares them with the document. Timestamps are text in UTC,
which ``datetime.fromisoformat`` parses.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Provider = Literal["google", "microsoft"]
AccessLevel = Literal["free-busy", "read", "write", "edit"]
AccessRole = Literal["freeBusyReader", "reader", "writer", "owner"]
AccessType = Literal["offline", "online"]
ConnectionType = Literal["oauth2"]
DeliveryStatus = Literal["pending", "delivered", "failed"]
EntryStatus = Literal["ok", "error"]
ErrorCode = Literal["outcomeUnknown"]
OnFailure = Literal["fail", "partial"]
Relation = Literal["oauthConnections", "organizations"]
ResponseStatus = Literal["accepted", "declined", "needsAction", "tentative"]
SlotAlignment = Literal["start", "clock"]
WebhookEventType = Literal["calendar.changed", "connection.expired", "connection.restored"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
FailureReason = Literal[
    "accessDenied",
    "authorizationInvalid",
    "insufficientScopes",
    "invalidCalendarId",
    "mailboxUnavailable",
    "notFound",
    "providerError",
    "providerNotConfigured",
    "rateLimited",
    "tooManyCalendars",
]
Verdict = Literal[
    "outsideRange",
    "outsideWindow",
    "busy",
    "padding",
    "tooManyOverlaps",
    "offered",
    "tooShort",
    "remainder",
    "betweenSlots",
    "calendarUnread",
    "noCalendars",
]


class FailedCalendar(TypedDict):
    """A calendar that could not be read."""

    calendarId: str
    provider: Provider
    reason: FailureReason
    message: str


class FailedUser(TypedDict):
    """A member with an unreadable calendar; ``failedCalendars`` is empty when no calendar could be read."""

    customId: str
    reason: FailureReason
    message: str
    failedCalendars: list[FailedCalendar]


class Connection(TypedDict):
    """A provider account of a user."""

    provider: Provider
    email: str | None
    alive: bool
    expiresAt: str | None
    scope: list[str]
    type: ConnectionType
    accessToken: str | None
    refreshToken: str | None


class Member(TypedDict):
    """A user as a member of an organization."""

    id: str
    createdAt: str


class Organization(TypedDict):
    """A workspace and its members."""

    slug: str
    name: str | None
    createdAt: str
    members: list[Member]
    membersTruncated: NotRequired[bool]
    memberCount: NotRequired[int]


class User(TypedDict):
    """A user; the relations are those requested with ``include``."""

    id: str
    createdAt: str
    oauthConnections: NotRequired[list[Connection]]
    organizations: NotRequired[list[Organization]]


class ProviderLink(TypedDict):
    """A link to one provider's consent page."""

    provider: Provider
    link: str


class Calendar(TypedDict):
    """A calendar of one of the user's accounts."""

    id: str
    provider: Provider
    subject: str
    accessRole: AccessRole
    primary: bool
    selected: bool
    backgroundColor: str
    foregroundColor: str
    timeZone: str
    original: dict[str, Any] | None


class Attendee(TypedDict):
    """An attendee of an event."""

    email: str
    self: bool
    responseStatus: ResponseStatus
    original: dict[str, Any] | None


class _EventFields(TypedDict):
    subject: str
    description: str
    location: str
    start: str
    end: str
    allDay: NotRequired[bool]
    meetingUrl: NotRequired[str]


class Event(_EventFields):
    """An event of one calendar."""

    id: str
    calendarId: str
    provider: Provider
    metaId: NotRequired[str]
    attendees: list[Attendee]
    original: dict[str, Any] | None


class UnifiedAttendee(TypedDict):
    """An attendee of a unified event."""

    email: str
    self: bool
    originals: list[dict[str, Any] | None]


class EventCopy(TypedDict):
    """The location of one copy of a unified event."""

    id: str
    calendarId: str
    provider: Provider


class UnifiedEvent(_EventFields):
    """One event in several accounts, with the fields of its first copy."""

    metaId: str
    attendees: list[UnifiedAttendee]
    originals: list[dict[str, Any] | None]
    events: list[EventCopy]


class AttendeeBody(TypedDict):
    """An attendee to invite."""

    email: str


class MeetingUrl(TypedDict):
    """The address of an external online meeting."""

    url: str


class BusyPeriod(TypedDict):
    """A busy period; the end is exclusive."""

    start: str
    end: str


class Slot(TypedDict):
    """A free period of exactly the slot's duration."""

    start: str
    end: str


class MemberSlot(Slot):
    """A slot of one member."""

    userId: str


class Options(TypedDict):
    """The options that the slots were computed with."""

    start: str
    end: str
    maxOverlaps: int
    padding: int
    slotDuration: int
    earliestTimeEachDay: NotRequired[str]
    latestTimeEachDay: NotRequired[str]
    slotStep: NotRequired[int]
    align: NotRequired[SlotAlignment]


class UserSlots(TypedDict):
    """Slots of one user."""

    availableSlots: list[Slot]
    options: Options


class OrganizationSlots(TypedDict):
    """Slots of all members."""

    availableSlots: list[MemberSlot]
    options: Options


class Window(TypedDict):
    """A weekly schedule window, in local times like ``09:00``."""

    days: list[Weekday]
    start: str
    end: str


class WindowAnswer(TypedDict):
    """A weekly schedule window, as requested."""

    days: list[Weekday]
    start: str
    end: str


class WantedUser(TypedDict):
    """One of several users; its own calendars and schedules take precedence over the request's."""

    id: str
    calendarIds: NotRequired[list[str]]
    schedules: NotRequired[list[Window] | None]


class UserEntry(TypedDict):
    """One of several users: slots (``ok``), or why there are none (``error``)."""

    userId: str
    status: EntryStatus
    availableSlots: NotRequired[list[Slot]]
    options: NotRequired[Options]
    calendarIds: NotRequired[list[str]]
    schedules: NotRequired[list[WindowAnswer]]
    error: NotRequired[str]
    reason: NotRequired[FailureReason]
    failedCalendars: list[FailedCalendar]


class Blocking(BusyPeriod):
    """A busy period that, with its padding, covers the time."""

    calendarId: str
    provider: Provider
    email: str | None
    paddedStart: str
    paddedEnd: str


class _Explained(TypedDict):
    offered: bool
    reason: Verdict
    sentence: str
    slot: Slot | None
    startsSlot: bool
    free: BusyPeriod | None
    window: BusyPeriod | None
    nextSlot: Slot | None
    previousSlot: Slot | None
    blockedBy: list[Blocking]


class UserExplained(_Explained):
    """Why a user is, or is not, offered at the time."""

    at: str
    options: Options


class MemberExplained(_Explained):
    """Why a member is, or is not, offered at the time."""

    userId: str


class OrganizationExplained(TypedDict):
    """The members who are offered at the time, and the reasons for every member."""

    at: str
    offeredBy: list[str]
    members: list[MemberExplained]
    options: Options


class Webhook(TypedDict):
    """An endpoint that receives events."""

    id: str
    url: str
    events: list[WebhookEventType]
    createdAt: str
    disabledAt: str | None


class NewWebhook(Webhook):
    """An endpoint with its signing secret."""

    secret: str


class WebhookData(TypedDict):
    """The subject of an event."""

    userId: str
    provider: Provider
    calendarId: NotRequired[str]


class WebhookEvent(TypedDict):
    """The body of a webhook."""

    type: WebhookEventType
    timestamp: str
    data: WebhookData


class Delivery(TypedDict):
    """The delivery of an event to an endpoint."""

    id: str
    status: DeliveryStatus
    payload: WebhookEvent
    attempts: int
    createdAt: str
    lastAttemptAt: str | None
    nextAttemptAt: str | None
    deliveredAt: str | None
    lastStatus: int | None
    lastError: str | None
