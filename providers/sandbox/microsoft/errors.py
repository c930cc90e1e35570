"""Graph's error body, and the headers of every answer.

https://learn.microsoft.com/graph/errors
"""

from __future__ import annotations

import time
import uuid
from typing import Any

from providers.sandbox.exchange import Answer, Refused, Request

JSON = "application/json;odata.metadata=minimal;odata.streaming=true;IEEE754Compatible=false;charset=utf-8"
CHALLENGE = (
    'Bearer realm="", authorization_uri="https://login.microsoftonline.com/common/oauth2/authorize", '
    'client_id="00000003-0000-0000-c000-000000000000"'
)

# Status and message of each code.
CODES: dict[str, tuple[int, str]] = {
    "InvalidAuthenticationToken": (401, "Lifetime validation failed, the token is expired."),
    "ErrorAccessDenied": (403, "Access is denied. Check credentials and try again."),
    "Authorization_RequestDenied": (403, "Insufficient privileges to complete the operation."),
    "ErrorItemNotFound": (404, "The specified object was not found in the store."),
    "ResourceNotFound": (404, "Resource could not be discovered."),
    "MailboxNotEnabledForRESTAPI": (
        404,
        "The mailbox is either inactive, soft-deleted, or is hosted on-premise.",
    ),
    "ErrorInvalidUser": (404, "The requested user is invalid."),
    "ErrorNonExistentMailbox": (404, "The SMTP address has no mailbox associated with it."),
    "ErrorInvalidIdMalformed": (400, "Id is malformed."),
    "InvalidRequest": (400, "The request is not valid."),
    "ValidationError": (400, "Subscription validation request failed."),
    "ExtensionError": (400, "The operation of the extension failed."),
    "ErrorInvalidRequest": (400, "Your request can't be completed."),
    "ErrorInvalidParameter": (400, "The value of a parameter is not valid."),
    "ErrorPropertyValidationFailure": (400, "At least one property failed validation."),
    "ErrorInvalidTimeInterval": (400, "The time interval is not valid."),
    "ErrorIrresolvableConflict": (
        409,
        "The send or update operation could not be performed because the change key passed in the request "
        "does not match the current change key for the item.",
    ),
    "syncStateNotFound": (410, "The sync state generation is not found; generations before it exist."),
    "ApplicationThrottled": (429, "Application is over its MailboxConcurrency limit."),
    "TooManyRequests": (429, "Too many requests."),
    "ErrorInternalServerError": (500, "An internal server error occurred. The operation failed."),
    "serviceNotAvailable": (
        503,
        "The service is temporarily unavailable for maintenance or is overloaded. You may repeat the request "
        "after a delay, the length of which may be specified in a Retry-After header.",
    ),
    "BadRequest": (400, "The request is not valid."),
    "UnknownError": (504, "The service did not answer in time."),
}

# The code for a fault that has only a status.
BY_STATUS = {
    400: "BadRequest",
    401: "InvalidAuthenticationToken",
    403: "ErrorAccessDenied",
    404: "ErrorItemNotFound",
    409: "ErrorIrresolvableConflict",
    412: "ErrorIrresolvableConflict",
    429: "ApplicationThrottled",
    500: "ErrorInternalServerError",
    503: "serviceNotAvailable",
}


def error(
    code: str, message: str = "", *, status: int = 0, headers: dict[str, str] | None = None, **more: Any
) -> Answer:
    """An error; ``signed`` fills in the ids of the request."""
    usual_status, usual_message = CODES.get(code, (400, code))
    body = {"code": code, "message": message or usual_message, **more}
    return Answer(status or usual_status, document={"error": body}, headers=dict(headers or {}))


def refusal(code: str, message: str = "", **more: Any) -> Refused:
    """The same, as an exception."""
    return Refused(error(code, message, **more))


def dead_token(message: str = "") -> Answer:
    """The access token is missing, has expired, was revoked or is unknown."""
    return error("InvalidAuthenticationToken", message, headers={"WWW-Authenticate": CHALLENGE})


def signed(request: Request, answer: Answer) -> Answer:
    """The answer with the request ids that support needs, in its headers and in an error's body."""
    request_id = str(uuid.uuid4())
    client_id = request.headers.get("client-request-id", request_id)
    answer.headers.setdefault("Content-Type", JSON)
    answer.headers["request-id"] = request_id
    answer.headers["client-request-id"] = client_id
    if answer.status >= 400 and isinstance(answer.document, dict) and "error" in answer.document:
        answer.document["error"]["innerError"] = {
            "date": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()),
            "request-id": request_id,
            "client-request-id": client_id,
        }
    return answer
