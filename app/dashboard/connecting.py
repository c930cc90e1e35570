"""Connecting a user's account by a link, the page after the provider's redirect, and disconnecting."""

from __future__ import annotations

from datetime import timedelta

from flask import request, url_for
from flask.typing import ResponseReturnValue

from app.accounts import consent_refusals, oauth_flow, user_connections
from app.accounts.disconnect import forget_one
from app.accounts.oauth_result_page import NO_TIMES
from app.accounts.user_connections import Change
from app.dashboard import account_page, connection_badge, forms
from app.dashboard.blueprint import blp, done, failed, page, warned
from app.dashboard.connection_badge import LEVELS
from app.dashboard.sign_in import sessions
from app.dashboard.users import get_user
from app.http.authentication import caller
from app.http.errors import Invalid, NotFound
from app.http.hosts import base_url
from app.http.routes import route_facts
from app.schemas.connections import MAX_LABEL, AuthorizeBody
from app.schemas.fields import Text, Word
from app.schemas.parameters import MAX_CONNECTION_ID
from app.services import services
from providers import registry
from providers.scopes import Level
from store.sql.models import OAuthConnection, Role, User, now
from store.sql.queries import audit, connections, users
from store.sql.queries.connections import ReplacedConnection
from store.sql.queries.user_invitations import ConsentRefusal
from workers.execution.consent_gaps import Permission

# A consent counts as just given for this long: the provider redirects at once.
JUST_NOW = timedelta(minutes=2)

# A new link is the advice for these.
_UNEXPLAINED = (ConsentRefusal.STALE, ConsentRefusal.NO_CODE, ConsentRefusal.CODE_REFUSED)

NO_ADDRESS = (
    "Providers redirect people back to this service, so it needs its public address: set "
    "ALMANAC_PUBLIC_URL and restart it."
)


class ConnectForm(forms.Body):
    """The level of access to ask the user for, and which connection the account replaces."""

    scope = Word(tuple(LEVELS), required=True)
    account = Text(longest=MAX_CONNECTION_ID, load_default=str(ReplacedConnection.DEFAULT))


class LabelForm(forms.Body):
    """The name of a connection, for people; without one it has none."""

    label = Text(longest=MAX_LABEL, load_default=None)


@blp.post("/users/<custom_id>/connect/<known_consent_provider:provider>")
@route_facts(role=Role.OPERATOR)
def connect(custom_id: str, provider: str) -> ResponseReturnValue:
    """Make two links to connect an account: one for this browser, one to send to the user."""
    user = get_user(custom_id)
    title = registry.title(provider)
    if provider not in oauth_flow.offered():
        return failed(
            f"{title} is not set up yet: enter its client id and secret first.", "user", custom_id=custom_id
        )
    form = forms.read(ConnectForm)
    if not form:
        return failed("Choose the access to request.", "user", custom_id=custom_id)
    body = AuthorizeBody().load(form.data)
    level = form.data["scope"]
    back = url_for("dashboard.connected", number=user.id, provider=provider, requested=level)
    try:
        to_open = oauth_flow.begin_here(
            caller(), custom_id, provider, body, site=base_url(), host_url=request.host_url, back=back
        )
        to_send = oauth_flow.begin(caller(), custom_id, provider, body, site=base_url())
    except Invalid:
        return failed(NO_ADDRESS, "user", custom_id=custom_id)
    except NotFound:
        return failed(_GONE, "user", custom_id=custom_id)
    with services().stores.database.writing() as session:
        audit.record(session, actor=sessions.actor(), action="makeLink", subject=f"{custom_id}/{provider}")
    response = page(
        "connect.html",
        user=user,
        title=title,
        level=LEVELS[Level(level)],
        replaced=_replaced(user, provider, body["account"]),
        adds=body["account"] == ReplacedConnection.ADD,
        named=body["account"] not in list(ReplacedConnection),
        to_open=to_open.link,
        to_send=to_send,
    )
    if to_open.cookie is not None:
        to_open.cookie.set_on(response)
    return response


@blp.get("/users/<custom_id>/connect/<known_consent_provider:provider>")
def reload_connect(custom_id: str, provider: str) -> ResponseReturnValue:
    """The address of the page with the links, opened again: the links are shown only when they are made."""
    get_user(custom_id)
    return warned(
        f"Links to connect {registry.title(provider)} are shown once. Make new ones here.",
        "user",
        custom_id=custom_id,
    )


@blp.get("/users/<custom_id>/connect-account/<known_form_provider:provider>")
@route_facts(role=Role.OPERATOR)
def account_form(custom_id: str, provider: str) -> ResponseReturnValue:
    """The form of a provider that connects an account, or one of the user's accounts again."""
    user = get_user(custom_id)
    row = account_page.reconnected(user.connections, provider)
    if row is None and account_page.ACCOUNT in request.args:
        return failed(_GONE, "user", custom_id=custom_id)
    return _account_form(user, account_page.blank(provider, row), provider)


