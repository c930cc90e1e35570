"""Google's error bodies, in both formats.

https://developers.google.com/workspace/calendar/api/guides/errors
"""

from __future__ import annotations

from typing import Any

from providers.sandbox.exchange import Answer, Refused

JSON = "application/json; charset=UTF-8"

# Status, domain and message of each reason.
REASONS: dict[str, tuple[int, str, str]] = {
    "timeRangeEmpty": (400, "calendar", "The specified time range is empty."),
    "timeRangeTooLong": (400, "calendar", "The requested time range is too long."),
    "invalid": (400, "global", "Invalid Value"),
    "channelIdNotUnique": (400, "global", "Channel id not unique"),
    "pushNotSupportedForRequestedResource": (
        400,
        "global",
        "Push notifications are not supported by this resource.",
    ),
    "invalidParameter": (400, "global", "Invalid parameter value."),
    "cannotUseDefaultRemindersAndSpecifyOverride": (400, "calendar", "Bad Request"),
    "required": (400, "global", "Required"),
    "badRequest": (400, "global", "Bad Request"),
    "parseError": (400, "global", "Parse Error"),
    "authError": (401, "global", "Invalid Credentials"),
    "insufficientPermissions": (403, "global", "Insufficient Permission"),
    "forbidden": (403, "global", "Forbidden"),
    "accessNotConfigured": (403, "usageLimits", "Access Not Configured."),
    "notACalendarUser": (403, "calendar", "The user must be signed up for Google Calendar."),
    "requiredAccessLevel": (403, "calendar", "You need to have writer access to this calendar."),
    "forbiddenForNonOrganizer": (
        403,
        "calendar",
        "Shared properties can only be changed by the organizer of the event.",
    ),
    "rateLimitExceeded": (403, "usageLimits", "Rate Limit Exceeded"),
    "userRateLimitExceeded": (403, "usageLimits", "User Rate Limit Exceeded"),
    "quotaExceeded": (403, "usageLimits", "Calendar usage limits exceeded."),
    "variableTermLimitExceeded": (403, "usageLimits", "Variable term limit exceeded"),
    "notFound": (404, "global", "Not Found"),
    "duplicate": (409, "global", "The requested identifier already exists."),
    "conflict": (409, "global", "Conflict"),
    "deleted": (410, "global", "Resource has been deleted"),
    "fullSyncRequired": (410, "calendar", "Sync token is no longer valid, a full sync is required."),
    "updatedMinTooLongAgo": (
        410,
        "calendar",
        "The requested minimum modification time lies too far in the past.",
    ),
    "conditionNotMet": (412, "global", "Precondition Failed"),
    "backendError": (503, "global", "Backend Error"),
}

# The reason for a fault that has only a status.
BY_STATUS = {
    400: "badRequest",
    401: "authError",
    403: "forbidden",
    404: "notFound",
    409: "conflict",
    410: "deleted",
    412: "conditionNotMet",
    429: "rateLimitExceeded",
}


def error(
    reason: str, message: str = "", *, status: int = 0, parameter: str = "", header: str = ""
) -> Answer:
    """An error of the calendar API."""
    usual_status, domain, usual_message = REASONS.get(reason, (400, "global", reason))
    status = status or usual_status
    item: dict[str, Any] = {"domain": domain, "reason": reason, "message": message or usual_message}
    if parameter or header:
        item |= {"locationType": "parameter" if parameter else "header", "location": parameter or header}
    body = {"error": {"errors": [item], "code": status, "message": item["message"]}}
    return Answer(status, document=body, headers={"Content-Type": JSON}, indent=True)


def json_answer(document: dict[str, Any], status: int = 200) -> Answer:
    """An answer of the OAuth server."""
    return Answer(status, document=document, headers={"Content-Type": JSON}, indent=True)


def oauth_error(word: str, description: str, status: int = 400) -> Answer:
    """The error body of the token endpoint."""
    return json_answer({"error": word, "error_description": description}, status)


def refusal(reason: str, message: str = "", **more: Any) -> Refused:
    """The same, as an exception."""
    return Refused(error(reason, message, **more))


def login_required() -> Answer:
    """No token: the front end answers before the calendar API sees the call."""
    return _front_end(
        401,
        "UNAUTHENTICATED",
        "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie "
        "or other valid authentication credential. See "
        "https://developers.google.com/identity/sign-in/web/devconsole-project.",
        {
            "message": "Login Required.",
            "domain": "global",
            "reason": "required",
            "location": "Authorization",
            "locationType": "header",
        },
        'Bearer realm="https://accounts.google.com/"',
        detail=("CREDENTIALS_MISSING", ""),
    )


def dead_token() -> Answer:
    """The access token has expired, was revoked or is unknown."""
    return _front_end(
        401,
        "UNAUTHENTICATED",
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie "
        "or other valid authentication credential. See "
        "https://developers.google.com/identity/sign-in/web/devconsole-project.",
        {
            "message": "Invalid Credentials",
            "domain": "global",
            "reason": "authError",
            "location": "Authorization",
            "locationType": "header",
        },
        'Bearer realm="https://accounts.google.com/", error=invalid_token',
    )


def scope_missing(method: str, scopes: list[str]) -> Answer:
    """The token is valid, but its scopes do not allow ``method``."""
    return _front_end(
        403,
        "PERMISSION_DENIED",
        "Request had insufficient authentication scopes.",
        {"message": "Insufficient Permission", "domain": "global", "reason": "insufficientPermissions"},
        f'Bearer realm="https://accounts.google.com/", error=insufficient_scope, scope="{" ".join(scopes)}"',
        detail=("ACCESS_TOKEN_SCOPE_INSUFFICIENT", method),
    )


def _front_end(
    status: int,
    word: str,
    message: str,
    item: dict[str, str],
    challenge: str,
    detail: tuple[str, str] | None = None,
) -> Answer:
    body: dict[str, Any] = {"code": status, "message": message, "errors": [item], "status": word}
    if detail is not None:
        reason, method = detail
        body["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason,
                "domain": "googleapis.com",
                "metadata": {
                    "service": "calendar-json.googleapis.com",
                    **({"method": method} if method else {}),
                },
            }
        ]
    headers = {"Content-Type": JSON, "WWW-Authenticate": challenge}
    return Answer(status, document={"error": body}, headers=headers, indent=True)
