"""Unified events: one copy in the main calendar of each account, all with the same metaId.

The metaId is stored in the event at each provider, and not in Almanac's database.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from app.availability import connections
from app.availability.failures import Failures, connection_failure
from app.availability.selection import precheck
from app.events import worker_calls
from app.events.bodies import draft, fitted, of_copy
from app.http.errors import ApiError, Conflict, Invalid, NotFound
from app.http.provider_failures import most_telling
from app.schemas.error_codes import Code
from app.services import services
from providers.base import PRIMARY, Failed
from providers.contents import has_content
from providers.errors import Problem
from providers.events import Changes, Draft, Event
from providers.scopes import Operation
from store.coordination import locks
from store.coordination.locks import LockTimeout
from store.sql.queries.connection_rows import ConnectionRef
from workers.jobs import CreateEvent, DeleteEvent, EventWrite, GetEvent, Reply, UpdateEvent

log = logging.getLogger(__name__)

Copies = list[tuple[ConnectionRef, Event]]


class Outcomes(NamedTuple):
    """The outcome of one operation on every copy. Accounts without a copy are in neither list."""

    done: list[tuple[ConnectionRef, Reply]]
    failed: list[tuple[ConnectionRef, Failed]]

    @property
    def accounts(self) -> list[ConnectionRef]:
        """The accounts in either list."""
        return [ref for ref, _ in (*self.done, *self.failed)]

    @property
    def copies(self) -> Copies:
        """The copies in the replies."""
        return [(ref, event) for ref, reply in self.done for event in _events(reply)]


def get(refs: Sequence[ConnectionRef], meta_id: str) -> tuple[Copies, Failures]:
    """The copies that could be read, and the accounts that could not be read.

    :raise ApiError: when there is no copy, or none could be read
    """
    _require_some(refs)
    precheck_failures = [(ref, failed) for ref in refs if (failed := precheck(ref, Operation.LIST_EVENTS))]
    readable = [ref for ref in refs if ref not in [other for other, _ in precheck_failures]]
    jobs = {ref.id: GetEvent(ref.id, PRIMARY, meta_id, by_meta=True) for ref in readable}
    replies = worker_calls.read(jobs)
    outcomes = _outcomes(readable, replies)
    failures = Failures(
        [connection_failure(*each) for each in [*precheck_failures, *outcomes.failed]],
        something_read=bool(outcomes.done),
    )
    if not outcomes.done:
        raise failures.error() if failures else NotFound("Event not found", Code.EVENT_NOT_FOUND)
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
    :raise ApiError: when one account failed; created copies have been deleted again
    """
    _require_some(refs)
    _require_all(refs, Operation.INSERT_EVENT, Operation.DELETE_EVENT)
    contents = {ref.id: of_copy(content, ref, notify_for, new=True) for ref in refs}
    meta_id, seconds = str(content.meta_id), services().settings.fanout_deadline_seconds
    try:
        redis = services().stores.redis
        # Of two requests that create the same event at once, one could find the other's first copy and rely
        # on it, and the other could then undo it. Time is left to delete the copies again.
        name = f"unified:{refs[0].user}:{meta_id}"
        with locks.hold(redis, name, deadline=time.monotonic() + 2 * seconds, wait=seconds):
            deadline = services().deadline()
            existing = set() if meta_id_is_new else _present(refs, others, content, deadline)
            drafts = {
                ref.id: draft(contents[ref.id], ref, PRIMARY, meta_id_is_new=ref.id not in existing)
                for ref in refs
            }
            jobs = {ref.id: CreateEvent(ref.id, PRIMARY, drafts[ref.id]) for ref in refs}
            outcomes = _outcomes(refs, worker_calls.send(jobs, deadline=deadline), creates=True)
            if outcomes.failed:
                left = _undo(outcomes, drafts)
                raise _not_created(outcomes, left, meta_id, made=_has_made(outcomes))
    except (RedisError, BrokerError) as error:
        # Copies may have been created. A repeated request with this metaId finds them.
        answer = worker_calls.interrupted(error, f"The event may exist: {_safe_to_repeat_text(meta_id)}")
        raise answer.reworded(answer.error, metaId=meta_id) from error
    except LockTimeout:
        raise Conflict(
            f"The event {meta_id} is being created by another request", Code.META_ID_IN_USE, retry_after=1
        ) from None
    return outcomes.copies


