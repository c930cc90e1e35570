"""The sessions of signed-in people."""

from __future__ import annotations

import logging
from typing import cast

from flask import g, request, session
from sqlalchemy.exc import SQLAlchemyError

from app.http import authentication
from app.http.routes import facts_of_request
from app.services import services
from store.cache.versioned_cache import CachedRows
from store.coordination import shares
from store.security.crypto import digest
from store.sql.models import Administrator, Role, now
from store.sql.queries import dashboard_sessions
from store.sql.queries.api_keys import Caller
from store.sql.queries.dashboard_sessions import SignedIn
from store.sql.queries.issuers import Issuer

log = logging.getLogger(__name__)

_KEPT_AS = "session"


def load_session() -> bool:
    """Whether this request comes from a signed-in browser. If so, set the request's session and caller."""
    secret = session.get(_KEPT_AS)
    if not secret:
        return False
    # Ending a session changes the cache's version, so the browser's next request loads it again.
    cached = services().stores.versioned_cache.current()
    signed_in = cached.get_or_load(("dashboard session", digest(secret)), lambda: _load(secret))
    if signed_in is None or signed_in.ended or _refuses_password(signed_in):
        session.pop(_KEPT_AS)
        return False
    if not facts_of_request().polled:
        _record_use(signed_in, cached)
    g.dashboard_session = signed_in
    views_only = not signed_in.role.includes(Role.OPERATOR)
    caller = Caller(
        0,
        f"{signed_in.role} {signed_in.name}",
        None,
        read_only=views_only,
        shows_tokens=False,
        administrator_id=signed_in.administrator_id,
        security_stamp=signed_in.security_stamp,
    )
    authentication.authenticate_as(caller, cached)
    shares.take_turn(shares.current.get())
    return True


def _refuses_password(signed_in: SignedIn) -> bool:
    """Whether the person has signed in with a password, and passwords are turned off."""
    return signed_in.confirmed_until is None and not services().settings.password_sign_in


def _load(secret: str) -> SignedIn | None:
    with services().stores.database.reading() as reading:
        return dashboard_sessions.load(reading, secret)


def _record_use(signed_in: SignedIn, rows: CachedRows) -> None:
    """Store when the session was last used, at most once in each ``SEEN_STEP``."""
    step = dashboard_sessions.SEEN_STEP
    if now() - signed_in.seen_at < step:
        return

    def write() -> bool:
        try:
            with services().stores.database.writing() as writing:
                dashboard_sessions.seen(writing, signed_in.id)
        except SQLAlchemyError as error:
            # The page must not fail because of this; the next step tries again.
            log.warning("last use of a session not stored: %s", type(error).__name__)
        return True

    # The cached session keeps its old ``seen_at``: this key limits the writes to one for each step.
    rows.get_or_load(("seen", signed_in.id, now().timestamp() // step.total_seconds()), write)


def begin(administrator: Administrator) -> None:
    """Sign this browser in. Its previous session is cleared, which prevents session fixation."""
    with services().stores.database.writing() as writing:
        secret = dashboard_sessions.begin(
            writing,
            administrator.id,
            address=request.remote_addr or "",
            agent=request.headers.get("User-Agent", ""),
        )
    session.clear()
    session[_KEPT_AS] = secret
    session.permanent = True


def end() -> None:
    """Sign this browser out."""
    signed_in = current()
    with services().stores.database.writing() as writing:
        dashboard_sessions.end(writing, signed_in.administrator_id, signed_in.id)
    session.clear()


def current() -> SignedIn:
    """The session of this request."""
    return cast(SignedIn, g.dashboard_session)


def administrator() -> str | None:
    """The name of the signed-in person; None on pages that need no sign-in."""
    signed_in: SignedIn | None = g.get("dashboard_session")
    return signed_in.name if signed_in is not None else None


def role() -> Role | None:
    """The role of the signed-in person; None on pages that need no sign-in."""
    signed_in: SignedIn | None = g.get("dashboard_session")
    return signed_in.role if signed_in is not None else None


def actor() -> str:
    """The signed-in person as the audit log names the actor: role and name."""
    return authentication.caller().visible


def issuer() -> Issuer:
    """The signed-in person as the issuer of a link."""
    return authentication.caller().issuer
