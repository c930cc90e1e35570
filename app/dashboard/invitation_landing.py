"""The public page that an invitation opens: it names who invites, and leads to the provider's consent.

It is apart from the dashboard's paths, which an operator may close to the internet. The provider's state is
made when the person has chosen a provider, so the link itself is valid for days.
"""

from __future__ import annotations

import logging
import secrets
from urllib.parse import urlsplit

from flask import Blueprint, Response, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from limits import RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import FixedWindowRateLimiter
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.accounts import oauth_flow
from app.accounts.oauth_flow import InvitationRef
from app.dashboard.connection_badge import LEVELS
from app.http.errors import ApiError
from app.http.hosts import base_url
from app.http.requests import request_id
from app.schemas.connections import AuthorizeBody
from app.services import services
from providers.scopes import Level
from store.sql.queries import user_invitations
from store.sql.queries.api_keys import Caller
from store.sql.queries.user_invitations import OpenedInvitation, State

log = logging.getLogger(__name__)

blp = Blueprint("invitation", __name__, url_prefix="/invitation")

# Status and sentence of the page of a link that can no longer be used.
CLOSED = {
    State.CONNECTED: (
        "Already connected",
        "This invitation was used, and a calendar is connected. You need to do nothing.",
    ),
    State.EXPIRED: (
        "This invitation has expired",
        "Invitations are valid for seven days. Ask the person who sent it for a new one.",
    ),
    State.REVOKED: (
        "This invitation was withdrawn",
        "A newer one may have been sent to you. Otherwise ask the person who sent it.",
    ),
}
UNKNOWN = ("This invitation is not valid", "Check that you opened the whole link, or ask for a new one.")
TOO_MANY = ("Too many invitations were opened", "Wait a minute, then open the link again.")
DOWN = ("The service is not available for a moment", "Nothing has changed. Open the link again in a minute.")


@blp.before_request
def _limit() -> ResponseReturnValue | None:
    if allowed():
        return None
    response = _closed(*TOO_MANY, status=429)
    response.headers["Retry-After"] = "60"
    return response


@blp.errorhandler(RedisError)
@blp.errorhandler(SQLAlchemyError)
def _down(error: Exception) -> Response:
    log.error("invitation not answered, request %s: %s", request_id(), type(error).__name__)
    return _closed(*DOWN, status=503)


@blp.get("/<secret>")
def opened(secret: str) -> ResponseReturnValue:
    """The page of an invitation, with a button for each configured provider."""
    found = _found(secret)
    if isinstance(found, Response):
        return found
    if found.invitation.opened_at is None:
        with services().stores.database.writing() as session:
            user_invitations.note_opened(session, found.invitation.id)
    offered = [(name, each.oauth.title) for name, each in oauth_flow.providers().items() if each.configured]
    return _page(
        200,
        secret=secret,
        inviter=_inviter(found),
        user=found.user.custom_id,
        level=LEVELS[Level(found.invitation.scope)].lower(),
        until=found.invitation.expires_at,
        providers=offered,
    )


@blp.post("/<secret>/<known_provider:provider>")
def begin(secret: str, provider: str) -> ResponseReturnValue:
    """Make the provider's state for this browser, and send it to the consent page."""
    found = _found(secret)
    if isinstance(found, Response):
        return found
    row = found.invitation
    inviter = Caller(
        0,
        row.created_by,
        None,
        read_only=False,
        shows_tokens=False,
        administrator_id=row.administrator_id,
        security_stamp=row.security_stamp,
    )
    try:
        begun = oauth_flow.begin_here(
            inviter,
            found.user.custom_id,
            provider,
            AuthorizeBody().load({"scope": row.scope}),
            site=base_url(),
            host_url=request.host_url,
            invitation=InvitationRef(row.id, url_for("invitation.opened", secret=secret)),
        )
    except ApiError as error:
        log.warning("an invitation cannot begin a consent: %s", error.error)
        return _closed("This does not work at the moment", "Tell the person who invited you.", status=503)
    response = make_response(redirect(begun.link, 303))
    if begun.cookie is not None:
        begun.cookie.set_on(response)
    return _private(response)


def _found(secret: str) -> OpenedInvitation | Response:
    """The invitation of this link, else the page that says why it cannot be used."""
    with services().stores.database.reading() as session:
        found = user_invitations.find(session, secret)
    if found is None:
        return _closed(*UNKNOWN, status=404)
    state = user_invitations.state(found.invitation)
    return _closed(*CLOSED[state], status=410) if state in CLOSED else found


def _inviter(invitation: OpenedInvitation) -> str | None:
    """The organization that invites; None when the user belongs to none or to several."""
    return invitation.organizations[0] if len(invitation.organizations) == 1 else None


def _closed(title: str, hint: str, *, status: int) -> Response:
    return _page(status, title=title, hint=hint)


def _page(status: int, **values: object) -> Response:
    nonce = secrets.token_urlsafe(16)
    text = render_template("invitation.html", nonce=nonce, **values)
    response = _private(Response(text, status, mimetype="text/html"))
    # Browsers check the redirect of a sent form too, so the providers' pages are allowed.
    targets = " ".join(sorted(_origins()))
    response.headers["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'self' {targets}; "
        "frame-ancestors 'none'"
    )
    return response


def _origins() -> set[str]:
    """The origins of the providers' consent pages."""
    urls = services().celery.runtime.registrations.consent_pages
    return {f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, urls)}


def _private(response: Response) -> Response:
    """Forbid caching and the Referer header: the URL of this page contains the secret."""
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


# A company's people may share one address, and each opens the page a few times.
PER_MINUTE = RateLimitItemPerMinute(120, 1, namespace="invitation")


def allowed() -> bool:
    """Count this request; whether its address is within the limit. Without Redis nothing is limited."""
    # The pool has the address; the URL only selects the kind of storage.
    pool = services().stores.redis.connection_pool
    limiter = FixedWindowRateLimiter(RedisStorage("redis://", connection_pool=pool))
    try:
        return limiter.hit(PER_MINUTE, request.remote_addr or "")
    except RedisError as error:
        log.warning("request not counted for the limit of invitations: %s", type(error).__name__)
        return True
