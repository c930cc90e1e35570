"""Creates of events whose outcome is not known: the event may exist although the request failed."""

from __future__ import annotations

from dataclasses import replace

from app.accounts import connections
from app.http import idempotency
from app.http.errors import ApiError, Code
from providers.base import Failed
from providers.errors import Problem
from store.sql.queries.connections import ConnectionRef
from workers.fanout.client import LATE
from workers.fanout.failures import BROKEN
from workers.fanout.jobs import CreateEvent, Reply

# Failures of a job that say nothing of what the worker had sent before.
_SILENT = (LATE, BROKEN)


def write(jobs: dict[str, CreateEvent], *, deadline: float) -> dict[str, Reply]:
    """The reply to each create, by connection. No reply in time means that the outcome is unknown."""
    replies = connections.write(jobs, deadline=deadline)
    return {each: _without_silence(reply) for each, reply in replies.items()}


def may_exist(failed: Failed) -> bool:
    """Whether the event of a create that failed may exist all the same, or exist soon."""
    if failed.problem in (Problem.EVENT_EXISTS, Problem.EVENT_REFUSED):
        return False
    return failed.repeated or failed.problem in (Problem.OUTCOME_UNKNOWN, Problem.EVENT_UNREADABLE)


def error(ref: ConnectionRef, failed: Failed, *, repeatable: bool) -> ApiError:
    """The answer to a create that failed.

    ``repeatable``: the request has a metaId, so that it can be made again as it is.
    """
    told = connections.error(ref, failed)
    cut_off = failed.problem is Problem.OUT_OF_SERVICE and failed.repeated
    if not (cut_off or failed.problem is Problem.OUTCOME_UNKNOWN):
        return told
    advice = "it is safe to repeat the request with the same Idempotency-Key or metaId"
    if not repeatable and idempotency.key() is None:
        advice = (
            "look for it before you repeat the request, which had neither an Idempotency-Key nor a metaId: "
            "with one of them a request is safe to repeat"
        )
    sentence = f"{told.error}. The event may exist: {advice}"
    return ApiError(
        sentence,
        status=told.status,
        beside=told.beside,
        section=told.section,
        code=Code.OUTCOME_UNKNOWN,
    )


def _without_silence(reply: Reply) -> Reply:
    if reply.failed not in _SILENT:
        return reply
    return replace(reply, failed=replace(reply.failed, problem=Problem.OUTCOME_UNKNOWN))
