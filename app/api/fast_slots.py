"""Fast path for ``GET /v1/users/{userId}/scheduling``, while the key, the user and the periods are cached.

It bypasses Flask, its hooks and the threads: the event loop of the server parses the request, loads the busy
periods and computes the slots, in half a millisecond usually and in a few at most. It sends answers with
status 200 only. It shares the functions of the plain path, ``app.api.scheduling:UserScheduling.get`` behind
the hooks that ``app.web:create_app`` installs, which takes all other requests:

- every request of an installation with CORS, a rate limit or tracing;
- a header of ``_PLAIN_HEADERS``, a repeated header, or ``Accept-Encoding`` with zstd, weights or ``*``;
- ``calendarIds``, ``primaryOnly=false``, a name that ends in ``[]``, or a parameter that is not valid;
- a long query, more than ``MAX_SLOTS`` slots or ``MAX_BUCKETS`` buckets;
- a key or a user that this process has not cached, or not under the current version;
- a connection that cannot be read or is not identified;
- busy periods that are not cached, or older than ``ALMANAC_BUSY_TTL``;
- held time that this process has not cached under the current versions;
- a heartbeat of this process that is late;
- Redis that takes longer than ``REDIS_SECONDS``, for the next ``PAUSE`` too.
"""

from __future__ import annotations

import gzip
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

from flask import Flask
from redis.exceptions import RedisError
from werkzeug.datastructures import MultiDict

