"""The warm path of ``GET /v1/users/{userId}/scheduling``: the key, the user and the periods are cached.

The event loop of the server parses the request, loads the busy periods, counts the request for the rate
limit, and computes the slots, without Flask and threads: in half a millisecond usually and in a few at most.
It sends answers with status 200 only. It shares the functions of ``app.api.scheduling:UserScheduling.get``
and of the hooks that ``app.web:create_app`` installs. All other requests take that path:

- a request with a body or a repeated header;
- ``calendarIds``, ``primaryOnly=false``, a name that ends in ``[]``, or a parameter that is not valid;
- a long query, more than ``MAX_SLOTS`` slots or ``MAX_BUCKETS`` buckets;
- a key, a user or a profile that this process has not cached, or not under the current version;
- a profile whose calendars belong to other mailboxes, which this process has not cached;
- a key that has used up its rate limit, or that of its organization;
- a connection that cannot be read or is not identified;
- busy periods that are not cached, or older than ``Cache-Control`` or ``ALMANAC_BUSY_TTL`` allow;
- held time that this process has not cached under the current versions;
- a heartbeat of this process that is late;
- Redis that takes longer than ``REDIS_SECONDS``, for the next ``PAUSE`` too.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

from flask import Flask
from redis.exceptions import RedisError
from werkzeug.datastructures import MultiDict

from app.api.scheduling import blp, slots_of_user
from app.availability import connections, held_time, lookup, parameters, profiles
from app.availability.failures import Failures
from app.availability.parameters import ANY_HOURS, now_ms, required_freshness
from app.availability.result import ResultBuilder
from app.availability.selection import CalendarRequest, Target, known_targets
from app.http import authentication, browser_headers, parsing, requests
from app.http.authentication import Authentication
from app.http.errors import ApiError
from app.http.requests import TRACE_HEADERS, log_answer
from app.http.responses import compress
from app.schemas.availability import UserSlotsQuery, ZoneHeader, ZoneQuery
from app.server.wsgi_adapter import Receive, Scope, Send, SlowClient, send_body
from app.services import EXTENSION
from scheduling.query import Query
from store.cache.busy_cache import BucketLoad
from store.cache.fast_redis import EventLoopRedis
from store.cache.versioned_cache import VERSION_KEY, HeldNames
from store.coordination import api_rate_limiter
from store.coordination.api_rate_limiter import Limits, RemainingQuota
from workers.telemetry import tracing

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# 30 days of slots of a quarter of an hour. More would keep other requests of the process waiting.
MAX_SLOTS = 2880
# Half a year of one calendar.
MAX_BUCKETS = 26
# In bytes. The longest usual query has 400.
MAX_QUERY = 2048
# The plain path waits longer for Redis.
REDIS_SECONDS = 0.5
# In seconds.
PAUSE = 1.0

_PATH = re.compile(rb"/v1/users/([A-Za-z0-9][A-Za-z0-9._-]{2,127})/scheduling")
_ROUTE = "/v1/users/{userId}/scheduling"
_BODY_HEADERS = frozenset({"content-length", "transfer-encoding"})
_QUERY, _ZONE_IN_QUERY, _ZONE_IN_HEADER = UserSlotsQuery(), ZoneQuery(), ZoneHeader()

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A parsed request, and the busy periods to load for it."""

    authentication: Authentication
    params: Mapping[str, Any]
    query: Query
    profiled: bool
    targets: Sequence[Target]
    held_names: HeldNames
    load: BucketLoad
    limits: Limits


@dataclass(frozen=True, slots=True)
class _Response:
    """The headers and the body of an answer."""

    headers: dict[str, str]
    body: bytes


