"""The closed lists of words of the API, by their names in the OpenAPI document."""

from __future__ import annotations

from typing import Literal

Provider = Literal["google", "microsoft"]
AccessLevel = Literal["free-busy", "read", "write", "edit"]
AccessRole = Literal["freeBusyReader", "reader", "writer", "owner"]
AccessType = Literal["offline", "online"]
ConnectionType = Literal["oauth2", "delegated"]
DeliveryStatus = Literal["pending", "delivered", "failed"]
EntryStatus = Literal["ok", "error"]
EventStatus = Literal["confirmed", "tentative", "cancelled"]
GrantType = Literal["serviceAccount", "application"]
OnFailure = Literal["fail", "partial"]
ReleaseReason = Literal["deleted", "used"]
Relation = Literal["oauthConnections", "organizations"]
ResponseStatus = Literal["accepted", "declined", "needsAction", "tentative"]
SentEventType = Literal[
    "calendar.changed",
    "connection.expired",
    "connection.restored",
    "grant.expired",
    "grant.restored",
    "hold.created",
    "hold.expired",
    "hold.released",
    "webhook.test",
]
ShowAs = Literal["busy", "free"]
SlotAlignment = Literal["start", "clock"]
WebhookEventType = Literal[
    "calendar.changed",
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
    "slotTaken",
    "holdInUse",
    "eventChanged",
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
Quota = Literal["waitingReads", "waitingWrites", "heldUsers", "bodyBytes"]
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
