"""Sends creates of events, and answers those with an unknown outcome: the event may exist after a failure."""

from __future__ import annotations

import logging
from dataclasses import replace

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from app.accounts import connections
from app.events import worker_calls
from app.http.error_codes import Code
from app.http.errors import ApiError, ServiceUnavailable
from providers.base import Failed
from providers.errors import Problem
from store.sql.queries.connection_refs import ConnectionRef
from workers.failures import BROKEN
from workers.fanout.client import TIMED_OUT
from workers.jobs import CreateEvent, Reply

log = logging.getLogger(__name__)

# Failures of a job that do not say whether the worker had sent the create.
_OUTCOME_UNKNOWN = (TIMED_OUT, BROKEN)


def send(jobs: dict[str, CreateEvent], *, deadline: float) -> dict[str, Reply]:
    """The reply to each create, by connection. Without a reply in time, the outcome is unknown."""
    replies = worker_calls.write_events(jobs, deadline=deadline)
    return {each: _with_outcome(reply) for each, reply in replies.items()}


def send_one(ref: ConnectionRef, job: CreateEvent, *, deadline: float, repeatable: bool) -> Reply:
    """The reply to one create; for ``repeatable``, see ``error``.

    :raise ApiError: when Redis or the broker fails meanwhile; the event may exist, unless they failed before
        the job was sent
    """
    try:
        return send({ref.id: job}, deadline=deadline)[ref.id]
    except (RedisError, BrokerError) as error:
        log.error("event create interrupted: %s", type(error).__name__)
        raise _outcome_unknown(ServiceUnavailable(), repeatable=repeatable) from error


def may_exist(failed: Failed) -> bool:
    """Whether the event of a failed create may exist, now or soon."""
    if failed.problem in (Problem.EVENT_EXISTS, Problem.EVENT_REFUSED):
        return False
    return failed.repeated or failed.problem in (Problem.OUTCOME_UNKNOWN, Problem.EVENT_UNREADABLE)


def error(ref: ConnectionRef, failed: Failed, calendar_id: str, *, repeatable: bool) -> ApiError:
    """The error answer to a failed create.

    ``repeatable``: the request has a metaId or an idempotency key, so that the client can safely repeat it.
    """
    answer = connections.error(ref, failed, calendar_id)
    cut_off = failed.problem is Problem.OUT_OF_SERVICE and failed.repeated
    if not (cut_off or failed.problem is Problem.OUTCOME_UNKNOWN):
        return answer
    return _outcome_unknown(answer, repeatable=repeatable)


def _outcome_unknown(answer: ApiError, *, repeatable: bool) -> ApiError:
    advice = "it is safe to repeat the request with the same Idempotency-Key or metaId"
    if not repeatable:
        advice = (
            "look for it before you repeat the request, which had neither an Idempotency-Key nor a metaId: "
            "with one of them a request is safe to repeat"
        )
    return answer.reworded(f"{answer.error}. The event may exist: {advice}", Code.OUTCOME_UNKNOWN)


def _with_outcome(reply: Reply) -> Reply:
    if reply.failed not in _OUTCOME_UNKNOWN:
        return reply
    return replace(reply, failed=replace(reply.failed, problem=Problem.OUTCOME_UNKNOWN))
