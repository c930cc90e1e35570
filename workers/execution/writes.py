"""Performs the jobs of the writes queue."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from providers import registry
from providers.base import Account, CalendarProvider, Failed, WritableCalendars
from providers.errors import EventExists, EventNotFound, EventRefused, EventUnreadable, ProviderError
from providers.event_writes import is_unclear
from providers.events import Event, Scope
from providers.scopes import Operation
from store.cache.cache_tags import Tags, write_tags
from store.coordination.provider_limits import Access
from store.sql.queries import webhook_events
from store.sql.queries.connection_rows import Credentials
from store.sql.queries.webhook_events import WebhookEvent
from store.stores import Stores
from workers import failures
from workers.execution import checks, identity, sign_ins
from workers.execution.account_opening import open_account_by_form
from workers.execution.accounts import freshen, mark_dead_on_revoked_grant, open_account
from workers.execution.code_exchange import exchange
from workers.execution.directory import read_directory
from workers.execution.revocation import revoke
from workers.jobs import (
    ChangeSeries,
    CheckGrant,
    CheckRegistration,
    CreateEvent,
    DeleteEvent,
    DeleteSeries,
    EventWrite,
    ExchangeCode,
    FindSignInPage,
    FreshToken,
    Job,
    OpenAccount,
    ReadDirectory,
    Reply,
    RespondToEvent,
    Revoke,
    SignIn,
    StopChannels,
    UpdateEvent,
)
from workers.runtime import Runtime
from workers.upkeep import channel_opening

log = logging.getLogger(__name__)


def perform(runtime: Runtime, job: Job, credentials: Credentials | None, deadline: float) -> Reply:
    """Do one job of the writes queue. An expected failure is in the reply, never raised."""
    if isinstance(job, ExchangeCode):
        return exchange(runtime, job, deadline)
    if isinstance(job, OpenAccount):
        return open_account_by_form(runtime, job, deadline)
    if isinstance(job, Revoke):
        return revoke(runtime, job, deadline)
    if isinstance(job, CheckRegistration):
        return checks.check_registration(runtime, job, deadline)
    if isinstance(job, CheckGrant):
        return checks.check_grant(runtime, job, deadline)
    if isinstance(job, ReadDirectory):
        return read_directory(runtime, job, deadline)
    if isinstance(job, FindSignInPage):
        return sign_ins.find_page(runtime, job, deadline)
    if isinstance(job, SignIn):
        return sign_ins.sign_in(runtime, job, deadline)
    if credentials is None:
        raise TypeError(f"{job!r} is not a write")
    try:
        match job:
            case StopChannels():
                channel_opening.close_all(runtime, credentials, deadline)
                return Reply()
            case FreshToken():
                with mark_dead_on_revoked_grant(runtime, credentials.id):
                    freshen(runtime, credentials, deadline)
                return Reply()
            case CreateEvent() | UpdateEvent() | DeleteEvent() | RespondToEvent():
                return _write_event(runtime, job, credentials, deadline)
    except ProviderError as error:
        return Reply(failed=Failed.from_error(error))
    raise TypeError(f"{job!r} is not a write")


def _write_event(runtime: Runtime, job: EventWrite, credentials: Credentials, deadline: float) -> Reply:
    provider, account = open_account(runtime, credentials, Access.WRITES)
    writes = runtime.provider(credentials.provider).writes
    try:
        if writes is None:
            raise registry.scopes(credentials.provider).insufficient(Operation.UPDATE_EVENT)
        with mark_dead_on_revoked_grant(runtime, credentials.id):
            credentials, tags = _tags(runtime, credentials, provider, account, job.calendar, deadline)
            account = replace(account, mailbox=credentials.mailbox)
    except ProviderError as error:
        # Nothing was written. Without the tags the write could not be seen through other connections.
        return Reply(failed=replace(Failed.from_error(error), called=False, repeated=False))
    # Without the mark nothing is written: if this worker were killed, the cache would stay as it is.
    write = runtime.stores.busy.begin_write(tags, credentials.id, deadline - time.monotonic())
    try:
        return _write_and_invalidate(runtime, job, credentials, writes, account, tags, write, deadline)
    except (RedisError, SQLAlchemyError) as error:
        log.exception("the outcome of an event write is unknown", extra={"connection": credentials.id})
        return Reply(failed=replace(failures.failure_from(error), repeated=True))


def _write_and_invalidate(
    runtime: Runtime,
    job: EventWrite,
    credentials: Credentials,
    calendars: WritableCalendars,
    account: Account,
    tags: Tags,
    write: str,
    deadline: float,
) -> Reply:
    """Write the event at the provider, then invalidate every cached calendar that shows it.

    The mark of the write ends if its outcome is known.
    """
    changed, known = True, False
    try:
        with mark_dead_on_revoked_grant(runtime, credentials.id):
            reply = _write_at_provider(calendars, account, job, deadline)
        known = True
        return reply
    except ProviderError as error:
        known = not is_unclear(error)
        changed = isinstance(error, EventUnreadable) or not known
        raise
    finally:
        try:
            # A refused write has changed nothing, and must not drop what other tenants have cached.
            runtime.stores.busy.invalidate_tags(tags if changed else Tags(), [credentials.id])
            if known:
                runtime.stores.busy.end_write(tags, write)
        finally:
            # Webhook endpoints learn of the change even if Redis is down.
            if changed:
                record_change(runtime.stores, credentials.id, job.calendar)


def record_change(stores: Stores, connection_id: str, calendar_id: str) -> None:
    """Record a change for webhooks. A failure is logged, because the change itself is done."""
    try:
        with stores.database.writing() as session:
            webhook_events.record(
                session, WebhookEvent.CALENDAR_CHANGED, connection_id, calendar_id=calendar_id
            )
    except SQLAlchemyError:
        log.exception("a change was not recorded for webhooks", extra={"connection": connection_id})


def _write_at_provider(
    calendars: WritableCalendars,
    account: Account,
    job: EventWrite,
    deadline: float,
) -> Reply:
    match job:
        case CreateEvent():
            try:
                created = calendars.create_event(account, job.calendar, job.draft, deadline=deadline)
            except EventExists as error:
                error.message = job.draft.conflict_message(
                    takes_id=registry.definition(calendars.name).takes_event_ids
                )
                raise
            return Reply(events={job.calendar: (created.event,)}, made=created.made)
        case UpdateEvent():
            return Reply(events={job.calendar: (_update(calendars, account, job, deadline),)})
        case RespondToEvent():
            event = calendars.respond_to_event(
                account, job.calendar, job.event, job.response, deadline=deadline
            )
            return Reply(events={job.calendar: (event,)})
        case DeleteEvent():
            _delete(calendars, account, job, deadline)
            return Reply()


def _tags(
    runtime: Runtime,
    credentials: Credentials,
    provider: CalendarProvider,
    account: Account,
    calendar: str,
    deadline: float,
) -> tuple[Credentials, Tags]:
    """The identified connection, and the cache tags that a write to a calendar invalidates.

    They are read before the write.
    """
    stores = runtime.stores
    credentials = identity.with_main_calendar(stores, credentials, provider, account, deadline=deadline)
    owners = identity.owners(stores, credentials, provider, account, [calendar], deadline=deadline)
    return credentials, write_tags(credentials, calendar, owners.get(calendar, ""))


def _update(calendars: WritableCalendars, account: Account, job: UpdateEvent, deadline: float) -> Event:
    event_id = job.event
    if job.by_meta:
        event_id = calendars.find_event(account, job.calendar, job.event, deadline=deadline).id
    scope = job.scope if isinstance(job, ChangeSeries) else Scope.OCCURRENCE
    try:
        return calendars.update_event(
            account, job.calendar, event_id, job.changes, scope=scope, etag=job.etag, deadline=deadline
        )
    except EventRefused as refused:
        if job.changes.has_one_edge and refused.param is None:
            refused.message = _fault(calendars, account, job, event_id, deadline) or refused.message
        raise


def _fault(
    calendars: WritableCalendars, account: Account, job: UpdateEvent, event_id: str, deadline: float
) -> str | None:
    """Why a provider refuses a new start or end. The answer has no reason; only the stored event shows it."""
    try:
        event = calendars.event(account, job.calendar, event_id, deadline=deadline)
    except ProviderError:
        # The caller then keeps the provider's own message.
        return None
    return job.changes.edge_error_for(event)


def _delete(calendars: WritableCalendars, account: Account, job: DeleteEvent, deadline: float) -> None:
    event_id = job.event
    if job.by_meta:
        found = calendars.find_event(account, job.calendar, job.event, deadline=deadline)
        if job.mark not in (None, found.mark):
            raise EventNotFound("The event is another request's")
        event_id = found.id
    calendars.delete_event(
        account,
        job.calendar,
        event_id,
        notify=job.notify,
        scope=job.scope if isinstance(job, DeleteSeries) else Scope.OCCURRENCE,
        verified=job.by_meta,
        etag=job.etag,
        deadline=deadline,
    )