def _present(
    refs: Sequence[ConnectionRef], others: Sequence[ConnectionRef], content: Changes, deadline: float
) -> set[str]:
    """The connections that have a copy already.

    A missing copy is created only if all existing copies have the same content. ``others`` that cannot be
    read do not count.

    :raise Conflict: when a copy is missing and another one has other content
    :raise ApiError: when one of ``refs`` could not be read; nothing was written
    """
    meta_id = str(content.meta_id)
    readable = [ref for ref in others if precheck(ref, Operation.LIST_EVENTS) is None]
    jobs = {ref.id: GetEvent(ref.id, PRIMARY, meta_id, by_meta=True) for ref in [*refs, *readable]}
    replies = worker_calls.read(jobs, until=deadline)
    outcomes = _outcomes(refs, replies)
    if outcomes.failed:
        raise _not_created(outcomes, [], meta_id, made=False)
    copies = [*outcomes.copies, *_outcomes(readable, replies).copies]
    different = [ref for ref, event in copies if not _has_content(ref, event, content)]
    if different and len(outcomes.done) < len(refs):
        raise Conflict(
            f"The event {meta_id} exists in {_named(different, [*refs, *others])} with other content. "
            "Change or delete that copy, and repeat the request",
            Code.EVENT_COPIES_DIFFER,
            extra_fields={"metaId": meta_id},
        )
    return {ref.id for ref, _ in outcomes.done}


def _has_content(ref: ConnectionRef, event: Event, content: Changes) -> bool:
    try:
        return has_content(event, fitted(content, ref, new=True))
    except Invalid:
        # The account cannot store this content, and gets no copy from this request.
        return False


def update(
    refs: Sequence[ConnectionRef], meta_id: str, content: Changes, notify_for: Collection[str] | None
) -> Copies:
    """Change every copy.

    :raise ApiError: when there is no copy, or not every one could be changed
    """
    _require_some(refs)
    _require_all(refs, Operation.UPDATE_EVENT)
    jobs = {
        ref.id: UpdateEvent(ref.id, PRIMARY, meta_id, of_copy(content, ref, notify_for), by_meta=True)
        for ref in refs
    }
    return _require_success(_outcomes(refs, _sent(jobs, "changed")), "changed").copies


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
    _require_success(_outcomes(refs, _sent(jobs, "deleted")), "deleted")


def _sent(jobs: Mapping[str, EventWrite], done: str) -> dict[str, Reply]:
    """The replies to the changes or deletes of copies.

    :raise ApiError: when Redis or the broker fails meanwhile
    """
    try:
        return worker_calls.send(jobs, deadline=services().deadline())
    except (RedisError, BrokerError) as error:
        raise worker_calls.interrupted(error, f"Copies may have been {done}: {worker_calls.SAFE}") from error


def _require_some(refs: Sequence[ConnectionRef]) -> None:
    if not refs:
        raise NotFound(connections.NO_CALENDARS, Code.NO_CONNECTED_CALENDARS)


def _require_all(refs: Sequence[ConnectionRef], *operations: Operation) -> None:
    """Raise, before anything is written, if the grant of one account does not allow the operations."""
    for ref in refs:
        connections.require(ref, *operations)


def _outcomes(
    refs: Sequence[ConnectionRef], replies: Mapping[str, Reply], *, creates: bool = False
) -> Outcomes:
    """The outcome for each account. One without a copy is left out, except in a create, where it failed."""
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


def _require_success(outcomes: Outcomes, done: str) -> Outcomes:
    """The outcomes when no account failed.

    :raise ApiError: naming the accounts that failed and the accounts that succeeded
    """
    if not outcomes.failed:
        if not outcomes.done:
            raise NotFound("Event not found", Code.EVENT_NOT_FOUND)
        return outcomes
    error = _most_telling_error(outcomes.failed)
    perhaps = [ref for ref, failed in outcomes.failed if worker_calls.is_unknown(failed)]
    among = outcomes.accounts
    if not outcomes.done:
        sentence = f"The event may have been {done} in {_named(perhaps, among)}: {worker_calls.SAFE}"
        raise worker_calls.outcome_unknown(error, sentence) if perhaps else error
    missed = [ref for ref, _ in outcomes.failed if ref not in perhaps]
    parts = [f"not in {_named(missed, among)}"] if missed else []
    parts += [f"perhaps not in {_named(perhaps, among)}"] if perhaps else []
    succeeded = _named([ref for ref, _ in outcomes.done], among)
    sentence = (
        f"The event was {done} in {succeeded}, but {' and '.join(parts)}: "
        f"{error.error}. Repeat the request to finish"
    )
    code = Code.OUTCOME_UNKNOWN if perhaps else error.code
    raise error.reworded(sentence, code, failedCalendars=_failures(outcomes.failed).calendars())


