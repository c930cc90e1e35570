"""The public page that an invitation opens: it names who invites, and leads to the provider's consent.

It is apart from the dashboard's paths, which an operator may close to the internet. The provider's state is
made when the person has chosen a provider, so the link itself is valid for days.
"""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from flask import Blueprint, Response, make_response, redirect, request, url_for
from flask.typing import ResponseReturnValue
from kombu.exceptions import OperationalError as BrokerError
from limits import RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import FixedWindowRateLimiter
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.accounts import customer_pages, oauth_flow, oauth_result_page
from app.accounts.oauth_flow import InvitationRef
from app.dashboard import account_page, forms
from app.dashboard.users import get_user
from app.http.errors import ApiError
from app.http.hosts import base_url
from app.http.requests import request_id
from app.schemas.connections import AuthorizeBody
from app.services import services
from providers import registry
from providers.scopes import Level
from store.sql.models import OAuthConnection, UserInvitation
from store.sql.queries import user_invitations
from store.sql.queries.api_keys import Caller
from store.sql.queries.connections import ReplacedConnection
from store.sql.queries.user_invitations import InvitationState, OpenedInvitation

log = logging.getLogger(__name__)

blp = Blueprint("invitation", __name__, url_prefix="/invitation")

# Status and sentence of the page of a link that can no longer be used.
CLOSED = {
    InvitationState.CONNECTED: (
        "Already connected",
        "This invitation was used, and a calendar is connected. You need to do nothing.",
    ),
    InvitationState.EXPIRED: (
        "This invitation has expired",
        "Invitations are valid for seven days. Ask the person who sent it for a new one.",
    ),
    InvitationState.REVOKED: (
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


@blp.errorhandler(BrokerError)
@blp.errorhandler(RedisError)
@blp.errorhandler(SQLAlchemyError)
def _down(error: Exception) -> Response:
    log.error("invitation not answered, request %s: %s", request_id(), type(error).__name__)
    return _closed(*DOWN, status=503)


@blp.get("/<secret>")
def opened(secret: str) -> ResponseReturnValue:
    """The page of an invitation, with each provider that is configured or has a form."""
    found = _found(secret)
    if isinstance(found, Response):
        return found
    if found.invitation.opened_at is None:
        with services().stores.database.writing() as session:
            user_invitations.note_opened(session, found.invitation.id)
    offered = [(name, registry.title(name)) for name in oauth_flow.offered()]
    by_form = [(name, registry.title(name), registry.form(name).presets) for name in registry.with_form()]
    rows = get_user(found.user.custom_id).connections
    return _page(
        200,
        secret=secret,
        inviter=_inviter(found),
        user=found.user.custom_id,
        boundary=customer_pages.BOUNDARIES[Level(found.invitation.scope)],
        until=found.invitation.expires_at,
        providers=offered,
        by_form=by_form,
        connected={each.provider for each in rows},
        ended=[each for each in rows if not each.alive],
    )


@blp.post("/<secret>/<known_consent_provider:provider>")
def begin(secret: str, provider: str) -> ResponseReturnValue:
    """Make the provider's state for this browser, and send it to the consent page.

    The account replaces the default one of the provider, or becomes another one.
    """
    found = _found(secret)
    if isinstance(found, Response):
        return found
    row = found.invitation
    account = (
        ReplacedConnection.ADD
        if request.args.get("account") == ReplacedConnection.ADD
        else ReplacedConnection.DEFAULT
    )
    try:
        begun = oauth_flow.begin_here(
            _caller(row),
            found.user.custom_id,
            provider,
            AuthorizeBody().load({"scope": row.scope, "account": account}),
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
    return customer_pages.private(response)


@blp.get("/<secret>/form/<known_form_provider:provider>")
def account_form(secret: str, provider: str) -> ResponseReturnValue:
    """The form of a provider that connects an account."""
    found = _found(secret)
    if isinstance(found, Response):
        return found
    return _account_form(200, secret, provider, account_page.blank(provider, _ended(found, provider)), found)


@blp.post("/<secret>/form/<known_form_provider:provider>")
def connect_account(secret: str, provider: str) -> ResponseReturnValue:
    """Connect the account behind a form, which uses the invitation up."""
    found = _found(secret)
    if isinstance(found, Response):
        return found
    row, ended = found.invitation, _ended(found, provider)
    account = ended.public_id if ended else ReplacedConnection.ADD
    form, sentence = account_page.send(
        _caller(row), found.user.custom_id, provider, account, invitation_id=row.id
    )
    if not form:
        return _account_form(400, secret, provider, form, found)
    return _page(200, title="Connected", hint=f"{sentence} You can close this page.")


def _account_form(
    status: int, secret: str, provider: str, form: forms.Form, found: OpenedInvitation
) -> Response:
    row = _ended(found, provider)
    values = account_page.context(provider, row)
    granted = oauth_result_page.level(provider, registry.scopes(provider).level_scopes(Level.WRITE))
    return _page(
        status,
        "invitation_form.html",
        secret=secret,
        form=form,
        boundary=customer_pages.BOUNDARIES[granted or Level.READ],
        heading=f"{'Reconnect' if row else 'Connect'} {values['title']}",
        **values,
    )


def _ended(found: OpenedInvitation, provider: str) -> OAuthConnection | None:
    """The connection to connect again: one that has ended, because the page shows what was entered for it."""
    rows = get_user(found.user.custom_id).connections
    return account_page.reconnected([each for each in rows if not each.alive], provider)


def _caller(row: UserInvitation) -> Caller:
    """The person who has made an invitation."""
    return Caller(
        0,
        row.created_by,
        None,
        read_only=False,
        shows_tokens=False,
        administrator_id=row.administrator_id,
        security_stamp=row.security_stamp,
    )


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


def _page(status: int, template: str = "invitation.html", **values: object) -> Response:
    # Browsers check the redirect of a sent form too, so the providers' pages are allowed.
    targets = " ".join(("'self'", *sorted(_origins())))
    return customer_pages.render(template, status, form_action=targets, **values)


def _origins() -> set[str]:
    """The origins of the providers' consent pages."""
    urls = services().registrations.consent_pages
    return {f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, urls)}


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