from app.accounts import connections
from app.api.scheduling import blp, slots_of_user
from app.availability import held_time, lookup, parameters
from app.availability.failures import Failures
from app.availability.freshness import now_ms
from app.availability.result import ResultBuilder
from app.availability.selection import CalendarRequest, Target, known_targets
from app.http import api_key_hook, fast_args, query_string, request_ids
from app.http.authentication import Authentication, RowsOutdated
from app.http.compression import MIN_BYTES
from app.http.errors import ApiError
from app.observability import access_log
from app.schemas.availability import UserSlotsQuery, ZoneHeader, ZoneQuery
from app.server.wsgi_adapter import Receive, Scope, Send, SlowClient, send_body
from app.services import EXTENSION
from scheduling.query import Query
from store.cache.busy_cache import BucketLoad
from store.cache.fast_redis import EventLoopRedis
from store.cache.versioned_cache import HeldNames
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
# A client that sends one of these requires more than this path does.
_PLAIN_HEADERS = frozenset({b"cache-control", b"content-length", b"transfer-encoding", b"origin"})
_QUERY, _ZONE_IN_QUERY, _ZONE_IN_HEADER = UserSlotsQuery(), ZoneQuery(), ZoneHeader()

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A parsed request, and the busy periods to load for it."""

    authentication: Authentication
    params: Mapping[str, Any]
    query: Query
    targets: Sequence[Target]
    held_names: HeldNames
    load: BucketLoad
    request_id: str
    accepts_gzip: bool


class FastSlots:
    """An ASGI application that answers cached slots itself and passes other requests to ``plain``."""

    def __init__(self, plain: Application, app: Flask) -> None:
        self._plain = plain
        self._app = app
        services = app.extensions[EXTENSION]
        settings = services.settings
        self._stores = services.stores
        self._redis = EventLoopRedis(settings.redis_url, seconds=REDIS_SECONDS)
        self._paused_until = 0.0
        self._bypassed = bool(settings.cors_origins or settings.rate_limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        response = await self._respond(scope) if scope.get("method") == "GET" else None
        if response is None:
            await self._plain(scope, receive, send)
            if scope["type"] == "lifespan":
                await self._redis.close()
            return
        headers, body = response
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            await send_body(send, body)
        except SlowClient as error:
            log.info("%s", error)

    async def _respond(self, scope: Scope) -> tuple[list[tuple[bytes, bytes]], bytes] | None:
        """The headers and the body of the answer; None if the plain path has to answer."""
        path = _PATH.fullmatch(scope["raw_path"])
        began = perf_counter()
        if path is None or self._bypassed or tracing.on() or began < self._paused_until:
            return None
        try:
            with self._app.app_context():
                parsed = self._parse(scope, path.group(1).decode())
            if parsed is None:
                return None
            values = await self._redis.mget(parsed.load.names())
            if self._stores.web_heartbeat.is_late:
                # The process was stopped. The plain path sends the heartbeat before it loads the cache.
                return None
            with self._app.app_context():
                response = self._render(parsed, values)
        except (ApiError, RowsOutdated):
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
            took = perf_counter() - began
            self._stores.counters.request(blp.metric_group, "2xx", took)
            access_log.record("GET", _ROUTE, 200, took, parsed.authentication.caller.visible)
        return response

    def _parse(self, scope: Scope, user: str) -> _Parsed | None:
        headers = dict(scope["headers"])
        repeated = len(headers) < len(scope["headers"])
        if repeated or not _PLAIN_HEADERS.isdisjoint(headers) or len(scope["query_string"]) > MAX_QUERY:
            return None
        # The key comes first: nothing else is parsed for strangers.
        cached = self._stores.versioned_cache.recent()
        caller = api_key_hook.cached_caller(headers.get(b"authorization", b"").decode("latin1"), cached)
        if caller is None:
            return None
        params, zone = _params(scope["query_string"], headers.get(b"x-timezone"))
        accepts_gzip = _accepts_gzip(headers.get(b"accept-encoding", b""))
        if params is None or accepts_gzip is None:
            return None
        query = parameters.slot_query(params, zone)
        if parameters.rough_max_slots(query) > MAX_SLOTS:
            return None
        parameters.check_slot_count({query: 1})
        authentication = Authentication(caller, cached, verified=False)
        refs = connections.cached_of_user(authentication, user, params)
        calendar_request = CalendarRequest(refs, parameters.selector(params, primary_only=True))
        selector = calendar_request.selector
        if not refs or selector.ids or selector.everything or lookup.precheck_failures([calendar_request]):
            return None
        if not all(map(connections.is_identified, refs)):
            return None
        targets = known_targets(calendar_request, {})
        keys = list(dict.fromkeys(target.key for target in targets))
        held_names = held_time.names_of([calendar_request], [targets])
        extra_keys = (*lookup.VERSION_KEYS, *held_names.version_keys())
        load = self._stores.busy.bucket_load(keys, *query.busy_range(), extra_keys=extra_keys)
        if len(keys) * len(load.numbers) > MAX_BUCKETS:
            return None
        request_id = request_ids.choose(headers.get(b"x-request-id", b"").decode("latin1"))
        return _Parsed(authentication, params, query, targets, held_names, load, request_id, accepts_gzip)

    def _render(
        self, parsed: _Parsed, values: Sequence[bytes | None]
    ) -> tuple[list[tuple[bytes, bytes]], bytes] | None:
        known = parsed.load.join(values)
        version = known.extra_values[0]
        parsed.authentication.verify_version(version)
        rows, versions = parsed.authentication.rows, known.extra_values[len(lookup.VERSION_KEYS) :]
        held = self._stores.held_times.cached(rows, parsed.held_names, versions)
        if held is None or known.missing or self._stores.busy.stale(known, now_ms()):
            return None
        self._stores.asked_calendars.note(parsed.load.keys, known)
        builder = ResultBuilder(parsed.load.keys, known, {}, {})
        builder.add_calendars(0, parsed.targets)
        result = builder.build(1, (), held_time.active_by_user(parsed.held_names, held))
        options = parameters.echoed_options(parsed.params, parsed.query)
        body = b"".join(slots_of_user(parsed.query, result, Failures.of(result), options))
        self._stores.counters.cache(hits=len(parsed.load.keys), stale=0, misses=0)
        headers = [
            (b"content-type", b"application/json"),
            (b"age", parameters.age_header(result)["Age"].encode()),
            (b"vary", b"Accept-Encoding"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-request-id", parsed.request_id.encode()),
        ]
        if parsed.accepts_gzip and len(body) >= MIN_BYTES:
            body = gzip.compress(body, 1)
            headers.append((b"content-encoding", b"gzip"))
        return [*headers, (b"content-length", str(len(body)).encode())], body


def _params(text: bytes, zone_header: bytes | None) -> tuple[dict[str, Any] | None, ZoneInfo]:
    """The parameters and the zone; without parameters, the plain path has to parse the query."""
    utc = ZoneInfo("UTC")
    # The plain path accepts ``name[]`` too.
    if b"[" in text or b"%5" in text:
        return None, utc
    source = query_string.parse(text)
    headers = MultiDict({} if zone_header is None else {"X-Timezone": zone_header.decode("latin1")})
    in_query = fast_args.read(_ZONE_IN_QUERY, source)
    in_header = fast_args.read(_ZONE_IN_HEADER, headers)
    if in_query is None or in_header is None:
        return None, utc
    return fast_args.read(_QUERY, source), in_query.get("timeZone") or in_header["zone"]


def _accepts_gzip(accepted: bytes) -> bool | None:
    """Whether the client accepts gzip; None if the plain path has to choose an encoding."""
    names = {name.strip() for name in accepted.lower().split(b",")}
    if b";" in accepted or not names.isdisjoint((b"zstd", b"*")):
        return None
    return b"gzip" in names