def _most_telling_error(failed: Sequence[tuple[ConnectionRef, Failed]]) -> ApiError:
    """The error answer for the most telling of several failures; it lists all of their accounts."""
    most_telling_failure = most_telling(each for _, each in failed)
    error = next(connections.error(ref, each) for ref, each in failed if each is most_telling_failure)
    return _failures(failed).named_in(error)


def _failures(failed: Sequence[tuple[ConnectionRef, Failed]]) -> Failures:
    return Failures([connection_failure(*each) for each in failed], something_read=True)


def _undo(outcomes: Outcomes, drafts: Mapping[str, Draft]) -> list[ConnectionRef]:
    """Delete the copies that this request has created; returns the accounts where a copy may be left.

    An account without an answer may have a copy, now or soon. Each copy has the mark of the request that
    created it, so that an older copy is never deleted.
    """
    made = {ref: event for ref, reply in outcomes.done if reply.made for event in _events(reply)}
    unanswered = [ref for ref, failed in outcomes.failed if worker_calls.may_have_happened(failed)]
    jobs = {ref.id: _undo_job(ref, drafts[ref.id], made.get(ref)) for ref in [*made, *unanswered]}
    replies = worker_calls.write_events(jobs, deadline=services().deadline(), bypass_admission=True)
    left = [ref for ref in made if not _is_gone(replies[ref.id].failed)]
    left += [ref for ref in unanswered if replies[ref.id].failed is not None]
    for ref in left:
        log.warning("event copy may remain after rollback", extra={"connection": ref.id})
    return left


def _undo_job(ref: ConnectionRef, made: Draft, event: Event | None) -> DeleteEvent:
    """A job to delete a copy: by its id if that is known, else by the draft's metaId and mark."""
    content = made.content
    if event is not None:
        return DeleteEvent(ref.id, PRIMARY, event.id, content.notify)
    return DeleteEvent(ref.id, PRIMARY, str(content.meta_id), content.notify, by_meta=True, mark=made.mark)


def _is_gone(failed: Failed | None) -> bool:
    return failed is None or failed.problem is Problem.EVENT_NOT_FOUND


def _has_made(outcomes: Outcomes) -> bool:
    """Whether the request has created a copy, or may have."""
    made = any(reply.made for _, reply in outcomes.done)
    return made or any(worker_calls.may_have_happened(failed) for _, failed in outcomes.failed)


def _not_created(outcomes: Outcomes, left: Sequence[ConnectionRef], meta_id: str, *, made: bool) -> ApiError:
    """The error of a create. ``left``: accounts that may have a copy; ``made``: some copy was created."""
    error = _most_telling_error(outcomes.failed)
    outcome = "The copies of this request were deleted again" if made else "No copy was made"
    if left:
        named = _named(left, outcomes.accounts)
        outcome = f"{named} may have a copy: {_safe_to_repeat_text(meta_id)}, or to delete the event"
    # A copy that may have been created and is deleted now leaves nothing unknown.
    code = Code.PROVIDER_ERROR if error.code is Code.OUTCOME_UNKNOWN else error.code
    return error.reworded(f"{error.error}. {outcome}", Code.OUTCOME_UNKNOWN if left else code, metaId=meta_id)


def _safe_to_repeat_text(meta_id: str) -> str:
    return f"{worker_calls.SAFE} with the metaId {meta_id}"


def _named(refs: Sequence[ConnectionRef], among: Sequence[ConnectionRef]) -> str:
    """The accounts by provider; with the address, where several are ``among`` the accounts of the event."""
    count = Counter(ref.provider for ref in among)
    return " and ".join(
        f"{ref.provider} ({ref.email or ref.public_id})" if count[ref.provider] > 1 else ref.provider
        for ref in refs
    )
