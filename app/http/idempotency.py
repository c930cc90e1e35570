"""``Idempotency-Key``: a request that creates may be repeated, and creates once.

The first request with a key claims it in the database and does the work. Its answer is kept for 24 hours
and replayed to every repetition that may still see it. An error is not kept: the same request does the work
again, because what it lacked may exist by then. The key stands for that one request from then on, unless the
request was malformed.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import orjson
from flask import Flask, Response, g, request
from sqlalchemy.exc import SQLAlchemyError

from app.http.auth import caller
from app.http.errors import ApiError, Conflict, Invalid
from app.services import services
from store.sql.models import now
from store.sql.queries import idempotency
from store.sql.queries.idempotency import Answered, Claim, Refusal

log = logging.getLogger(__name__)

CheckAccess = Callable[[str], None]

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
SHAPE = re.compile(r"[!-~]{1,255}", re.ASCII)

# Their POST makes something new. Every other POST route makes nothing, and ignores the header.
CREATES = frozenset(
    {
        "users.Users",
        "organizations.Organizations",
        "organizations.Members",
        "oauth.Connection",
        "events.CalendarEvents",
        "unified.UnifiedEvents",
        "webhooks.Webhooks",
    }
)

# The longest request waits for another, creates, and undoes what it has created; each has a deadline.
FANOUTS = 3
# The time that a request takes before and after these.
MARGIN = timedelta(seconds=30)


def install(app: Flask, check_access: CheckAccess) -> None:
    """Claim keys after the checks that refuse a request without reading it: a refused request holds no key.

    ``check_access`` gets the body of a kept answer before it is replayed, and raises ``ApiError`` when the
    caller may not see it any more.
    """
    app.before_request(partial(_claim, check_access))
    app.after_request(_keep)
    app.teardown_request(_release)


def key() -> str | None:
    """The request's key as 64 hexadecimal digits that no other caller's key has; None without one."""
    found: str | None = g.get("idempotency_key")
    return found


def note_work() -> None:
    """From here on the request may have done something, whatever its answer."""
    g.idempotency_worked = True


def _claim(check_access: CheckAccess) -> Response | None:
    sent = request.headers.get(HEADER)
    if sent is None or request.method != "POST" or request.endpoint not in CREATES:
        return None
    if not SHAPE.fullmatch(sent):
        raise Invalid(f"{HEADER} must have 1 to 255 characters, printable ASCII without spaces")
    fingerprint = _fingerprint(sent)
    if fingerprint is None:
        return None
    g.idempotency_key = hashlib.sha256(f"{caller().id} {sent}".encode()).hexdigest()
    return _begin(g.idempotency_key, fingerprint, check_access)


def _fingerprint(sent: str) -> str | None:
    """A hash of the request; None for a body that its route refuses as unreadable.

    The key as it was sent salts it: a reader of the database cannot try out bodies.
    """
    try:
        body = _canonical(request.get_data())
    except orjson.JSONDecodeError:
        return None
    assert request.url_rule is not None, "an endpoint comes with its rule"
    head = [sent, request.method, request.url_rule.rule, request.view_args, sorted(request.args.lists())]
    # A time in the body may be one of this zone.
    head.append(request.headers.get("X-Timezone", ""))
    return hashlib.sha256(orjson.dumps(head, option=orjson.OPT_SORT_KEYS) + body).hexdigest()


def _canonical(body: bytes) -> bytes:
    """JSON without what means nothing: white space, the order of keys.

    :raise orjson.JSONDecodeError: when it is none
    """
    value = orjson.loads(body or b"{}")
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # Nested deeper than orjson writes, though not than it reads: such a body is compared as it came.
        return body


def _begin(digest: str, fingerprint: str, check_access: CheckAccess) -> Response | None:
    """Claim the key, or replay the answer of the earlier request.

    :raise ApiError: when the key is in use or is another request's, or the caller may not see the answer
    """
    stores = services().stores
    until = now() + FANOUTS * timedelta(seconds=stores.settings.fanout_deadline_seconds) + MARGIN
    with stores.database.writing() as session:
        found = idempotency.claim(
            session,
            stores.keyring,
            api_key_id=caller().id,
            digest=digest,
            fingerprint=fingerprint,
            until=until,
        )
    match found:
        case Claim():
            g.idempotency_claim = found
            return None
        case Answered():
            replay = _unpack(found.answer)
            check_access(replay.get_data(as_text=True))
            return replay
        case Refusal.UNDER_WAY:
            raise Conflict(
                f"A request with this {HEADER} is still under way; try again", headers={"Retry-After": "1"}
            )
        case Refusal.OTHER_REQUEST:
            raise ApiError(
                f"This {HEADER} was used with another request; each request needs a key of its own",
                status=422,
            )


def _keep(response: Response) -> Response:
    claim: Claim | None = g.get("idempotency_claim")
    if claim is None:
        return response
    if response.status_code >= 400:
        # A request that could not be understood has done nothing: the client may correct it and keep the key.
        g.idempotency_forget = response.status_code == 400 and not g.get("idempotency_worked")
        return response
    # From here on the key is not given free: its work is done, whether or not the answer can be kept.
    g.pop("idempotency_claim")
    stores = services().stores
    try:
        with stores.database.writing() as session:
            kept = idempotency.keep(session, stores.keyring, claim, _pack(response))
    except SQLAlchemyError as error:
        log.error("an answer could not be kept for its %s: %s", HEADER, type(error).__name__)
        return response
    if not kept:
        log.warning("%s took longer than its claim of an %s", request.endpoint, HEADER)
    return response


def _release(_error: BaseException | None) -> None:
    """Release the claim of a request that ended without success, however it ended."""
    claim: Claim | None = g.pop("idempotency_claim", None)
    if claim is None:
        return
    try:
        with services().stores.database.writing() as session:
            if g.get("idempotency_forget"):
                idempotency.forget(session, claim)
            else:
                idempotency.release(session, claim)
    except SQLAlchemyError as error:
        log.error("an %s stays claimed until its time is up: %s", HEADER, type(error).__name__)


def _pack(response: Response) -> str:
    headers = [pair for pair in response.headers if pair[0] != "Content-Length"]
    body = response.get_data(as_text=True)
    return orjson.dumps({"status": response.status_code, "headers": headers, "body": body}).decode()


def _unpack(answer: str) -> Response:
    kept = orjson.loads(answer)
    headers = [*((name, value) for name, value in kept["headers"]), (REPLAYED, "true")]
    return Response(kept["body"], kept["status"], headers)
