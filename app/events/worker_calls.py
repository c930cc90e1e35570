"""Sends reads and writes of calendars and events to the workers, and answers writes with an unknown outcome.

A failed write may have taken effect.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.availability import connections
from app.http.errors import ApiError, ServiceUnavailable
from app.schemas.error_codes import Code
from app.services import services
from providers.base import Failed
from providers.errors import Problem, Reason
from store.cache.busy_cache import CalendarKey
from store.cache.cache_tags import write_tags
from store.sql.queries import connection_rows
from store.sql.queries.connection_rows import ConnectionRef
from workers.failures import BROKEN, TIMED_OUT
from workers.jobs import CreateEvent, EventWrite, Job, Reply, RespondToEvent, UpdateEvent
from workers.queues import Queue

log = logging.getLogger(__name__)


def gather(
    jobs: Mapping[str, Job], queue: Queue, *, deadline: float, bypass_admission: bool = False
) -> dict[str, Reply]:
    """The reply to each job, under the keys of ``jobs``."""
    replies = services().fanout.gather(
        list(jobs.values()), queue=queue, deadline=deadline, bypass_admission=bypass_admission
    )
    return dict(zip(jobs, replies, strict=True))


def read(jobs: Mapping[str, Job], *, until: float | None = None) -> dict[str, Reply]:
    """The reply to each read, under the keys of ``jobs``; ``until`` is a deadline of its own."""
    return gather(jobs, Queue.READS, deadline=services().deadline() if until is None else until)


def read_one(ref: ConnectionRef, job: Job) -> Reply:
    """The reply to one read of a connection."""
    return read({ref.id: job})[ref.id]


def write_events(
    jobs: Mapping[str, EventWrite],
    *,
    deadline: float,
    bypass_admission: bool = False,
) -> dict[str, Reply]:
    """The reply to each event write, by connection. ``bypass_admission`` as for ``Fanout.gather``.

    Every failed write invalidates what is cached of its own connection. If the write may have succeeded, its
    calendar is also invalidated for the other connections that read it, because the worker may have died
    before it did so.
    """
    replies = gather(jobs, Queue.WRITES, deadline=deadline, bypass_admission=bypass_admission)
    failed = {each: reply.failed for each, reply in replies.items() if reply.failed is not None}
    if failed:
        services().stores.busy.invalidate_connections(failed)
    may_have_succeeded = [
        each for each, why in failed.items() if why.reason is Reason.PROVIDER_ERROR or why.repeated
    ]
    if may_have_succeeded:
        _invalidate(jobs, may_have_succeeded)
    return replies


def _invalidate(jobs: Mapping[str, EventWrite], connection_ids: Sequence[str]) -> None:
    stores = services().stores
    try:
        with stores.database.reading() as session:
            rows = connection_rows.sealed(session, connection_ids)
    except SQLAlchemyError as error:
        # Workers invalidate their own writes. Only if one died do other connections stay stale for the TTL.
        log.warning("failed write invalidated for its own connection only: %s", type(error).__name__)
        return
    for each, row in rows.items():
        calendar = jobs[each].calendar
        owner = stores.calendar_lists.owner(row, CalendarKey(each, calendar))
        stores.busy.invalidate_tags(write_tags(row, calendar, owner), [each])


SAFE = "it is safe to repeat the request"

# Failures of a job that do not say whether the worker had sent the write.
_OUTCOME_UNKNOWN = (TIMED_OUT, BROKEN)


def send(jobs: Mapping[str, EventWrite], *, deadline: float) -> dict[str, Reply]:
    """The reply to each write, by connection. Without a reply in time, the outcome is unknown."""
    replies = write_events(jobs, deadline=deadline)
    return {each: _with_outcome(reply) for each, reply in replies.items()}


def send_one(ref: ConnectionRef, job: EventWrite, *, repeatable: bool = True) -> Reply:
    """The reply to one write; for ``repeatable``, see ``error``.

    :raise ApiError: when Redis or the broker fails meanwhile; the write may have taken effect, unless they
        failed before the job was sent
    """
    try:
        return send({ref.id: job}, deadline=services().deadline())[ref.id]
    except (RedisError, BrokerError) as error:
        raise interrupted(error, _sentence(job, repeatable=repeatable)) from error


def interrupted(error: Exception, sentence: str) -> ApiError:
    """The error answer to a write during which Redis or the broker failed; ``sentence`` says what is safe."""
    log.error("event write interrupted: %s", type(error).__name__)
    return outcome_unknown(ServiceUnavailable(), sentence)


def is_unknown(failed: Failed) -> bool:
    """Whether the error answer to a failed write says that its outcome is unknown."""
    cut_off = failed.problem is Problem.OUT_OF_SERVICE and failed.repeated
    return cut_off or failed.problem is Problem.OUTCOME_UNKNOWN


def may_have_happened(failed: Failed) -> bool:
    """Whether a failed write may have taken effect, or may soon do so."""
    if failed.problem in (Problem.EVENT_EXISTS, Problem.EVENT_REFUSED):
        return False
    return failed.repeated or failed.problem in (Problem.OUTCOME_UNKNOWN, Problem.EVENT_UNREADABLE)


def error(ref: ConnectionRef, job: EventWrite, failed: Failed, *, repeatable: bool = True) -> ApiError:
    """The error answer to a failed write.

    ``repeatable``: a create has a metaId or an idempotency key, so that the client can safely repeat it.
    """
    answer = connections.error(ref, failed, job.calendar)
    return outcome_unknown(answer, _sentence(job, repeatable=repeatable)) if is_unknown(failed) else answer


def outcome_unknown(answer: ApiError, sentence: str) -> ApiError:
    """The error answer to a write with an unknown outcome; ``sentence`` says what is safe."""
    return answer.reworded(f"{answer.error}. {sentence}", Code.OUTCOME_UNKNOWN)


def _sentence(job: EventWrite, *, repeatable: bool) -> str:
    """What may have happened, and how the client finishes the write."""
    if isinstance(job, UpdateEvent):
        changed = ", which answers 412 if it was" if job.etag is not None else ""
        return f"The event may have been changed: {SAFE}{changed}"
    if isinstance(job, RespondToEvent):
        return f"The response may have been written: {SAFE}"
    if not isinstance(job, CreateEvent):
        return f"The event may have been deleted: {SAFE}, which answers 404 if it was"
    if repeatable:
        return f"The event may exist: {SAFE} with the same Idempotency-Key or metaId"
    return (
        "The event may exist: look for it before you repeat the request, which had neither an "
        "Idempotency-Key nor a metaId: with one of them a request is safe to repeat"
    )


def _with_outcome(reply: Reply) -> Reply:
    if reply.failed not in _OUTCOME_UNKNOWN:
        return reply
    return replace(reply, failed=replace(reply.failed, problem=Problem.OUTCOME_UNKNOWN))
