"""Who looks at a page: the administrator whose browser this is."""

from __future__ import annotations

import logging
from typing import cast

from flask import g, request, session
from sqlalchemy.exc import SQLAlchemyError

from app.http import auth
from app.services import services
from store.cache.versioned_cache import CachedVersion
from store.security.api_keys import digest
from store.sql.models import Administrator, now
from store.sql.queries import dashboard_sessions
from store.sql.queries.api_keys import Caller
from store.sql.queries.dashboard_sessions import SignedIn

log = logging.getLogger(__name__)

_KEPT_AS = "session"


def recognise() -> bool:
    """Whether this request comes from a browser that is signed in, whose caller the API's parts then know."""
    secret = session.get(_KEPT_AS)
    if not secret:
        return False
    # A session that is ended changes what counts: the very next page of that browser notices.
    remembered = services().stores.versioned_cache.current()
    found = remembered.get_or_load(("dashboard session", digest(secret)), lambda: _load(secret))
    if found is None or found.ended:
        session.pop(_KEPT_AS)
        return False
    _note(found, remembered)
    g.dashboard_session = found
    caller = Caller(0, f"administrator {found.name}", None, read_only=False, shows_tokens=False)
    auth.authenticate_as(caller, remembered)
    return True


def _load(secret: str) -> SignedIn | None:
    with services().stores.database.reading() as reading:
        return dashboard_sessions.load(reading, secret)


def _note(found: SignedIn, remembered: CachedVersion) -> None:
    """Write down that the session was used, once in a while."""
    step = dashboard_sessions.SEEN_STEP
    if now() - found.seen_at < step:
        return

    def write() -> bool:
        try:
            with services().stores.database.writing() as writing:
                dashboard_sessions.seen(writing, found.id)
        except SQLAlchemyError as error:
            # A page that only looks does not fail for that; the next step tries again.
            log.warning("that a session was used is not written down: %s", type(error).__name__)
        return True

    # What is remembered of the session is older than what is written: once in a step is enough.
    remembered.get_or_load(("seen", found.id, now().timestamp() // step.total_seconds()), write)


def begin(administrator: Administrator) -> None:
    """Sign this browser in. Whatever it kept from before is forgotten, also a session fixed by another."""
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
    found = current()
    with services().stores.database.writing() as writing:
        dashboard_sessions.end(writing, found.administrator_id, found.id)
    session.clear()


def current() -> SignedIn:
    """The session of this request."""
    return cast(SignedIn, g.dashboard_session)


def administrator() -> str | None:
    """The name of who is signed in; None on the pages that anybody may see."""
    found: SignedIn | None = g.get("dashboard_session")
    return found.name if found is not None else None


def actor() -> str:
    """As whom the audit log knows who is signed in."""
    return auth.caller().visible