class FastSlots:
    """An ASGI application that answers cached slots itself and passes other requests to ``plain``."""

    def __init__(self, plain: Application, app: Flask) -> None:
        self._plain = plain
        self._app = app
        services = app.extensions[EXTENSION]
        settings = services.settings
        self._stores = services.stores
        self._origins = frozenset(settings.cors_origins)
        self._redis = EventLoopRedis(settings.redis_url, seconds=REDIS_SECONDS)
        self._paused_until = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        response = await self._respond(scope) if scope.get("method") == "GET" else None
        if response is None:
            await self._plain(scope, receive, send)
            if scope["type"] == "lifespan":
                await self._redis.close()
            return
        sent = [(name.lower().encode(), value.encode("latin1")) for name, value in response.headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": sent})
        try:
            await send_body(send, response.body)
        except SlowClient as error:
            log.info("%s", error)

    async def _respond(self, scope: Scope) -> _Response | None:
        """The answer; None if the plain path has to answer."""
        path = _PATH.fullmatch(scope["raw_path"])
        began, began_ns = perf_counter(), time.time_ns()
        if path is None or began < self._paused_until:
            return None
        headers = {name.decode("latin1"): value.decode("latin1") for name, value in scope["headers"]}
        if len(headers) < len(scope["headers"]) or not _BODY_HEADERS.isdisjoint(headers):
            return None
        try:
            with self._app.app_context():
                parsed = self._parse(headers, scope["query_string"], path.group(1).decode())
            if parsed is None:
                return None
            values, quota = await self._load(parsed)
            # The plain path does not count the request again.
            scope[authentication.COUNTED] = quota
            if self._stores.web_heartbeat.is_late or (quota is not None and quota.refused):
                # The plain path refuses a request, and sends a late heartbeat before it loads the cache.
                return None
            with self._app.app_context():
                response = self._render(parsed, values, headers)
        except ApiError:
            # The plain path sends the error, if it remains.
            return None
        except (RedisError, TimeoutError) as error:
            log.warning("fast path paused, Redis failed: %s", type(error).__name__)
            self._paused_until = perf_counter() + PAUSE
            return None
        except Exception:
            log.exception("fast path failed, the plain path answers")
            return None
        if response is not None:
            if quota is not None:
                response.headers.update(authentication.quota_headers(quota))
            self._record(parsed, response, headers, perf_counter() - began, began_ns)
        return response

    def _parse(self, headers: Mapping[str, str], query_string: bytes, user: str) -> _Parsed | None:
        if len(query_string) > MAX_QUERY:
            return None
        # The key comes first: nothing else is parsed for strangers.
        cached = self._stores.versioned_cache.recent()
        caller = authentication.cached_caller(headers.get("authorization", ""), cached)
        if caller is None:
            return None
        params, zone = _params(query_string, headers.get("x-timezone"))
        if params is None:
            return None
        query = parameters.slot_query(params, zone)
        authenticated = Authentication(caller, cached)
        try:
            profile = profiles.cached_of_user(authenticated, params, user)
        except LookupError:
            return None
        query = profiles.query_of_user(params, query, ANY_HOURS, profile)
        if parameters.rough_max_slots(query) > MAX_SLOTS:
            return None
        parameters.check_slot_count({query: 1})
        refs = connections.cached_of_user(authenticated, user, params)
        calendar_request = CalendarRequest(refs, parameters.selector(params, primary_only=True))
        calendar_request = profiles.calendars(calendar_request, profile)
        selector = calendar_request.selector
        if not refs or selector.ids or selector.everything or lookup.precheck_failures([calendar_request]):
            return None
        if not all(map(connections.is_identified, refs)):
            return None
        targets = known_targets(calendar_request, {})
        owners = held_time.cached_owners(cached, targets)
        if owners is None:
            return None
        keys = list(dict.fromkeys(target.key for target in targets))
        held_names = held_time.names_of([calendar_request], [targets], owners)
        load = self._stores.busy.bucket_load(
            keys,
            *query.busy_range(),
            newer_than=required_freshness(headers.get("cache-control")).newer_than,
            extra_keys=(VERSION_KEY, *held_names.version_keys()),
        )
        if len(keys) * len(load.numbers) > MAX_BUCKETS:
            return None
        return _Parsed(
            authenticated,
            params,
            query,
            profile is not None,
            targets,
            held_names,
            load,
            authentication.limits_of(caller),
        )

    async def _load(self, parsed: _Parsed) -> tuple[Sequence[bytes | None], RemainingQuota | None]:
        """The values of the names to load, and the quota after this request is counted, in one round trip."""
        limits = parsed.limits
        count = [api_rate_limiter.command(limits)] if limits else []
        values, *counted = await self._redis.execute(("MGET", *parsed.load.names()), *count)
        return values, api_rate_limiter.quota(counted[0], limits) if limits else None

    def _render(
        self, parsed: _Parsed, values: Sequence[bytes | None], headers: Mapping[str, str]
    ) -> _Response | None:
        known = parsed.load.join(values)
        version, *versions = known.extra_values
        rows = self._stores.versioned_cache.switch_to(version)
        if rows is not parsed.authentication.rows:
            # The key or the user may have changed since this process has cached them.
            return None
        held = self._stores.held_times.cached(rows, parsed.held_names, versions)
        if held is None or known.missing or self._stores.busy.stale(known, now_ms()):
            return None
        self._stores.asked_calendars.note(parsed.load.keys, known)
        builder = ResultBuilder(parsed.load.keys, known, {}, {})
        builder.add_calendars(0, parsed.targets)
        result = builder.build(1, (), held_time.active_by_user(parsed.held_names, held))
        options = parameters.echoed_options(parsed.params, parsed.query, profiled=parsed.profiled)
        body = b"".join(slots_of_user(parsed.query, result, Failures.of(result), options))
        body, encoding = compress(body, headers.get("accept-encoding", ""))
        answered = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Vary": "Origin, Accept-Encoding" if self._origins else "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
            requests.HEADER: requests.choose(headers.get("x-request-id", "")),
            **parameters.age_header(result),
            **browser_headers.allowed_headers(headers.get("origin"), self._origins),
        }
        if encoding is not None:
            answered["Content-Encoding"] = encoding
        return _Response(answered, body)

    def _record(
        self, parsed: _Parsed, response: _Response, headers: Mapping[str, str], took: float, began: int
    ) -> None:
        """Count, log and trace an answered request; ``began`` is in nanoseconds since 1970."""
        caller = parsed.authentication.caller
        self._stores.key_usage.note(caller.id)
        self._stores.counters.cache(hits=len(parsed.load.keys), stale=0, misses=0)
        self._stores.counters.request(blp.metric_group, "2xx", took)
        log_answer("GET", _ROUTE, 200, took, caller.visible)
        if tracing.on():
            attributes: dict[str, str | int] = {
                "http.request.method": "GET",
                "http.response.status_code": 200,
                "http.route": _ROUTE,
                "almanac.request": response.headers[requests.HEADER],
            }
            carrier = {name: headers[name] for name in TRACE_HEADERS.values() if name in headers}
            with tracing.span(f"GET {_ROUTE}", "server", attributes, carrier=carrier, began=began):
                pass


def _params(text: bytes, zone_header: str | None) -> tuple[dict[str, Any] | None, ZoneInfo]:
    """The parameters and the zone; without parameters, the plain path has to parse the query."""
    utc = ZoneInfo("UTC")
    # The plain path accepts ``name[]`` too.
    if b"[" in text or b"%5" in text:
        return None, utc
    source = parsing.parse(text)
    headers = MultiDict({} if zone_header is None else {"X-Timezone": zone_header})
    in_query = parsing.read(_ZONE_IN_QUERY, source)
    in_header = parsing.read(_ZONE_IN_HEADER, headers)
    if in_query is None or in_header is None:
        return None, utc
    return parsing.read(_QUERY, source), in_query.get("timeZone") or in_header["zone"]
