"""What Almanac takes and answers: the schemas of its OpenAPI document, by their names and fields.

They are TypedDicts because they are the JSON itself: a million slots are not copied into objects first, a
field that a later server adds breaks nothing, and a test compares them with the document. Timestamps are text
in UTC, which ``datetime.fromisoformat`` reads.
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
    """A member of whom at least one calendar could not be read; no calendars when nothing could."""

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
    """A user; the relations are those asked for with ``include``."""

    id: str
    createdAt: str
    oauthConnections: NotRequired[list[Connection]]
    organizations: NotRequired[list[Organization]]


class ProviderLink(TypedDict):
    """Where a person goes to consent, at one of the providers."""

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
    """Somebody invited."""

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
    """Somebody invited to a unified event."""

    email: str
    self: bool
    originals: list[dict[str, Any] | None]


class EventCopy(TypedDict):
    """Where a copy of a unified event is."""

    id: str
    calendarId: str
    provider: Provider


class UnifiedEvent(_EventFields):
    """One event in several accounts, told as its first copy tells it."""

    metaId: str
    attendees: list[UnifiedAttendee]
    originals: list[dict[str, Any] | None]
    events: list[EventCopy]


class AttendeeBody(TypedDict):
    """Somebody to invite."""

    email: str


class MeetingUrl(TypedDict):
    """The address of an online meeting elsewhere."""

    url: str


class BusyPeriod(TypedDict):
    """A stretch of busy time, its end not included."""

    start: str
    end: str


class Slot(TypedDict):
    """A free stretch of exactly the slot's duration."""

    start: str
    end: str


class MemberSlot(Slot):
    """A slot of one member."""

    userId: str


class Options(TypedDict):
    """What the slots were computed with."""

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
    """A weekly schedule window, as it was asked for."""

    days: list[Weekday]
    start: str
    end: str


class WantedUser(TypedDict):
    """One of several users; calendars and schedules of its own go before the request's."""

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
    """A busy period that covers the moment once it is padded."""

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
    """Why a user is, or is not, offered at the moment."""

    at: str
    options: Options


class MemberExplained(_Explained):
    """Why a member is, or is not, offered at the moment."""

    userId: str


class OrganizationExplained(TypedDict):
    """Who is offered at the moment, and why every member is, or is not."""

    at: str
    offeredBy: list[str]
    members: list[MemberExplained]
    options: Options


class Webhook(TypedDict):
    """An endpoint that hears of events."""

    id: str
    url: str
    events: list[WebhookEventType]
    createdAt: str
    disabledAt: str | None


class NewWebhook(Webhook):
    """An endpoint with the secret that signs what is sent there."""

    secret: str


class WebhookData(TypedDict):
    """What an event is about."""

    userId: str
    provider: Provider
    calendarId: NotRequired[str]


class WebhookEvent(TypedDict):
    """The body of a webhook."""

    type: WebhookEventType
    timestamp: str
    data: WebhookData


class Delivery(TypedDict):
    """An event on its way to an endpoint."""

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
