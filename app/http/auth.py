"""Authentication: the API key of a request, and the organization that it is bound to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from flask import Flask, g
from flask.typing import ResponseReturnValue

from app.http import rate_limit
from app.http.errors import Forbidden, Unauthenticated
from app.http.fast_context import current_globals, current_request
from app.http.route_facts import facts_of_request
from app.services import services
from store.cache.versioned_cache import CachedVersion
from store.security.api_keys import digest
from store.sql.queries import api_keys
from store.sql.queries.api_keys import Caller

PREFIX = "/v1/"


class Outdated(Exception):
    """The version under which the request loaded cached rows is no longer the current one."""


def install(app: Flask) -> None:
    """Require a key on every ``/v1`` route, before the request is parsed."""
    app.before_request(_authenticate)
    app.dispatch_request = _verifying(app.dispatch_request)  # type: ignore[method-assign]


@dataclass(slots=True)
class _Authentication:
    """The caller of a request, the cached rows it was found in, and whether their version was verified."""

    caller: Caller
    cached: CachedVersion
    verified: bool


def authenticate_as(found: Caller, cached: CachedVersion) -> None:
    """Authenticate a request by other means than an API key; ``cached`` is the version as it begins."""
    g.authentication = _Authentication(found, cached, verified=True)


def known_caller() -> Caller | None:
    """The caller of this request; None for requests without a key."""
    found: _Authentication | None = current_globals().get("authentication")
    return None if found is None else found.caller


def caller() -> Caller:
    """The caller of this request."""
    return _authentication().caller


def cached_version() -> CachedVersion:
    """The cached database rows, as they were when this request began."""
    return _authentication().cached


def within() -> int | None:
    """The internal id of the organization that the key is bound to; None if it reaches all."""
    return caller().organization_id


def require_whole_service(doing: str) -> None:
    """Reject a key that is bound to one organization.

    :raise Forbidden: with ``doing``, the attempted action, in its message
    """
    if within() is not None:
        raise Forbidden(f"{doing} needs an API key that is not bound to an organization")


def verify_version(stamp: bytes | None) -> None:
    """Check that the cached rows of this request have the version ``stamp``, read from Redis after it began.

    :raise Outdated: if their version is another one; the view then runs again
    """
    services().stores.versioned_cache.under(stamp)
    found = _authentication()
    # Without a stamp the version is unknown: Redis may have been flushed.
    if not found.verified and (stamp is None or found.cached.version != stamp):
        raise Outdated
    _mark_verified(found)


def verify_version_now() -> None:
    """As ``verify_version``, in a round trip of its own."""
    if not _authentication().verified:
        verify_version(services().stores.versioned_cache.current().version)


def _authentication() -> _Authentication:
    return cast(_Authentication, current_globals().authentication)


def _authenticate() -> None:
    request = current_request()
    if request.endpoint is None or not request.path.startswith(PREFIX):
        return
    facts = facts_of_request()
    if not facts.needs_key:
        return
    cache = services().stores.versioned_cache
    later = facts.verifies_version
    _authenticate_key(cache.recent() if later else cache.current(), verified=not later)


def _verifying(dispatch: Callable[[], ResponseReturnValue]) -> Callable[[], ResponseReturnValue]:
    """Run a view again, on the current version, if it ended without verifying the version that it used.

    That includes views that raised: the error may come from outdated rows.
    """

    def respond() -> ResponseReturnValue:
        found: _Authentication | None = current_globals().get("authentication")
        if found is None or found.verified:
            return dispatch()
        try:
            response = dispatch()
        except Exception:
            if found.verified:
                raise
        else:
            if found.verified:
                return response
        _authenticate_key(services().stores.versioned_cache.current(), verified=True)
        return dispatch()

    return respond


def _authenticate_key(cached: CachedVersion, *, verified: bool) -> None:
    """Authenticate the request by its API key, looked up in ``cached``.

    :raise ApiError: if the key is not valid, used up its rate limit, or may not write
    """
    request = current_request()
    found = _caller(request.headers.get("Authorization", ""), cached)
    authentication = _Authentication(found, cached, verified=False)
    current_globals().authentication = authentication
    rate_limit.count(found.id, cached)
    if verified:
        _mark_verified(authentication)
    if found.read_only and facts_of_request().writes_by(request.method):
        raise Forbidden("This API key is read-only")


def _mark_verified(found: _Authentication) -> None:
    """Mark the version as verified, and count the use of the key, which is now known to be in force."""
    if not found.verified:
        found.verified = True
        services().stores.key_usage.note(found.caller.id)


def _caller(header: str, cached: CachedVersion) -> Caller:
    scheme, _, key = header.partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        raise Unauthenticated("Send your API key in the header Authorization: Bearer <API_KEY>")

    def load() -> Caller | None:
        with services().stores.database.reading() as session:
            return api_keys.caller(session, key)

    found = cached.get_or_load(("caller", digest(key)), load)
    if found is None or found.expired:
        raise Unauthenticated("The API key is unknown, revoked or expired")
    return found
