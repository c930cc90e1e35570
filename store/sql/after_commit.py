"""Tells which webhook endpoints have something to hear, once the transaction has committed that says so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from sqlalchemy import event
from sqlalchemy.orm import Session, sessionmaker

Tell = Callable[[Collection[str]], None]

_ENDPOINTS = "webhook endpoints"


def note(session: Session, endpoint_ids: Iterable[str]) -> None:
    """Have these endpoints told of when the session's transaction commits."""
    session.info.setdefault(_ENDPOINTS, set()).update(endpoint_ids)


def tell_after_commit(sessions: sessionmaker[Session], tell: Tell) -> None:
    """Have ``tell`` called with the endpoints that transactions of ``sessions`` note."""

    @event.listens_for(sessions, "after_commit")
    def committed(session: Session) -> None:
        if not session.in_nested_transaction() and (endpoints := session.info.pop(_ENDPOINTS, None)):
            tell(endpoints)
