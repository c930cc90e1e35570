"""Maps Google's error answers to exceptions.

https://developers.google.com/workspace/calendar/api/guides/errors
"""

from __future__ import annotations

import re
from typing import Any

from providers.errors import (
    AccessDenied,
    AuthorizationInvalid,
    EventExists,
    EventRefused,
    InsufficientScopes,
    InvalidCalendarId,
    MailboxUnavailable,
    NotFound,
    ProjectRateLimited,
    ProviderError,
    ProviderNotConfigured,
    RateLimited,
    SyncTokenExpired,
    TooManyCalendars,
    Unavailable,
    ZoneRefused,
)
from providers.http import errors
from providers.http.calls import HttpReply
from providers.http.errors import Refusal

PROVIDER = "Google Calendar"

# The domain and the status of errors about quotas and rates:
# https://docs.cloud.google.com/apis/design/errors (google.rpc.Code)
USAGE_LIMITS = "usageLimits"
EXHAUSTED = "RESOURCE_EXHAUSTED"

# Words of messages about the time zone of an event, and about an id.
_ZONE = re.compile("time ?zone", re.IGNORECASE)
_ID = re.compile("id value")

# The reason takes precedence over the status: a 403 can mean rate limit, missing scope or no access.
BY_REASON: dict[str, Refusal] = {
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": (InsufficientScopes, "says that the granted scopes do not allow this"),
    "insufficientPermissions": (InsufficientScopes, "says that the granted scopes do not allow this"),
    "RATE_LIMIT_EXCEEDED": (RateLimited, "asks us to slow down"),
    "rateLimitExceeded": (RateLimited, "asks us to slow down"),
    "userRateLimitExceeded": (RateLimited, "asks us to slow down"),
    "dailyLimitExceeded": (ProjectRateLimited, "asks us to slow down"),
    "quotaExceeded": (RateLimited, "says that the usage limits of this account are exceeded"),
    "SERVICE_DISABLED": (ProviderNotConfigured, "API is not enabled for this installation"),
    "accessNotConfigured": (ProviderNotConfigured, "API is not enabled for this installation"),
    "notACalendarUser": (MailboxUnavailable, "is not set up for this account"),
    "forbidden": (AccessDenied, "denies access"),
    "forbiddenForNonOrganizer": (AccessDenied, "allows this change only to the organizer"),
    "forbiddenForServiceAccounts": (AccessDenied, "denies this to service accounts"),
    "requiredAccessLevel": (AccessDenied, "denies access: the role in this calendar is too low"),
    "notFound": (NotFound, "does not know this calendar, or not for this account"),
    "deleted": (NotFound, "says that this has been deleted"),
    "fullSyncRequired": (SyncTokenExpired, "no longer knows what has changed since"),
    "groupTooBig": (TooManyCalendars, "reads fewer calendars at once than this group has"),
    "tooManyCalendarsRequested": (TooManyCalendars, "reads fewer calendars at once"),
    "timeRangeTooLong": (ProviderError, "does not read so long a time at once"),
    "timeRangeEmpty": (ProviderError, "says that the time range is empty"),
    "internalError": (Unavailable, "had an internal error"),
    "backendError": (Unavailable, "had an internal error"),
    "authError": (AuthorizationInvalid, "no longer accepts this connection"),
}


def error_for(reply: HttpReply) -> ProviderError:
    """The exception for an answer that is not 2xx."""
    reason = _reason(reply.body)
    if reply.status == 400 and reason == "invalid" and _names_an_id(reply.body):
        return InvalidCalendarId(f"{reply.provider} cannot read this calendar id", operation=reply.operation)
    refusal = BY_REASON.get(reason) or _by_limit(reply.body) or errors.by_reply(reply)
    if refusal[0] is RateLimited and _concerns_the_project(reply.body):
        refusal = ProjectRateLimited, refusal[1]
    error = errors.error(reply.provider, refusal, operation=reply.operation, retry_after=reply.retry_after)
    if isinstance(error, ProjectRateLimited):
        error.project = _project(reply.body)
    return error


class EventOutdated(ProviderError):
    """The event has changed since it was read."""


class Deleted(NotFound):
    """The event has been deleted."""


