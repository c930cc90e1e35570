"""Detects transactions that change rows which processes cache (``store.cache.versioned_cache``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Result
from sqlalchemy.orm import ORMExecuteState, Session, sessionmaker

from store.sql.models import (
    Administrator,
    ApiKey,
    AuditRecord,
    Channel,
    DashboardSession,
    HeldName,
    HeldTime,
    Hold,
    IdempotencyKey,
    Invitation,
    RecoveryCode,
    WebhookDelivery,
    WebhookEndpoint,
)

# Execution option of a statement that changes no cached value.
UNCACHED = "uncached"

# Models whose changes invalidate nothing. Channels are cached, but a notification of an ended channel is
# still correct. Held time has versions of its own.
_NEVER_CACHED = (
    AuditRecord,
    Channel,
    HeldName,
    HeldTime,
    Hold,
    IdempotencyKey,
    Invitation,
    RecoveryCode,
    WebhookDelivery,
    WebhookEndpoint,
)
# Inserts of these invalidate nothing: the absence of a key or a session is not cached.
_NOT_WHEN_NEW = (Administrator, ApiKey, DashboardSession, *_NEVER_CACHED)

_CHANGES = "changes"


def invalidate_on_commit(sessions: sessionmaker[Session], on_cached_rows_changed: Callable[[], None]) -> None:
    """Call it before and after each commit of ``sessions`` that changes cached rows."""

    @event.listens_for(sessions, "do_orm_execute")
    def executed(state: ORMExecuteState) -> Result[Any] | None:
        if state.is_select or state.execution_options.get(UNCACHED):
            return None
        if state.bind_mapper is not None and issubclass(state.bind_mapper.class_, _NEVER_CACHED):
            return None
        result = state.invoke_statement()
        if getattr(result, "rowcount", -1):
            state.session.info[_CHANGES] = True
        return result

    @event.listens_for(sessions, "after_flush")
    def flushed(session: Session, _context: object) -> None:
        new = [each for each in session.new if not isinstance(each, _NOT_WHEN_NEW)]
        other = [each for each in (*session.dirty, *session.deleted) if not isinstance(each, _NEVER_CACHED)]
        if new or other:
            session.info[_CHANGES] = True

    @event.listens_for(sessions, "before_commit")
    def committing(session: Session) -> None:
        if session.in_nested_transaction():
            # A savepoint: its changes are handled with the outer transaction.
            return
        session.flush()
        if session.info.get(_CHANGES):
            on_cached_rows_changed()

    @event.listens_for(sessions, "after_commit")
    def committed(session: Session) -> None:
        if not session.in_nested_transaction() and session.info.pop(_CHANGES, False):
            on_cached_rows_changed()
