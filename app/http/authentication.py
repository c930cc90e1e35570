"""The API key of a request: the caller, and the cached database rows in which the caller was found.

The routes pass ``Authentication`` down, so that code below them reads no state of Flask. Each key may have a
rate limit, its own or the installation's, and its organization one for all its keys: 429 when one is used up,
and ``RateLimit-*`` headers of the one with fewer requests left on every response.
"""

from __future__ import annotations

import logging
from typing import NamedTuple, cast

from flask import Flask, Response, g, request
from redis.exceptions import RedisError

from app.http.errors import ApiError, Forbidden, Unauthenticated, quota_exceeded
from app.http.routes import facts_of_request
from app.schemas.error_codes import Code
from app.services import services
from store.cache.versioned_cache import CachedRows
from store.coordination import api_rate_limiter, shares
from store.coordination.api_rate_limiter import Limits, RemainingQuota, RequestLimit
from store.security.crypto import digest
from store.sql.queries import api_keys
from store.sql.queries.api_keys import Caller

PREFIX = "/v1/"

log = logging.getLogger(__name__)

LIMIT, REMAINING, RESET = "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"

# In the scope of ASGI and the environment of WSGI: the quota of a request that is counted already.
COUNTED = "almanac.quota"


class RequestLimitReached(ApiError):
    """429: the key has used up its requests of this minute."""

    def __init__(self, quota: RemainingQuota) -> None:
        super().__init__(
            f"This API key is limited to {quota.limit} requests a minute; try again in {quota.reset} s",
            Code.KEY_RATE_LIMITED,
            retry_after=quota.reset,
        )


class Authentication(NamedTuple):
    """The caller of a request, and the cached rows of the current version, in which the caller was found."""

    caller: Caller
    rows: CachedRows

    @property
    def organization_id(self) -> int | None:
        """The internal id of the organization that the key is bound to; None if it reaches all."""
        return self.caller.organization_id


def install(app: Flask) -> None:
    """Require a key on every ``/v1`` route, before the request is parsed, and report its rate limit."""
    app.before_request(_authenticate)
    app.after_request(_set_headers)


def authenticate_as(caller: Caller, rows: CachedRows) -> None:
    """Authenticate a request by other means than an API key; ``rows`` are the cached rows as it begins."""
    g.authentication = Authentication(caller, rows)
    shares.set_tenant(tenant_of(caller), caller.quotas)


def known_caller() -> Caller | None:
    """The caller of this request; None for requests without a key."""
    found: Authentication | None = g.get("authentication")
    return None if found is None else found.caller


def authentication() -> Authentication:
    """How this request was authenticated."""
    return cast(Authentication, g.authentication)


def caller() -> Caller:
    """The caller of this request."""
    return authentication().caller


def caller_organization_id() -> int | None:
    """The internal id of the organization that the key is bound to; None if it reaches all."""
    return caller().organization_id


def tenant_of(caller: Caller) -> int:
    """Whose shares this caller uses."""
    return caller.organization_id or shares.UNBOUND


def cached_caller(header: str, rows: CachedRows) -> Caller | None:
    """The caller who sent this header, if the key is cached and has not expired."""
    found: Caller | None = rows.get(_cache_key(_api_key(header)))
    return None if found is None or found.expired else found


def find_caller(header: str, rows: CachedRows) -> Caller:
    """The caller who sent this header, from ``rows`` or from the database.

    :raise Unauthenticated: if the key is missing or not valid
    """
    key = _api_key(header)

    def load() -> Caller | None:
        with services().stores.database.reading() as session:
            return api_keys.caller(session, key)

    found = rows.get_or_load(_cache_key(key), load)
    if found is None or found.expired:
        raise Unauthenticated("The API key is unknown, revoked or expired", Code.API_KEY_INVALID)
    return found


def _authenticate() -> None:
    """Authenticate the request by its API key.

    :raise ApiError: if the key is not valid, used up its rate limit, or may not write
    """
    # Tests send several requests in one context.
    shares.set_tenant(shares.UNBOUND)
    if request.endpoint is None or not request.path.startswith(PREFIX):
        return
    facts = facts_of_request()
    if not facts.needs_key:
        return
    stores = services().stores
    rows = stores.versioned_cache.current()
    found = find_caller(request.headers.get("Authorization", ""), rows)
    authenticate_as(found, rows)
    _count(found, rows)
    stores.key_usage.note(found.id)
    if found.read_only and facts.writes_by(request.method):
        raise Forbidden("This API key is read-only", Code.KEY_READ_ONLY)
    if facts.manages_keys and not found.manages_keys:
        raise Forbidden("This API key may not manage API keys", Code.KEY_MAY_NOT_MANAGE_KEYS)
    # Last: a refused request needs no turn.
    shares.take_turn(shares.current.get())


def _api_key(header: str) -> str:
    scheme, _, key = header.partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        raise Unauthenticated(
            "Send your API key in the header Authorization: Bearer <API_KEY>", Code.API_KEY_MISSING
        )
    return key


def _cache_key(api_key: str) -> tuple[str, str]:
    return "caller", digest(api_key)


def _count(found: Caller, rows: CachedRows) -> None:
    """Count this request of a key, unless it is counted already.

    While Redis is down, requests are answered without being counted.

    :raise ApiError: if a limit is exceeded, of the key or of its organization
    """
    limits = limits_of(found)
    # Without a version, Redis was unreachable.
    if not limits or rows.version is None:
        return
    try:
        counted = request.environ.get(COUNTED)
        g.quota = counted or api_rate_limiter.take(services().stores.fast_redis, limits)
    except RedisError as error:
        log.warning("request not counted for the rate limit, Redis failed: %s", type(error).__name__)
        g.quota = None
    if g.quota is not None and g.quota.refused:
        if g.quota.of_organization:
            raise quota_exceeded(shares.Quota.REQUESTS_PER_MINUTE, g.quota.reset)
        raise RequestLimitReached(g.quota)


def limits_of(caller: Caller) -> Limits:
    """The limits of requests a minute for this caller's key and for its organization; empty without any."""
    most = caller.rate_limit or services().settings.rate_limit
    of_organization = caller.quotas.get(shares.Quota.REQUESTS_PER_MINUTE)
    limits = [RequestLimit(str(caller.id), most)] if most else []
    if of_organization is not None:
        limits.append(
            RequestLimit(f"organization:{caller.organization_id}", of_organization, of_organization=True)
        )
    return tuple(limits)


def quota_headers(quota: RemainingQuota) -> dict[str, str]:
    """The headers of a response that report the quota."""
    return {LIMIT: str(quota.limit), REMAINING: str(quota.remaining), RESET: str(quota.reset)}


def _set_headers(response: Response) -> Response:
    quota: RemainingQuota | None = g.get("quota")
    if quota is not None:
        response.headers.update(quota_headers(quota))
    return response
