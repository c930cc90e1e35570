"""``Idempotency-Key``: a client may repeat a request that creates something; it is created once.

The first request with a key claims it in the database and does the work. Its response is stored for 24 hours
and replayed to every repetition that still has access to it. An error is not stored: a repetition does the
work again. The key belongs to that one request from then on, unless the request was malformed.
"""

from __future__ import annotations

import hashlib
import logging
import re
from datetime import timedelta

import orjson
from flask import Flask, Response, g, request
from sqlalchemy.exc import SQLAlchemyError

from app.http.authentication import caller
from app.http.errors import ApiError, Conflict, Invalid
from app.http.routes import ReplayCheck, facts_of_request
from app.schemas.error_codes import Code
from app.services import services
from store.sql.models import now
from store.sql.queries import idempotency
from store.sql.queries.idempotency import Claim, ClaimRefusal, StoredResponse

log = logging.getLogger(__name__)

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
SHAPE = re.compile(r"[!-~]{1,255}", re.ASCII)

# The longest request waits for another one, creates, and undoes what it created; each has a deadline.
FANOUTS = 3
# Time that a request takes before and after the fan-outs.
MARGIN = timedelta(seconds=30)


def install(app: Flask) -> None:
    """Claim keys after the checks that reject a request unread: a rejected request claims no key."""
    app.before_request(_claim)
    app.after_request(_keep)
    app.teardown_request(_release)


def key() -> str | None:
    """The request's key as 64 hexadecimal digits, unique across callers; None without one."""
    found: str | None = g.get("idempotency_key")
    return found


def note_work() -> None:
    """Record that this request may have changed something, even if its response is an error."""
    g.idempotency_worked = True


def _claim() -> Response | None:
    sent = request.headers.get(HEADER)
    check = None if sent is None else facts_of_request().replay_check
    if sent is None or check is None:
        return None
    if not SHAPE.fullmatch(sent):
        raise Invalid(f"{HEADER} must have 1 to 255 characters, printable ASCII without spaces", param=HEADER)
    fingerprint = _fingerprint(sent)
    if fingerprint is None:
        return None
    g.idempotency_key = hashlib.sha256(f"{caller().id} {sent}".encode()).hexdigest()
    return _begin(g.idempotency_key, fingerprint, check)


def _fingerprint(idempotency_key: str) -> str | None:
    """A hash of the request; None for a body that is not JSON, which its route rejects.

    The key as sent is the salt: without it, a reader of the database cannot guess bodies.
    """
    try:
        body = _canonical(request.get_data())
    except orjson.JSONDecodeError:
        return None
    assert request.url_rule is not None, "an endpoint comes with its rule"
    head = [
        idempotency_key,
        request.method,
        request.url_rule.rule,
        request.view_args,
        sorted(request.args.lists()),
    ]
    # Times in the body may be local to this zone.
    head.append(request.headers.get("X-Timezone", ""))
    return hashlib.sha256(orjson.dumps(head, option=orjson.OPT_SORT_KEYS) + body).hexdigest()


def _canonical(body: bytes) -> bytes:
    """JSON without insignificant white space, keys sorted.

    :raise orjson.JSONDecodeError: if the body is not JSON
    """
    value = orjson.loads(body or b"{}")
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # orjson reads deeper nesting than it writes: such a body is compared as sent.
        return body


def _begin(digest: str, fingerprint: str, check: ReplayCheck) -> Response | None:
    """Claim the key, or replay the response of the earlier request.

    :raise ApiError: if the key is in use or belongs to another request, or the caller has no access to the
        response any more
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
        case StoredResponse():
            replay = _unpack(found.answer)
            parameters = orjson.loads(request.get_data() or b"{}") | (request.view_args or {})
            check(parameters, orjson.loads(replay.get_data()))
            return replay
        case ClaimRefusal.UNDER_WAY:
            raise Conflict(
                f"A request with this {HEADER} is still under way; try again",
                Code.IDEMPOTENCY_KEY_IN_USE,
                retry_after=1,
            )
        case ClaimRefusal.OTHER_REQUEST:
            raise ApiError(
                f"This {HEADER} was used with another request; each request needs a key of its own",
                Code.IDEMPOTENCY_KEY_REUSED,
            )


def _keep(response: Response) -> Response:
    claim: Claim | None = g.get("idempotency_claim")
    if claim is None:
        return response
    if response.status_code >= 400:
        # A malformed request has changed nothing: the client may correct it and reuse the key.
        g.idempotency_forget = response.status_code == 400 and not g.get("idempotency_worked")
        return response
    # The claim is not released any more: the work is done, even if its response cannot be stored.
    g.pop("idempotency_claim")
    stores = services().stores
    try:
        with stores.database.writing() as session:
            kept = idempotency.keep(session, stores.keyring, claim, _pack(response))
    except SQLAlchemyError as error:
        log.error("response not stored for its %s: %s", HEADER, type(error).__name__)
        return response
    if not kept:
        log.warning("%s took longer than its claim of the %s", request.endpoint, HEADER)
    return response


def _release(_error: BaseException | None) -> None:
    """Release the claim of a request that ended without success, by an error response or an exception."""
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
        log.error("%s not released, it stays claimed until it expires: %s", HEADER, type(error).__name__)


def _pack(response: Response) -> str:
    headers = [pair for pair in response.headers if pair[0] != "Content-Length"]
    body = response.get_data(as_text=True)
    return orjson.dumps({"status": response.status_code, "headers": headers, "body": body}).decode()


def _unpack(answer: str) -> Response:
    kept = orjson.loads(answer)
    headers = [*((name, value) for name, value in kept["headers"]), (REPLAYED, "true")]
    return Response(kept["body"], kept["status"], headers)