# What Google rejects in a write, as the end of a sentence.
FAULTS = {
    "timeRangeEmpty": "says that the event ends before it starts",
    "required": "misses something that the event needs",
    "invalid": "cannot take a value of this event",
    "invalidParameter": "cannot take a value of this event",
}


def write_error_for(reply: HttpReply) -> ProviderError:
    """The exception for a write of an event that is not 2xx; a 400 for an id is as in :func:`error_for`."""
    operation, reason = reply.operation, _reason(reply.body)
    if reply.status == 409 and reason == "duplicate":
        return EventExists(f"{PROVIDER} already has an event of this id", operation=operation)
    if reply.status == 409:
        return Unavailable(f"{PROVIDER} is busy with another change", operation=operation)
    if reply.status == 410:
        return Deleted(f"{PROVIDER} says that the event has been deleted", operation=operation)
    if reply.status == 412:
        return EventOutdated(f"{PROVIDER} says that the event has changed", operation=operation)
    if reply.status == 400 and _says(reply.body, _ZONE):
        return ZoneRefused(f"{PROVIDER} does not know the time zone of the event", operation=operation)
    if reply.status in (400, 413) and not _names_an_id(reply.body):
        fault = FAULTS.get(reason, "cannot take this event")
        return EventRefused(f"{PROVIDER} {fault}", operation=operation)
    return error_for(reply)


def error_inside(detail: Any, operation: str) -> ProviderError:
    """The exception for an error inside a 200; an unknown reason is still a failure."""
    reason = detail.get("reason") if isinstance(detail, dict) else None
    known = BY_REASON.get(reason) if isinstance(reason, str) else None
    refusal = known or _by_domain(_dicts([detail])) or (ProviderError, "could not read this calendar")
    return errors.error(PROVIDER, refusal, operation=operation)


def _reason(body: Any) -> str:
    """The most specific reason of either format: ErrorInfo of the front end, else ``errors[0]``."""
    reasons = [reason for detail in _details(body) if isinstance(reason := detail.get("reason"), str)]
    return next((reason for reason in reasons if reason in BY_REASON), reasons[0] if reasons else "")


def _details(body: Any) -> list[dict[str, Any]]:
    """The details of an error, in either format."""
    error = body.get("error") if isinstance(body, dict) else None
    return [*_dicts(error.get("details")), *_dicts(error.get("errors"))] if isinstance(error, dict) else []


def _by_limit(body: Any) -> Refusal | None:
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict) and error.get("status") == EXHAUSTED:
        return RateLimited, "asks us to slow down"
    return _by_domain(_details(body))


def _by_domain(details: list[dict[str, Any]]) -> Refusal | None:
    """The meaning of an unknown reason: Google has more limits than it documents, all of one domain."""
    limited = any(each.get("domain") == USAGE_LIMITS for each in details)
    return (RateLimited, "asks us to slow down") if limited else None


def _concerns_the_project(body: Any) -> bool:
    """Whether ErrorInfo names a quota that all accounts share; without ErrorInfo it is one account's.

    The quotas are ``defaultPerMinutePerProject`` and ``defaultPerMinutePerUser``.
    """
    return any("PerProject" in str(each.get("quota_limit")) for each in _metadata(body))


def _project(body: Any) -> str | None:
    """The number of the project whose quota is exceeded: ``"consumer": "projects/123"`` in the details."""
    for each in _metadata(body):
        kind, _, number = str(each.get("consumer")).partition("/")
        if kind == "projects" and number:
            return number
    return None


def _metadata(body: Any) -> list[dict[str, Any]]:
    error = body.get("error") if isinstance(body, dict) else None
    details = _dicts(error.get("details")) if isinstance(error, dict) else []
    return _dicts([each.get("metadata") for each in details])


def _names_an_id(body: Any) -> bool:
    # {"domain": "global", "reason": "invalid", "message": "Invalid resource id value."}
    return _says(body, _ID)


def _says(body: Any, words: re.Pattern[str]) -> bool:
    """Whether a message has these words. Google's reasons do not tell what is wrong with a 400."""
    return any(words.search(str(each.get("message"))) for each in _details(body))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
