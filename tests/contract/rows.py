"""A row of the contract: a call, the status of its answer, and the shape of its body."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.contract.shapes import ERROR, FAILED_CALENDAR, REASON, TIME
from tests.contract.world import World

PROVIDERS = ("google", "microsoft")
INVALID = {**ERROR, "param": str}
THROTTLED = {**ERROR, "retryAfter": int}
# A provider failed; where calendars are read or written, the answer names them.
PROVIDER_ERROR = {**ERROR, "reason": REASON}
UNREAD_ERROR = {**PROVIDER_ERROR, "failedCalendars": [FAILED_CALENDAR]}
TAKEN = {**ERROR, "conflicts": [{"userId": str, "start": TIME, "end": TIME}]}
SCOPE_ERROR = {**UNREAD_ERROR, "operation": str, "validScopes": [str]}
# A ``Retry-After`` beyond the deadline, so that calls are not retried and a row has no pauses.
LATER = 60
OTHER_ETAG = {"If-Match": 'W/"1"'}


@dataclass(frozen=True)
class Row:
    """``setup`` runs before the call; it may change the request through ``world.names``.

    ``providers`` are the providers to run the row with, each in its own world. ``key`` replaces the caller's
    API key. ``media`` is the media type of the answer. ``code`` is that of an error in the envelope.
    """

    operation: str
    status: int
    shape: Any = None
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    setup: Callable[[World], object] | None = None
    names: dict[str, str] = field(default_factory=dict)
    message: str = ""
    key: Callable[[World], object] | None = None
    providers: tuple[str, ...] = ()
    media: str = "application/json"
    code: str | None = None

    def __str__(self) -> str:
        return f"{self.operation} {self.status} {self.message or self.query or self.body or ''}"[:90].strip()


def of(operation: str, *rows: Row) -> Iterator[Row]:
    """Rows of one operation; one that names a provider runs with both, unless a row says otherwise."""
    usual = PROVIDERS if "{provider}" in operation else PROVIDERS[:1]
    for row in rows:
        yield replace(row, operation=operation, providers=row.providers or usual)


def ok(shape: Any, status: int = 200, **more: Any) -> Row:
    return Row("", status, shape, **more)


def bad(message: str, status: int = 400, code: str = "validationFailed", **more: Any) -> Row:
    """An error answer; ``message`` is the start of its message."""
    shape = more.pop("shape", INVALID if code == "validationFailed" else ERROR)
    return Row("", status, shape, message=message, code=code, **more)


def missing(message: str, **more: Any) -> Row:
    shape = UNREAD_ERROR if message == "Calendar not found" else ERROR
    return bad(message, 404, MISSING[message], shape=shape, **more)


# The codes of what is missing, by the message.
MISSING = {
    "User not found": "userNotFound",
    "Organization not found": "organizationNotFound",
    "OAuth connection not found": "connectionNotFound",
    "User has no connected calendars": "noConnectedCalendars",
    "Organization has no members": "organizationHasNoMembers",
    "Calendar not found": "calendarNotFound",
    "Event not found": "eventNotFound",
    "User is not a member of": "memberNotFound",
    "There is no grant": "grantNotFound",
    "Webhook not found": "webhookNotFound",
    "Hold not found": "holdNotFound",
    "Delivery not found": "deliveryNotFound",
    "API key not found": "keyNotFound",
}
# The codes that tests show for every operation, by status.
COMMON = {
    400: "malformedBody",
    401: "apiKeyInvalid",
    409: "idempotencyKeyInUse",
    413: "bodyTooLarge",
    415: "unsupportedMediaType",
    422: "idempotencyKeyReused",
    429: "keyRateLimited",
    503: "serviceUnavailable",
}


NOBODY = {"userId": "nobody"}
NOWHERE = {"orgSlug": "nowhere"}


def no_user(**more: Any) -> Row:
    return missing("User not found", names=NOBODY, **more)


def no_organization(**more: Any) -> Row:
    return missing("Organization not found", names=NOWHERE, **more)


def bad_user(**more: Any) -> Row:
    return missing("User not found", names={"userId": "a"}, **more)


def bad_slug(**more: Any) -> Row:
    return missing("Organization not found", names={"orgSlug": "A"}, **more)


def unknown_provider(**more: Any) -> Row:
    return bad("provider must be one of google, microsoft", names={"provider": "apple"}, **more)


def read_only(world: World) -> None:
    """The caller has a read-only key."""
    world.api = world.new_api(read_only=True)


def showing_tokens(world: World) -> None:
    """The caller has a key that may show tokens."""
    world.api = world.new_api(shows_tokens=True)


def bound(world: World) -> None:
    """The caller has a key of the user's organization, and the user is also in another one."""
    other = world.new_organization()
    path = f"/organizations/{other}/members"
    assert world.api.post(path, {"userIds": [world.names["userId"]]}).status_code == 201
    world.api = world.new_api(organization=world.names["orgSlug"])


def may_not_write(**more: Any) -> Row:
    return bad("This API key is read-only", 403, "keyReadOnly", key=read_only, **more)


def of_provider(**more: Any) -> list[Row]:
    """The answers of a single-user read when every account fails."""
    return [
        ended(**more),
        too_narrow("calendar.", **more),
        *provider_down(**more),
    ]


def ended(shape: Any = UNREAD_ERROR, **more: Any) -> Row:
    """The answer when the provider has revoked the grant."""
    return bad("", 401, "authorizationInvalid", shape=shape, setup=World.revoke, **more)


def too_narrow(operation: str, **more: Any) -> Row:
    """The answer when the grant does not allow the operation."""
    return bad(operation, 403, "insufficientScopes", shape=SCOPE_ERROR, setup=World.restrict_scopes, **more)


def token_endpoint_down(down: Callable[..., None], **more: Any) -> list[Row]:
    """Answers while the provider gives out no tokens; ``down(world, **fault)`` makes it so."""
    return [
        bad(
            "",
            429,
            "rateLimited",
            shape=THROTTLED | PROVIDER_ERROR,
            setup=lambda world: down(world, status=429, retry_after=LATER),
            **more,
        ),
        bad(
            "",
            502,
            "providerError",
            shape=PROVIDER_ERROR,
            setup=lambda world: down(world, status=503, retry_after=LATER),
            **more,
        ),
    ]


def provider_down(shape: Any = UNREAD_ERROR, *, unknown: Sequence[str] = (), **more: Any) -> list[Row]:
    """Answers while the provider limits the rate, and while it is down.

    ``unknown`` are the providers that may have executed a write then: no read before it has failed.
    """
    asked = more.pop("providers", PROVIDERS if unknown else ())
    down = {"outcomeUnknown": tuple(unknown)} if unknown else {}
    if not unknown or set(asked) > set(unknown):
        down["providerError"] = tuple(each for each in asked if each not in unknown)
    return [
        bad(
            "",
            429,
            "rateLimited",
            shape={**shape, "retryAfter": int},
            setup=lambda w: w.inject_fault(status=429, retry_after=LATER),
            providers=asked,
            **more,
        ),
        *(
            bad(
                "",
                502,
                code,
                shape=shape,
                setup=lambda w: w.inject_fault(status=503, retry_after=LATER),
                providers=providers,
                **more,
            )
            for code, providers in down.items()
        ),
    ]
