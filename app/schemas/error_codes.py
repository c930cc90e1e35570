"""The error codes of the API, each with its status, its meaning and what a client can do.

A code is never renamed, and its meaning never changes. After a change here,
`python -m app.docs_site.error_codes` writes the table of `docs/reference/errors.md`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Code(StrEnum):
    """Values of the field ``code`` of an error. The meaning and the action are Markdown.

    A failure of a provider has the word of its reason (``providers.errors:Reason``), and a problem with one
    event that of the problem (``providers.errors:Problem``); the members have the same names.
    """

    status: int
    meaning: str
    action: str

    def __new__(cls, word: str, status: int, meaning: str, action: str) -> Self:
        """``status`` is that of every response with this code; ``OUTCOME_UNKNOWN`` may have others."""
        code = str.__new__(cls, word)
        code._value_ = word
        code.status, code.meaning, code.action = status, meaning, action
        return code

    VALIDATION_FAILED = (
        "validationFailed",
        400,
        "A parameter or a field of the body is invalid. `param` is its path, such as `schedules.0.start`",
        "Correct this field",
    )
    MALFORMED_BODY = (
        "malformedBody",
        400,
        "The body is not a JSON object, or it is nested deeper than 1024 levels",
        "Correct the body",
    )
    RANGE_TOO_LARGE = (
        "rangeTooLarge",
        400,
        "The time range, which ends at `param`, is longer than the installation allows or could have too "
        "many slots",
        "Split the range over several requests",
    )
    INVALID_CALENDAR_ID = (
        "invalidCalendarId",
        400,
        "The provider does not accept the calendar id",
        "Use an id from `GET /v1/users/{userId}/calendar`, percent-encoded in paths",
    )
    TOO_MANY_CALENDARS = (
        "tooManyCalendars",
        400,
        "The request names more calendars than the provider reads at once",
        "Request fewer calendars",
    )
    EVENT_REFUSED = (
        "eventRefused",
        400,
        "The provider rejects the content of the event; `error` gives its reason",
        "Correct the event",
    )
    CONSENT_FAILED = (
        "consentFailed",
        400,
        "The consent cannot be finished: its `state` or `code` is unknown, expired or used, or the API key "
        "that made the link is no longer valid",
        "Make a new link and have the user open it",
    )
    ACCOUNT_MISMATCH = (
        "accountMismatch",
        400,
        "The user chose another account than `expectedEmail`",
        "Make a new link and have the user choose this account",
    )
    CALENDAR_ACCESS_NOT_GRANTED = (
        "calendarAccessNotGranted",
        400,
        "The user did not grant access to calendars",
        "Make a new link and have the user leave the calendar permissions selected",
    )

    GRANT_REFUSED = (
        "grantRefused",
        400,
        "The provider refuses the grant of the organization, or it reaches no calendar; `error` says why. "
        "`param` is the field at fault, where the provider says it",
        "Do in the provider's console what `error` says, and send the grant again",
    )

    API_KEY_MISSING = (
        "apiKeyMissing",
        401,
        "The request has no API key in the header `Authorization: Bearer <API_KEY>`",
        "Send the key",
    )
    API_KEY_INVALID = (
        "apiKeyInvalid",
        401,
        "The API key is unknown, revoked or expired",
        "Use another key. The dashboard and `almanac keys create` make one",
    )
    METRICS_TOKEN_INVALID = (
        "metricsTokenInvalid",
        401,
        "The metrics token is missing or wrong (`/metrics` only)",
        "Send `ALMANAC_METRICS_TOKEN` in the header `Authorization`",
    )
    AUTHORIZATION_INVALID = (
        "authorizationInvalid",
        401,
        "The provider rejects the tokens of the account",
        "Make a link and have the user connect the account again",
    )

    KEY_READ_ONLY = (
        "keyReadOnly",
        403,
        "The API key is read-only, and the request writes",
        "Use a key that may write",
    )
    KEY_MAY_NOT_MANAGE_KEYS = (
        "keyMayNotManageKeys",
        403,
        "The API key may not manage API keys",
        "Use a key that was made by `almanac keys create --manage-keys`",
    )
    KEY_EXCEEDS_MANAGER = (
        "keyExceedsManager",
        403,
        "The key would be able to do more than the managing API key. `param` is the field",
        "Ask for no more than the managing key may do, or use `almanac keys create`",
    )
    KEY_MAY_NOT_SHOW_TOKENS = (
        "keyMayNotShowTokens",
        403,
        "The API key may not show tokens",
        "Use a key that may, or send the request without `showToken`",
    )
    KEY_BOUND_TO_ORGANIZATION = (
        "keyBoundToOrganization",
        403,
        "The API key is bound to an organization, and the request needs one that is not",
        "Use a key that is not bound to an organization",
    )
    USER_IN_OTHER_ORGANIZATIONS = (
        "userInOtherOrganizations",
        403,
        "The API key is bound to an organization, and the user belongs to other organizations too",
        "Use a key that is not bound to an organization, or remove the membership instead of the user",
    )
    METRICS_FORBIDDEN = (
        "metricsForbidden",
        403,
        "The request for `/metrics` comes from another machine, and no metrics token is set",
        "Set `ALMANAC_METRICS_TOKEN` and send it",
    )
    ACCESS_DENIED = (
        "accessDenied",
        403,
        "The account may not read this calendar, or may not do this",
        "Have the owner of the calendar share it; for a member of a grant, add the mailbox to the group of "
        "the management scope",
    )
    MAILBOX_UNAVAILABLE = (
        "mailboxUnavailable",
        403,
        "The account has no mailbox or calendar at the provider",
        "Connect another account",
    )
    INSUFFICIENT_SCOPES = (
        "insufficientScopes",
        403,
        "The scopes of the connection do not allow the operation. `operation` is its name; `validScopes` are "
        "the scopes of which any suffices, where known",
        "Make a link with the access level that `error` names and have the user connect the account again; "
        "for a member of a grant, enter the grant again with more scopes",
    )

    USER_NOT_FOUND = (
        "userNotFound",
        404,
        "The user does not exist, or the API key has no access to it",
        "Register the user first, or use another key. Users are named by id, not by address",
    )
    ORGANIZATION_NOT_FOUND = (
        "organizationNotFound",
        404,
        "The organization does not exist, or the API key has no access to it",
        "Create the organization first, or use another key",
    )
    CONNECTION_NOT_FOUND = (
        "connectionNotFound",
        404,
        "The user has no connection with this provider",
        "Make a link and have the user connect an account",
    )
    GRANT_NOT_FOUND = (
        "grantNotFound",
        404,
        "The organization has no grant of this provider",
        "Store one with `PUT /v1/organizations/{orgSlug}/grants/{provider}`",
    )
    NO_CONNECTED_CALENDARS = (
        "noConnectedCalendars",
        404,
        "The user has no connected account, or none of the requested `provider`",
        "Make a link and have the user connect an account",
    )
    ORGANIZATION_HAS_NO_MEMBERS = (
        "organizationHasNoMembers",
        404,
        "The organization has no members",
        "Add members first",
    )
    CALENDAR_NOT_FOUND = (
        "calendarNotFound",
        404,
        "The calendar does not exist, or the account cannot see it",
        "Use an id from `GET /v1/users/{userId}/calendar`",
    )
    EVENT_NOT_FOUND = (
        "eventNotFound",
        404,
        "The calendar exists and the event does not: it may have been deleted",
        "Treat the event as deleted",
    )
    MEMBER_NOT_FOUND = (
        "memberNotFound",
        404,
        "The user is not a member of the organization",
        "None: the membership does not exist",
    )
    HOLD_NOT_FOUND = (
        "holdNotFound",
        404,
        "There is no such hold: it has expired, was released or used, or another organization took it",
        "Take a new hold",
    )
    WEBHOOK_NOT_FOUND = (
        "webhookNotFound",
        404,
        "The webhook endpoint does not exist, or the API key has no access to it",
        "Use an id from `GET /v1/webhooks`",
    )
    KEY_NOT_FOUND = (
        "keyNotFound",
        404,
        "There is no such API key in force, or the managing key has no access to it",
        "Use an id from `GET /v1/keys`",
    )
    DELIVERY_NOT_FOUND = (
        "deliveryNotFound",
        404,
        "The webhook endpoint has no such delivery; the log keeps 30 days",
        "Use an id from the delivery log",
    )
    CHANNEL_NOT_FOUND = (
        "channelNotFound",
        404,
        "A notification of a provider belongs to no channel (`/v1/push` only)",
        "Nothing: API clients do not call this route",
    )
    NOT_FOUND = (
        "notFound",
        404,
        "None of the calendars exists, or the account cannot see them",
        "Use ids from `GET /v1/users/{userId}/calendar`",
    )
    PROVIDER_NOT_CONFIGURED = (
        "providerNotConfigured",
        404,
        "The installation has no client id and secret for the provider, or the provider's API is not enabled",
        "The operator registers the installation with the provider",
    )
    PATH_NOT_FOUND = (
        "pathNotFound",
        404,
        "The API has no such path",
        "Correct the URL",
    )

    METHOD_NOT_ALLOWED = (
        "methodNotAllowed",
        405,
        "The path does not support the HTTP method; the header `Allow` lists the methods that it supports",
        "Use one of these methods",
    )

    REQUEST_TIMEOUT = (
        "requestTimeout",
        408,
        "The body of the request did not arrive in time",
        "Repeat the request",
    )

    USER_EXISTS = (
        "userExists",
        409,
        "The identifier belongs to another user",
        "Choose another identifier, such as one that begins with the customer. A key that is bound to an "
        "organization reaches the other user only if it is a member of that organization",
    )
    ORGANIZATION_EXISTS = (
        "organizationExists",
        409,
        "The slug belongs to another organization",
        "Read this organization, or choose another slug",
    )
    CONNECTION_DELEGATED = (
        "connectionDelegated",
        409,
        "The connection is delegated: it has no tokens of its own",
        "None: Almanac requests tokens by the grant of the organization and never shows them",
    )
    WEBHOOK_PAUSED = (
        "webhookPaused",
        409,
        "The webhook is paused, so no test event is sent",
        "Resume it first, with `paused: false`",
    )
    WEBHOOK_DISABLED = (
        "webhookDisabled",
        409,
        "The webhook is disabled, because its receiver answered 410, so no test event is sent",
        "Resume it first, with `paused: false` or a new `url`",
    )
    EVENT_EXISTS = (
        "eventExists",
        409,
        "The `id` or `metaId` belongs to another event",
        "Choose another `id` or `metaId`",
    )
    EVENT_COPIES_DIFFER = (
        "eventCopiesDiffer",
        409,
        "The unified event has a copy with other content in one account, and none in another",
        "Change or delete this copy and repeat the request",
    )
    META_ID_IN_USE = (
        "metaIdInUse",
        409,
        "Another request is creating the event with this `metaId`",
        "Wait `retryAfter` seconds and repeat the request",
    )
    IDEMPOTENCY_KEY_IN_USE = (
        "idempotencyKeyInUse",
        409,
        "The first request with this `Idempotency-Key` is still in progress",
        "Wait `retryAfter` seconds and repeat the request: it gets the first response",
    )
    TOO_MANY_WEBHOOKS = (
        "tooManyWebhooks",
        409,
        "There are 100 webhook endpoints already",
        "Delete one first",
    )

    TOO_MANY_KEYS = (
        "tooManyKeys",
        409,
        "The organization has 1 000 API keys in force already",
        "Revoke one first",
    )

    SLOT_TAKEN = (
        "slotTaken",
        409,
        "The time is not free: it is busy, held by another client, or not covered by the `hold`. `conflicts` "
        "are the parts of it that are taken, by user; with `hold`, the parts that the hold does not cover, "
        "perhaps free ones",
        "Read the slots again, and offer another one",
    )
    HOLD_IN_USE = (
        "holdInUse",
        409,
        "An event is being created by the hold",
        "Wait for that request to end",
    )
    EVENT_CHANGED = (
        "eventChanged",
        412,
        'The event does not have the etag of `If-Match`: another client has changed it. "Perhaps by this '
        'request" means that the answer to a first attempt was lost',
        "Read the event, and send the change again with its new `etag` if it still fits",
    )
    AVAILABILITY_CHANGED = (
        "availabilityChanged",
        412,
        "What counts for the user does not have the etag of `If-Match`: another client has changed it",
        "Read it, and send the change again with its new `ETag` if it still fits",
    )
    CURSOR_EXPIRED = (
        "cursorExpired",
        410,
        "The provider of a calendar no longer knows what has changed since the `cursor`",
        "Delete your copy of these calendars, and begin again with `start` and without `cursor`",
    )
    BODY_TOO_LARGE = (
        "bodyTooLarge",
        413,
        "The body is larger than 1 MiB",
        "Split the request",
    )

    UNSUPPORTED_MEDIA_TYPE = (
        "unsupportedMediaType",
        415,
        "The header `Content-Type` of the body does not name JSON",
        "Send `Content-Type: application/json`",
    )
    BODY_COMPRESSED = (
        "bodyCompressed",
        415,
        "The body is compressed",
        "Send the body without `Content-Encoding`",
    )

    IDEMPOTENCY_KEY_REUSED = (
        "idempotencyKeyReused",
        422,
        "The `Idempotency-Key` was used with another request",
        "Choose a new key for each request",
    )
    EVENT_UNREADABLE = (
        "eventUnreadable",
        422,
        "The provider wrote the event and returned one that cannot be read",
        "Read the event before you write again",
    )

    KEY_RATE_LIMITED = (
        "keyRateLimited",
        429,
        "The API key has used up its requests of this minute",
        "Wait `retryAfter` seconds",
    )
    QUOTA_EXCEEDED = (
        "quotaExceeded",
        429,
        "The organization of the API key uses as much as it may. `quota` says of what: `waitingReads`, "
        "`waitingWrites`, `heldUsers` or `bodyBytes` at once, or `requestsPerMinute` of all its API keys. "
        "Nothing was read or written. The API keys that are bound to no organization share one quota",
        "Wait `retryAfter` seconds and repeat the request; send fewer requests at once",
    )
    RATE_LIMITED = (
        "rateLimited",
        429,
        "The provider limits requests, or the quota that is set for it is used up",
        "Wait `retryAfter` seconds, where known, and repeat the request",
    )

    INTERNAL_ERROR = (
        "internalError",
        500,
        "Almanac has a fault",
        "Report the `X-Request-Id` to the operator, who finds the fault with it in the log",
    )

    PROVIDER_ERROR = (
        "providerError",
        502,
        "The provider could not be reached, did not answer in time, gave an unreadable answer, or refuses "
        "the registration of this installation (`error` says so)",
        "Repeat the request later, after `retryAfter` seconds where known. For a refused "
        "registration, the operator enters a new client secret",
    )
    OUTCOME_UNKNOWN = (
        "outcomeUnknown",
        502,
        "The write of an event was sent and no answer came, or Redis or the broker failed meanwhile: the "
        "event may have been created, changed or deleted. The status of a unified write is that of the "
        "account that failed; of a write that the database, Redis or the broker interrupted, it is 503",
        "Repeat an update or a delete; a delete that took effect then answers 404, an update with `If-Match` "
        "412. Repeat a create with the same `Idempotency-Key` or `metaId`; if it had neither, look for the "
        "event first",
    )

    SERVICE_UNAVAILABLE = (
        "serviceUnavailable",
        503,
        "The database, Redis or the broker of the installation is down. `GET /readyz` says which",
        "Wait `retryAfter` seconds and repeat the request",
    )
    OVERLOADED = (
        "overloaded",
        503,
        "As many requests wait for providers, or as many bodies arrive, as the installation allows. Nothing "
        "was read or written; cached answers still work",
        "Wait `retryAfter` seconds and repeat the request",
    )
    NO_WORKER = (
        "noWorker",
        503,
        "No worker has been running for half a minute. Nothing was read or written; cached answers still "
        "work",
        "Wait `retryAfter` seconds and repeat the request. The operator starts `almanac worker`",
    )
