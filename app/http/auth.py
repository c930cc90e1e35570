"""Who calls: the API key of a request, and what it may reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from flask import Flask, g, request
from flask.typing import ResponseReturnValue

from app.http import rate_limit
from app.http.errors import Forbidden, Unauthenticated
from app.services import services
from store.cache.versioned_cache import CachedVersion
from store.security.api_keys import digest
from store.sql.queries import api_keys
from store.sql.queries.api_keys import Caller

PREFIX = "/v1/"

# The description of the API holds nothing that a key protects; the callback's proof is its state, that of a
# provider's notification the secret of its channel.
OPEN_ENDPOINTS = frozenset(
    {
        "api-docs.openapi_json",
        "api-docs.openapi_swagger_ui",
        "authorization.Callback",
        "push.google_push",
        "push.microsoft_push",
    }
)

# They take a body and change nothing: a read-only key may call them.
READS_BY_POST = frozenset(
    {"scheduling.UserScheduling", "scheduling.UsersScheduling", "explain.UserExplanation"}
)

# They hand out what changes a connection: a read-only key may not call them.
WRITES_BY_GET = frozenset({"authorization.Link", "authorization.Links"})

# They read from Redis anyway, and learn there whether what they relied on still counts: one round trip less.
CONFIRMED_LATER = frozenset(
    {
        "busy.UserBusy",
        "busy.OrganizationBusy",
        "scheduling.UserScheduling",
        "scheduling.UsersScheduling",
        "scheduling.OrganizationScheduling",
        "explain.UserExplanation",
        "explain.OrganizationExplanation",
    }
)

READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Outdated(Exception):
    """Something has changed that the request relied on."""


def install(app: Flask) -> None:
    """Ask for a key on every ``/v1`` route, before anything of the request is looked at."""
    app.before_request(_authenticate)
    app.dispatch_request = _confirming(app.dispatch_request)  # type: ignore[method-assign]


@dataclass(slots=True)
class _Admission:
    """On what a request was let in: what was remembered then, and whether that is known to count still."""

    caller: Caller
    memory: CachedVersion
    confirmed: bool


def admit(found: Caller, remembered: CachedVersion) -> None:
    """Let a request in that is known by other means than a key, on what is remembered as it begins."""
    g.admission = _Admission(found, remembered, confirmed=True)


def caller() -> Caller:
    """Who makes this request."""
    return _admission().caller


def memory() -> CachedVersion:
    """What is remembered of the database, as it was when this request began."""
    return _admission().memory


def within() -> int | None:
    """The organization that the key is bound to; None reaches all."""
    return caller().organization_id


def require_whole_service(doing: str) -> None:
    """Refuse a key that is bound to one organization.

    :raise Forbidden: naming what was tried
    """
    if within() is not None:
        raise Forbidden(f"{doing} needs an API key that is not bound to an organization")


def verify_version(stamp: bytes | None) -> None:
    """Go on when what the request relies on counts under this stamp, which Redis had after it began.

    :raise Outdated: when it does not; the view then runs anew
    """
    services().stores.versioned_cache.under(stamp)
    admission = _admission()
    # Without a stamp nobody knows: Redis may have been emptied.
    if not admission.confirmed and (stamp is None or admission.memory.stamp != stamp):
        raise Outdated
    _confirm(admission)


def verify_version_now() -> None:
    """As ``verify_version``, in a round trip of its own."""
    if not _admission().confirmed:
        verify_version(services().stores.versioned_cache.current().stamp)


def _admission() -> _Admission:
    return cast(_Admission, g.admission)


def _authenticate() -> None:
    endpoint = request.endpoint
    if endpoint is None or endpoint in OPEN_ENDPOINTS or not request.path.startswith(PREFIX):
        return
    directory = services().stores.versioned_cache
    later = endpoint in CONFIRMED_LATER
    _admit(directory.recent() if later else directory.current(), confirmed=not later)


def _confirming(dispatch: Callable[[], ResponseReturnValue]) -> Callable[[], ResponseReturnValue]:
    """Answer only what was confirmed: what was not, an error for example, is asked for anew."""

    def answer() -> ResponseReturnValue:
        admission: _Admission | None = g.get("admission")
        if admission is None or admission.confirmed:
            return dispatch()
        try:
            found = dispatch()
        except Exception:
            if admission.confirmed:
                raise
        else:
            if admission.confirmed:
                return found
        _admit(services().stores.versioned_cache.current(), confirmed=True)
        return dispatch()

    return answer


def _admit(remembered: CachedVersion, *, confirmed: bool) -> None:
    """Let the request in on what is remembered, or refuse it."""
    found = _caller(request.headers.get("Authorization", ""), remembered)
    g.admission = admission = _Admission(found, remembered, False)
    rate_limit.count(found.id, remembered)
    if confirmed:
        _confirm(admission)
    if found.read_only and not _reads(request.method, request.endpoint):
        raise Forbidden("This API key is read-only")


def _confirm(admission: _Admission) -> None:
    """What a request was let in on counts: its key is in force, and in use."""
    if not admission.confirmed:
        admission.confirmed = True
        services().stores.key_usage.note(admission.caller.id)


def _reads(method: str, endpoint: str | None) -> bool:
    return endpoint in READS_BY_POST or (method in READING and endpoint not in WRITES_BY_GET)


def _caller(header: str, remembered: CachedVersion) -> Caller:
    scheme, _, key = header.partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        raise Unauthenticated("Send your API key in the header Authorization: Bearer <API_KEY>")

    def load() -> Caller | None:
        with services().stores.database.reading() as session:
            return api_keys.caller(session, key)

    found = remembered.get_or_load(("caller", digest(key)), load)
    if found is None or found.expired:
        raise Unauthenticated("The API key is unknown, revoked or expired")
    return found