@blp.post("/users/<custom_id>/connect-account/<known_form_provider:provider>")
@route_facts(role=Role.OPERATOR)
def connect_account(custom_id: str, provider: str) -> ResponseReturnValue:
    """Connect the account behind a form, after it was read once."""
    user = get_user(custom_id)
    account = request.args.get(account_page.ACCOUNT, ReplacedConnection.ADD)
    form, sentence = account_page.send(caller(), custom_id, provider, account)
    if not form:
        return _account_form(user, form, provider, 400)
    return done(sentence, "user", custom_id=custom_id)


def _account_form(user: User, form: forms.Form, provider: str, status: int = 200) -> ResponseReturnValue:
    row = account_page.reconnected(user.connections, provider)
    return page("account_form.html", status, user=user, form=form, **account_page.context(provider, row))


@blp.get("/connected/<int(max=2147483647):number>/<known_consent_provider:provider>")
def connected(number: int, provider: str) -> ResponseReturnValue:
    """The target of the redirect after a link that was opened in this browser.

    Success is reported only if the connection confirms it: anybody can write the query of this address.
    """
    with services().stores.database.reading() as session:
        user = users.by_number(session, number, organization_id=None)
        row = None if user is None else connections.newest(session, user.id, provider)
    if user is None:
        return failed("That user was deleted meanwhile.", "users")
    title = registry.title(provider)
    says_connected = request.args.get("connected") == "true"
    if says_connected and row is not None and row.usable and now() - row.created_at < JUST_NOW:
        sentence = (
            f"{row.email or 'The account'} is connected with {title}. "
            f"{connection_badge.access(row) or NO_TIMES}."
        )
        missing = connection_badge.missing(row, request.args.get("requested", ""))
        if missing is None and connection_badge.access(row) is not None:
            return done(sentence, "user", custom_id=user.custom_id)
        left_out = f" Not granted: {missing}." if missing else ""
        advice = "Connect it again, and leave every permission selected."
        return warned(f"{sentence}{left_out} {advice}", "user", custom_id=user.custom_id)
    return failed(
        f"{title} is not connected: {_reason(title)}. Accounts connected before are unchanged.",
        "user",
        custom_id=user.custom_id,
    )


@blp.post("/users/<custom_id>/disconnect/<connection_id>")
@route_facts(role=Role.OPERATOR)
def disconnect(custom_id: str, connection_id: str) -> ResponseReturnValue:
    """Delete a connection; its grant is revoked under the rules of the API."""
    row = _connection(custom_id, connection_id)
    if row is None or not forget_one(caller(), custom_id, connection_id):
        return failed("The account was already disconnected.", "user", custom_id=custom_id)
    gone = "tokens and cached data are" if row.grant_id is None else "cached data is"
    title = registry.title(row.provider)
    return done(f"{title} is disconnected: its {gone} deleted.", "user", custom_id=custom_id)


@blp.post("/users/<custom_id>/connections/<connection_id>/default")
@route_facts(role=Role.OPERATOR)
def make_default(custom_id: str, connection_id: str) -> ResponseReturnValue:
    """Make a connection the default one of its provider."""
    return _changed(custom_id, connection_id, Change(default=True))


@blp.post("/users/<custom_id>/connections/<connection_id>/label")
@route_facts(role=Role.OPERATOR)
def label(custom_id: str, connection_id: str) -> ResponseReturnValue:
    """Change the label of a connection."""
    form = forms.read(LabelForm)
    if not form:
        return failed(f"A label has at most {MAX_LABEL} characters.", "user", custom_id=custom_id)
    return _changed(custom_id, connection_id, Change(label=form.data["label"] or None, labels=True))


def _changed(custom_id: str, connection_id: str, change: Change) -> ResponseReturnValue:
    try:
        row = user_connections.change(caller(), custom_id, connection_id, change)
    except NotFound:
        return failed(_GONE, "user", custom_id=custom_id)
    name = row.label or row.email or "The account"
    sentence = f"{name} is the default account of {registry.title(row.provider)} now."
    return done(sentence if change.default else "The label is saved.", "user", custom_id=custom_id)


_GONE = "That account was disconnected or replaced meanwhile."


def _connection(custom_id: str, connection_id: str) -> OAuthConnection | None:
    rows = get_user(custom_id).connections
    return next((each for each in rows if each.public_id == connection_id), None)


def _replaced(user: User, provider: str, account: str) -> OAuthConnection | None:
    """The connection that a consent will replace; None if there is none."""
    rows = [each for each in user.connections if each.provider == provider]
    if account == ReplacedConnection.DEFAULT:
        return rows[0] if rows else None
    return next((each for each in rows if each.public_id == account), None)


def _reason(title: str) -> str:
    """Why the connection failed, by the code in the query."""
    refusal = consent_refusals.of_word(request.args.get("refusal", ""))
    if refusal is None or refusal in _UNEXPLAINED:
        return "it did not work this time; make a new link and try again"
    missing = [each for each in Permission if each in request.args.get("missing", "").split(",")]
    return consent_refusals.sentence(refusal, title, missing or list(Permission))
