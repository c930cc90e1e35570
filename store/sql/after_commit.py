"""After-commit hook: reports the webhook endpoints for which a transaction recorded events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from sqlalchemy import event
from sqlalchemy.orm import Session, sessionmaker

EventsCallback = Callable[[Collection[str]], None]

_ENDPOINTS = "webhook endpoints"


def note(session: Session, endpoint_ids: Iterable[str]) -> None:
    """Report these endpoints when the session's transaction commits."""
    session.info.setdefault(_ENDPOINTS, set()).update(endpoint_ids)


def call_after_commit(sessions: sessionmaker[Session], on_events_recorded: EventsCallback) -> None:
    """Call it after each commit of ``sessions`` with the endpoints that the transaction noted."""

    @event.listens_for(sessions, "after_commit")
    def committed(session: Session) -> None:
        if not session.in_nested_transaction() and (endpoints := session.info.pop(_ENDPOINTS, None)):
            on_events_recorded(endpoints)
