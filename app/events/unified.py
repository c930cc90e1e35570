"""A unified event: one event in the main calendar of each account, tied together by its metaId.

The metaId stands in each provider's event itself, so that it survives our database.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from app.accounts import connections
from app.availability.failures import Failures, account_failure
from app.availability.selection import precheck
from app.events import creates as event_creates
from app.events.drafts import draft, notified
from app.http import idempotency
from app.http.errors import ApiError, Code, Conflict, NotFound, OutOfService, most_telling
from app.services import services
from providers.base import PRIMARY, Failed
from providers.contents import has_content
from providers.errors import Problem
from providers.events import Changes, Draft, Event
from providers.scopes import Operation
from store.coordination.locks import LockTimeout, unified_lock
from store.sql.queries.connections import ConnectionRef
from workers.fanout.jobs import CreateEvent, DeleteEvent, GetEvent, Reply, UpdateEvent
from workers.queues import Queue

log = logging.getLogger(__name__)

Copies = list[tuple[ConnectionRef, Event]]


class Outcomes(NamedTuple):
    """What became of one operation on every copy. Accounts without a copy stand nowhere."""

    done: list[tuple[ConnectionRef, Reply]]
    failed: list[tuple[ConnectionRef, Failed]]

    @property
    def copies(self) -> Copies:
        """The copies told by the answers."""
        return [(ref, event) for ref, reply in self.done for event in _events(reply)]


def get(refs: Sequence[ConnectionRef], meta_id: str) -> tuple[Copies, Failures]:
    """The copies that could be read, and the accounts that could not be asked.

    :raise ApiError: when there is no copy, or none could be read
    """
    _require_some(refs)
    refused = [(ref, failed) for ref in refs if (failed := precheck(ref, Operation.LIST_EVENTS))]
    willing = [ref for ref in refs if ref not in [other for other, _ in refused]]
    jobs = {ref.id: GetEvent(ref.id, PRIMARY, meta_id, by_meta=True) for ref in willing}
    replies = connections.gather(jobs, Queue.READS, deadline=connections.deadline())
    outcomes = _sorted_out(willing, replies)
    failures = Failures(
        [account_failure(*each) for each in [*refused, *outcomes.failed]], something_read=bool(outcomes.done)
    )
    if not outcomes.done:
        raise failures.error() if failures else NotFound("Event not found")
    return outcomes.copies, failures


def create(
    refs: Sequence[ConnectionRef],
    content: Changes,
    notify_for: Collection[str] | None,
    *,
    meta_id_is_new: bool,
    others: Sequence[ConnectionRef] = (),
) -> Copies:
    """Create the event in every account, or in none; ``meta_id_is_new`` as in ``Draft``.

    ``others`` are the user's accounts that get no copy from this request, but may have one.

    :raise Conflict: when an account has a copy with other content, and another account has none
    :raise ApiError: when one account failed; what was created has been deleted again
    """
    _require_some(refs)
    _require_all(refs, Operation.INSERT_EVENT, Operation.DELETE_EVENT)
    meta_id, seconds = str(content.meta_id), services().settings.fanout_deadline_seconds
    # From here on even a request that is refused may have done something.
    idempotency.note_work()
    try:
        redis = services().stores.redis
        # To create, and to undo it.
        with unified_lock(redis, refs[0].user, meta_id, waits=seconds, lasts=2 * seconds):
            deadline = connections.deadline()
            there = set() if meta_id_is_new else _present(refs, others, content, deadline)
            drafts = {
                ref.id: draft(
                    notified(content, ref, notify_for), ref, PRIMARY, meta_id_is_new=ref.id not in there
                )
                for ref in refs
            }
            jobs = {ref.id: CreateEvent(ref.id, PRIMARY, drafts[ref.id]) for ref in refs}
            outcomes = _sorted_out(refs, event_creates.write(jobs, deadline=deadline), creates=True)
            if outcomes.failed:
                left = _undo(outcomes, drafts)
                raise _not_created(outcomes, left, meta_id, made=_has_made(outcomes))
    except (RedisError, BrokerError) as error:
        # What was done may stand: repeated with this metaId, the request finds it.
        log.error("a unified event was cut off: %s", type(error).__name__)
        raise OutOfService({"metaId": meta_id}) from error
    except LockTimeout:
        raise Conflict(
            f"The event {meta_id} is being created by another request", headers={"Retry-After": "1"}
        ) from None
    return outcomes.copies


def _present(
    refs: Sequence[ConnectionRef], others: Sequence[ConnectionRef], content: Changes, deadline: float
) -> set[str]:
    """The connections that have a copy already.

    A missing copy is only made beside copies that say the same. ``others`` that cannot be read do not count.

    :raise Conflict: when a copy is missing and another one has other content
    :raise ApiError: when an account that is to get a copy could not be read; nothing was written
    """
    meta_id = str(content.meta_id)
    readable = [ref for ref in others if precheck(ref, Operation.LIST_EVENTS) is None]
    jobs = {ref.id: GetEvent(ref.id, PRIMARY, meta_id, by_meta=True) for ref in [*refs, *readable]}
    replies = connections.gather(jobs, Queue.READS, deadline=deadline)
    outcomes = _sorted_out(refs, replies)
    if outcomes.failed:
        raise _not_created(outcomes, [], meta_id, made=False)
    copies = [*outcomes.copies, *_sorted_out(readable, replies).copies]
    different = [ref for ref, event in copies if not has_content(event, content)]
    if different and len(outcomes.done) < len(refs):
        raise Conflict(
            f"The event {meta_id} exists in {_named(different)} with other content. "
            "Change or delete that copy, and repeat the request",
            beside={"metaId": meta_id},
        )
    return {ref.id for ref, _ in outcomes.done}


def update(
    refs: Sequence[ConnectionRef], meta_id: str, content: Changes, notify_for: Collection[str] | None
) -> Copies:
    """Change every copy.

    :raise ApiError: when there is no copy, or not every one could be changed
    """
    _require_some(refs)
    _require_all(refs, Operation.UPDATE_EVENT)
    jobs = {
        ref.id: UpdateEvent(ref.id, PRIMARY, meta_id, notified(content, ref, notify_for), by_meta=True)
        for ref in refs
    }
    return _all_or_named(
        _sorted_out(refs, connections.write(jobs, deadline=connections.deadline())), "changed"
    ).copies


def delete(refs: Sequence[ConnectionRef], meta_id: str, notify_for: Collection[str] | None) -> None:
    """Delete every copy.

    :raise ApiError: when there is no copy, or not every one could be deleted
    """
    _require_some(refs)
    _require_all(refs, Operation.DELETE_EVENT)
    jobs = {
        ref.id: DeleteEvent(
            ref.id, PRIMARY, meta_id, None if notify_for is None else ref.provider in notify_for, by_meta=True
        )
        for ref in refs
    }
    _all_or_named(_sorted_out(refs, connections.write(jobs, deadline=connections.deadline())), "deleted")


def _require_some(refs: Sequence[ConnectionRef]) -> None:
    if not refs:
        raise NotFound(connections.NO_CALENDARS)


def _require_all(refs: Sequence[ConnectionRef], *operations: Operation) -> None:
    """Refuse before anything is written when one account cannot take part."""
    for ref in refs:
        connections.require(ref, *operations)


def _sorted_out(
    refs: Sequence[ConnectionRef], replies: Mapping[str, Reply], *, creates: bool = False
) -> Outcomes:
    """What became of each account; one without a copy stands nowhere, unless it was to get one."""
    outcomes = Outcomes([], [])
    for ref in refs:
        reply = replies[ref.id]
        if reply.failed is None:
            outcomes.done.append((ref, reply))
        elif creates or reply.failed.problem is not Problem.EVENT_NOT_FOUND:
            outcomes.failed.append((ref, reply.failed))
    return outcomes


def _events(reply: Reply) -> list[Event]:
    return [event for each in reply.events.values() if not isinstance(each, Failed) for event in each]


def _all_or_named(outcomes: Outcomes, done: str) -> Outcomes:
    """The outcomes when no account failed.

    :raise ApiError: naming the accounts that failed, and those that did not
    """
    if not outcomes.failed:
        if not outcomes.done:
            raise NotFound("Event not found")
        return outcomes
    told = _told(outcomes.failed)
    if not outcomes.done:
        raise told
    reached, missed = _named([ref for ref, _ in outcomes.done]), _named([ref for ref, _ in outcomes.failed])
    sentence = (
        f"The event was {done} in {reached}, but not in {missed}: {told.error}. Repeat the request to finish"
    )
    failures = Failures([account_failure(*each) for each in outcomes.failed], something_read=True)
    beside = {**told.beside, "failedCalendars": failures.calendars()}
    raise ApiError(sentence, status=told.status, beside=beside, headers=told.headers)


def _told(failed: Sequence[tuple[ConnectionRef, Failed]]) -> ApiError:
    """The error that speaks for several accounts."""
    speaks = most_telling(each for _, each in failed)
    return next(connections.error(ref, each) for ref, each in failed if each is speaks)


def _undo(outcomes: Outcomes, drafts: Mapping[str, Draft]) -> list[ConnectionRef]:
    """Delete again what this request has created; returns the accounts where a copy may be left.

    An account that has not answered may have its copy all the same, now or in a moment. Each copy keeps the
    mark of the request that made it: one that was there before is never deleted.
    """
    made = {ref: event for ref, reply in outcomes.done if reply.made for event in _events(reply)}
    silent = [ref for ref, failed in outcomes.failed if event_creates.may_exist(failed)]
    jobs = {ref.id: _undoing(ref, drafts[ref.id], made.get(ref)) for ref in [*made, *silent]}
    replies = connections.write(jobs, deadline=connections.deadline(), finishing=True)
    left = [ref for ref in made if not _is_gone(replies[ref.id].failed)]
    left += [ref for ref in silent if replies[ref.id].failed is not None]
    for ref in left:
        log.warning("a copy may be left of an event that was not created", extra={"connection": ref.id})
    return left


def _undoing(ref: ConnectionRef, made: Draft, event: Event | None) -> DeleteEvent:
    """Delete a copy: by its id where that is known, else where one has the draft's metaId and mark."""
    content = made.content
    if event is not None:
        return DeleteEvent(ref.id, PRIMARY, event.id, content.notify)
    return DeleteEvent(ref.id, PRIMARY, str(content.meta_id), content.notify, by_meta=True, mark=made.mark)


def _is_gone(failed: Failed | None) -> bool:
    return failed is None or failed.problem is Problem.EVENT_NOT_FOUND


def _has_made(outcomes: Outcomes) -> bool:
    """Whether the request has made a copy, or may have made one."""
    made = any(reply.made for _, reply in outcomes.done)
    return made or any(event_creates.may_exist(failed) for _, failed in outcomes.failed)


def _not_created(outcomes: Outcomes, left: Sequence[ConnectionRef], meta_id: str, *, made: bool) -> ApiError:
    """The error of a create. ``left`` are the accounts that may have a copy; ``made``: some had one."""
    told = _told(outcomes.failed)
    outcome = "The copies of this request were deleted again" if made else "No copy was made"
    if left:
        outcome = (
            f"{_named(left)} may have a copy: it is safe to repeat the request with the metaId {meta_id}, "
            "or to delete the event"
        )
    return ApiError(
        f"{told.error}. {outcome}",
        status=told.status,
        beside={**told.beside, "metaId": meta_id},
        headers=told.headers,
        code=Code.OUTCOME_UNKNOWN if left else None,
    )


def _named(refs: Sequence[ConnectionRef]) -> str:
    return " and ".join(ref.provider for ref in refs)
