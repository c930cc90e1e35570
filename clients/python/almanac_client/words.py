"""The closed lists of words of the API, by their names in the OpenAPI document."""

from __future__ import annotations

from typing import Literal

Provider = Literal["google", "microsoft", "caldav", "ics"]
ConsentProvider = Literal["google", "microsoft"]
DirectoryKind = Literal["user", "room"]
AccessLevel = Literal["free-busy", "read", "write", "edit"]
ChangeType = Literal["updated", "deleted"]
AccessRole = Literal["freeBusyReader", "reader", "writer", "owner"]
AccessType = Literal["offline", "online"]
ConnectionType = Literal["oauth2", "delegated", "basic", "feed"]
DeliveryStatus = Literal["pending", "delivered", "failed"]
EntryStatus = Literal["ok", "error"]
EventStatus = Literal["confirmed", "tentative", "cancelled"]
GrantType = Literal["serviceAccount", "application"]
InvitationResponse = Literal["accepted", "declined", "tentative"]
OnFailure = Literal["fail", "partial"]
ReleaseReason = Literal["deleted", "used"]
Relation = Literal["oauthConnections", "organizations"]
ResponseStatus = Literal["accepted", "declined", "needsAction", "tentative"]
SentEventType = Literal[
    "calendar.changed",
    "event.created",
    "event.updated",
    "event.deleted",
    "connection.expired",
    "connection.restored",
    "grant.expired",
    "grant.restored",
    "hold.created",
    "hold.expired",
    "hold.released",
    "webhook.test",
]
ShowAs = Literal["busy", "free", "tentative", "outOfOffice", "workingElsewhere"]
SlotAlignment = Literal["start", "clock"]
# The part of a series that a change or a deletion of an occurrence concerns.
SeriesScope = Literal["occurrence", "following", "series"]
ProfileUse = Literal["apply", "ignore"]
TokenConnectionType = Literal["oauth2", "delegated"]
UserOrder = Literal["request", "leastBusy"]
Visibility = Literal["default", "public", "private"]
WebhookEventType = Literal[
    "calendar.changed",
    "event.created",
    "event.updated",
    "event.deleted",
    "connection.expired",
    "connection.restored",
    "grant.expired",
    "grant.restored",
    "hold.created",
    "hold.expired",
    "hold.released",
]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
ErrorCode = Literal[
    "validationFailed",
    "malformedBody",
    "rangeTooLarge",
    "invalidCalendarId",
    "tooManyCalendars",
    "eventRefused",
    "consentFailed",
    "accountMismatch",
    "calendarAccessNotGranted",
    "grantRefused",
    "apiKeyMissing",
    "apiKeyInvalid",
    "metricsTokenInvalid",
    "authorizationInvalid",
    "keyReadOnly",
    "keyMayNotManageKeys",
    "keyExceedsManager",
    "keyMayNotShowTokens",
    "keyBoundToOrganization",
    "userInOtherOrganizations",
    "metricsForbidden",
    "accessDenied",
    "mailboxUnavailable",
    "insufficientScopes",
    "userNotFound",
    "organizationNotFound",
    "connectionNotFound",
    "grantNotFound",
    "noConnectedCalendars",
    "organizationHasNoMembers",
    "calendarNotFound",
    "eventNotFound",
    "memberNotFound",
    "holdNotFound",
    "webhookNotFound",
    "keyNotFound",
    "deliveryNotFound",
    "channelNotFound",
    "notFound",
    "providerNotConfigured",
    "pathNotFound",
    "methodNotAllowed",
    "requestTimeout",
    "userExists",
    "organizationExists",
    "connectionDelegated",
    "webhookPaused",
    "webhookDisabled",
    "eventExists",
    "eventCopiesDiffer",
    "metaIdInUse",
    "idempotencyKeyInUse",
    "tooManyWebhooks",
    "tooManyKeys",
    "slotTaken",
    "holdInUse",
    "eventChanged",
    "availabilityChanged",
    "cursorExpired",
    "bodyTooLarge",
    "unsupportedMediaType",
    "bodyCompressed",
    "idempotencyKeyReused",
    "eventUnreadable",
    "keyRateLimited",
    "quotaExceeded",
    "rateLimited",
    "internalError",
    "providerError",
    "outcomeUnknown",
    "serviceUnavailable",
    "overloaded",
    "noWorker",
]
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
GroupVerdict = Literal[
    "outsideRange",
    "outsideWindow",
    "tooSoon",
    "offered",
    "beyondLimit",
    "tooShort",
    "remainder",
    "betweenSlots",
    "notEnoughFree",
]
Quota = Literal["waitingReads", "waitingWrites", "heldUsers", "bodyBytes", "requestsPerMinute"]
Verdict = Literal[
    "outsideRange",
    "outsideWindow",
    "tooSoon",
    "busy",
    "padding",
    "tooManyOverlaps",
    "offered",
    "beyondLimit",
    "tooShort",
    "remainder",
    "betweenSlots",
    "calendarUnread",
    "noCalendars",
]
