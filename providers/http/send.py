"""``send`` makes every call to a provider: timeout, retries, token and errors in one place."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from providers.base import Account, CallReporter, Token
from providers.errors import (
    AddressNotPublic,
    AnswerTooLarge,
    LocalResourceExhausted,
    NoAnswer,
    ProviderError,
    RateLimited,
    Unavailable,
    UnknownHost,
    Unreadable,
)
from providers.http import transport
from providers.http.calls import JSON, Bearer, Call, ErrorReader, HttpReply, Json, late, unreadable

# Attempts after the first. More would not fit an interactive deadline.
RETRIES = 2

# Seconds before the first retry without a ``Retry-After``; doubled for the second, with random jitter.
BACKOFF = 0.25

# A retry with fewer seconds than this before the deadline cannot be answered in time.
MIN_LEFT = 0.05

# The standard has no fractions, but some servers send them.
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]+)?")


def seconds_before_retry(
    error: ProviderError,
    tries: int,
    *,
    deadline: float,
    reporter: CallReporter | None = None,
    repeatable: bool = True,
) -> float | None:
    """Seconds to wait before the retry after ``tries`` failures; None when the call is not retried.

    Retryable failures are reported to ``reporter``, because they may affect other calls too.
    """
    if not error.retryable:
        return None
    requested = error.retry_after if isinstance(error, Unavailable) else None
    pause = BACKOFF * 2 ** (tries - 1) * random.uniform(0.5, 1.5) if requested is None else requested
    again = repeatable and tries <= RETRIES
    if reporter is not None:
        # A ``Retry-After`` beyond the deadline is an answer, so it does not count as given up.
        given_up = not again or (requested is None and not _in_time(pause, deadline))
        allowed = reporter.failed(error, pause, given_up=given_up)
        again, pause = again and allowed is not None, allowed or 0.0
    return pause if again and _in_time(pause, deadline) else None


def _in_time(pause: float, deadline: float) -> bool:
    return time.monotonic() + pause + MIN_LEFT < deadline


def retry_after(value: str | None) -> float | None:
    """Seconds of a ``Retry-After`` (a number or an HTTP date); None for any other value."""
    if value is None:
        return None
    if _SECONDS.fullmatch(value.strip()):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


# Characters that a header can carry (a superset of RFC 6750, 2.1). No provider issues a token with others,
# so such a token is refreshed instead of sent, as if the provider had rejected it.
SENDABLE = re.compile(r"[!-~]+")

Answer = TypeVar("Answer")

# Called around every attempt, for tracing; receives the status of the answer.
Observer = Callable[[Call], AbstractContextManager[Callable[[int], None]]]
observe: Observer | None = None


def send(call: Call, error_for: ErrorReader, *, deadline: float, bearer: Bearer | None = None) -> Json:
    """The JSON object of a 2xx answer, ``{}`` when the call has none.

    :raise ProviderError: from ``error_for`` for any other answer; ``repeated`` when an earlier attempt may
        have been executed
    :raise Unavailable: without an answer in time; Unreadable when the answer is not a JSON object
    :raise TokenRejected: for a second 401, after the token was refreshed, or a first one to a password
    :raise AuthorizationInvalid: when a rejected token cannot be refreshed
    """
    return exchange(call, lambda reply: _answer(call, reply, error_for), deadline=deadline, bearer=bearer)


def exchange(
    call: Call,
    read: Callable[[HttpReply], Answer],
    *,
    deadline: float,
    bearer: Bearer | None = None,
    account: Account | None = None,
) -> Answer:
    """What ``read`` makes of the reply, whatever its status; it raises for an answer that is none.

    ``account`` is that of a call without a token: its reporter records the call, and its grace applies.

    :raise ProviderError: from ``read``, and as :func:`send`
    """
    reporter = bearer.reporter if bearer else account.reporter if account else None
    tries = 0
    unclear = False
    while True:
        # Outside the "try": a failed token source has already done its own retries.
        token = bearer.token(deadline=deadline) if bearer else None
        try:
            grace = bearer.grace if bearer else account.grace if account else 0.0
            reply = _observed(call, token, deadline, grace)
            if bearer is None or reply.status != 401:
                if bearer is not None and reply.proves_token and not call.envelope:
                    bearer.accept()
                answer = read(reply)
                if bearer is not None:
                    bearer.end_grace()
                if reporter is not None and not call.envelope:
                    reporter.answered()
                return answer
        except ProviderError as error:
            if call.envelope and isinstance(error, Unreadable):
                # The reader of the replies requests them one by one.
                raise
            error.repeated = unclear
            # A call that was rate limited, or never sent, was not executed.
            unclear = unclear or not (error.unsent or isinstance(error, RateLimited | LocalResourceExhausted))
            tries += 1
            if reporter is not None and not error.retryable:
                reporter.answered()
            pause = seconds_before_retry(
                error,
                tries,
                deadline=deadline,
                reporter=reporter,
                repeatable=call.repeatable,
            )
            if pause is None:
                raise
            time.sleep(pause)
        else:
            try:
                bearer.renew(call.provider, call.operation, deadline=deadline)
            except ProviderError as error:
                error.repeated = unclear
                raise


def attempt(call: Call, *, deadline: float, bearer: Bearer) -> HttpReply | Unavailable:
    """The reply to a single attempt, or the error without one. It is neither retried nor reported."""
    token = bearer.token(deadline=deadline)
    try:
        return _observed(call, token, deadline, bearer.grace)
    except Unavailable as error:
        return error


def _observed(call: Call, token: Token | None, deadline: float, grace: float) -> HttpReply:
    if observe is None:
        return _attempt(call, token, deadline, grace)
    with observe(call) as answered:
        reply = _attempt(call, token, deadline, grace)
        answered(reply.status)
        return reply


def _attempt(call: Call, token: Token | None, deadline: float, grace: float) -> HttpReply:
    headers = {"Accept": JSON, "Accept-Encoding": "gzip", "User-Agent": "almanac (gzip)"}
    headers |= call.headers
    if call.body is not None:
        headers["Content-Type"] = call.content_type
    if token is not None:
        if not SENDABLE.fullmatch(token.reveal):
            return HttpReply(call.provider, call.operation, 401, None)
        headers["Authorization"] = f"{call.scheme} {token.reveal}"
    began = time.monotonic()
    try:
        response, content = transport.exchange(
            call.method,
            call.url,
            headers,
            call.body,
            deadline=deadline,
            grace=grace,
            max_bytes=call.max_bytes,
            reach=call.reach,
        )
    except transport.OutOfTime as error:
        # "from None" here and below: requests' own errors carry the URL.
        waited = time.monotonic() - began
        raise late(call.provider, call.operation, waited=waited, unsent=error.unsent) from None
    except transport.NotSent:
        message = "The service lacks the means to ask this account just now"
        raise LocalResourceExhausted(message, operation=call.operation) from None
    except transport.NoSuchHost:
        message = f"{call.provider} could not be reached: there is no host of this name"
        raise UnknownHost(message, operation=call.operation, unsent=True) from None
    except transport.ConnectionFailed as error:
        message = f"{call.provider} could not be reached"
        raise NoAnswer(message, operation=call.operation, unsent=error.unsent) from None
    except transport.TooLong:
        raise AnswerTooLarge(
            f"{call.provider} gave an unreadable answer: it is longer than {call.max_bytes // 1024**2} MiB",
            operation=call.operation,
        ) from None
    except transport.Private:
        raise AddressNotPublic(
            f"{call.provider} is at an address of a private network, which this service does not call",
            operation=call.operation,
        ) from None
    wait = retry_after(response.headers.get("Retry-After"))
    location = response.headers.get("Location")
    body = call.decode(content)
    return HttpReply(
        call.provider, call.operation, response.status_code, body, wait, location, response.headers
    )


def _answer(call: Call, reply: HttpReply, error_for: ErrorReader) -> Json:
    if not reply.ok:
        raise error_for(reply)
    if not call.answers:
        return reply.body or {}
    if reply.body is None:
        raise unreadable(call.provider, call.operation)
    return reply.body
