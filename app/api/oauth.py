"""Routes for the OAuth connections of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask.views import MethodView

from app.accounts import delegations
from app.accounts.disconnect import clean_up, forget_default
from app.accounts.ownership import CONNECTION, own_user
from app.accounts.user_connections import posted_tokens
from app.api import replay_access
from app.http import paging
from app.http.authentication import caller, caller_organization_id
from app.http.errors import Conflict, Forbidden, NotFound
from app.http.provider_failures import request_failed
from app.http.routes import Blueprint, route_facts
from app.schemas.connections import (
    AccessTokenSchema,
    ConnectionBody,
    ConnectionSchema,
    ConnectionsQuery,
    RevokeQuery,
    ShowTokenQuery,
    connection_view,
)
from app.schemas.error_codes import Code
from app.schemas.records import SuccessSchema
from app.services import services
from providers import registry
from providers.base import Failed
from providers.errors import Reason, connection_ended
from store.sql.models import OAuthConnection
from store.sql.queries import audit, connection_rows, connections, users
from workers.jobs import FreshToken

blp = Blueprint(
    "oauth",
    __name__,
    metric_group="oauth",
    description=f"The default account of a user at {registry.titles('and')} each. An account is connected by "
    "consent, or from tokens that you have already. The routes under `connections` have the other accounts.",
    no_store=True,
)


@blp.route("/users/<user_id:userId>/oauth")
class Connections(MethodView):
    @route_facts("listConnections", codes=(Code.KEY_MAY_NOT_SHOW_TOKENS,))
    @blp.arguments(ConnectionsQuery, location="query")
    @blp.response(200, ConnectionSchema(many=True))
    def get(self, params: dict[str, Any], userId: str) -> list[dict[str, Any]]:
        """List a user's default connections

        The default one with each provider. `showToken` needs an API key that may show tokens; the audit log
        records each use.
        """
        _check_shows_tokens(params["showToken"])
        with services().stores.database.reading() as session:
            user = users.load(
                session, userId, organization_id=caller_organization_id(), include=["oauthConnections"]
            )
            if user is None:
                raise NotFound("User not found", Code.USER_NOT_FOUND)
        # The default one is the first of its provider.
        defaults = {each.provider: each for each in reversed(user.connections)}
        page = paging.cut_short_list(params, list(defaults.values()), "provider")
        return [_view(row, userId, shown=params["showToken"]) for row in page]


@blp.route("/users/<user_id:userId>/oauth/<consent_provider:provider>")
class NewConnection(MethodView):
    @route_facts(
        "storeConnection",
        replay_check=replay_access.connection,
        codes=(Code.ORGANIZATION_NOT_FOUND, Code.GRANT_NOT_FOUND, Code.MEMBER_NOT_FOUND),
    )
    @blp.arguments(ConnectionBody)
    @blp.response(201, ConnectionSchema)
    def post(self, body: dict[str, Any], userId: str, provider: str) -> dict[str, Any]:
        """Store the default connection with a provider

        From tokens that you obtained yourself; this service never revokes them. The default connection with
        the provider is replaced. An API key that is bound to an organization may do this for users who belong
        to no other.

        With the type `delegated` there are no tokens: the mailbox `email` is read by the grant of
        `organization`.
        """
        if body["type"] == "delegated":
            return _delegate(body, userId, provider)
        stores = services().stores
        tokens = posted_tokens(body)
        with stores.database.writing() as session:
            row, replaced = connections.replace(
                session,
                stores.keyring,
                user_id=own_user(session, caller(), userId, otherwise=CONNECTION).id,
                provider=provider,
                email=body["email"],
                scope=registry.scopes(provider).expand_levels(body["scope"]),
                tokens=tokens,
            )
            action = "replaceConnection" if replaced else "storeConnection"
            audit.record(session, actor=caller().visible, action=action, subject=f"{userId}/{provider}")
        clean_up(replaced)
        return connection_view(row)


@blp.route("/users/<user_id:userId>/oauth/<provider:provider>")
class Connection(MethodView):
    @route_facts("getConnection", codes=(Code.CONNECTION_NOT_FOUND, Code.KEY_MAY_NOT_SHOW_TOKENS))
    @blp.arguments(ShowTokenQuery, location="query")
    @blp.response(200, ConnectionSchema)
    def get(self, params: dict[str, Any], userId: str, provider: str) -> dict[str, Any]:
        """Read the default connection with a provider

        `showToken` needs an API key that may show tokens; the audit log records each use.
        """
        _check_shows_tokens(params["showToken"])
        return _view(_find(userId, provider), userId, shown=params["showToken"])

    @route_facts("deleteConnection", codes=(Code.CONNECTION_NOT_FOUND,))
    @blp.arguments(RevokeQuery, location="query")
    @blp.response(200, SuccessSchema)
    def delete(self, params: dict[str, Any], userId: str, provider: str) -> dict[str, bool]:
        """Delete the default connection with a provider

        The oldest other connection with the provider takes its place. Tokens and cached data are removed in
        any case. A grant at Google is revoked when this service obtained it by a consent and no other
        connection uses the same Google account. Tokens that were stored by POST are never revoked. An API key
        that is bound to an organization may do this for users who belong to no other.
        """
        if not forget_default(caller(), userId, provider, revoke=params["revoke"]):
            raise NotFound("OAuth connection not found", Code.CONNECTION_NOT_FOUND)
        return {"success": True}


@blp.route("/users/<user_id:userId>/oauth/<consent_provider:provider>/token")
class AccessToken(MethodView):
    @route_facts(
        "getAccessToken",
        fails_with_provider=True,
        codes=(Code.CONNECTION_NOT_FOUND, Code.CONNECTION_DELEGATED, Code.KEY_MAY_NOT_SHOW_TOKENS),
    )
    @blp.response(200, AccessTokenSchema)
    def get(self, userId: str, provider: str) -> dict[str, str]:
        """Read an access token of the default connection

        It is refreshed first if it expires within a minute. The API key must be allowed to show tokens; the
        audit log records it.
        """
        _check_shows_tokens(True)
        row = _find(userId, provider)
        if row.grant_id is not None:
            raise Conflict("A delegated connection has no tokens of its own", Code.CONNECTION_DELEGATED)
        if not row.usable:
            raise request_failed(
                Failed(Reason.AUTHORIZATION_INVALID, connection_ended(registry.title(provider)))
            )
        if connection_rows.ends_soon(row.expires_at):
            _refresh(row.id)
            row = _find(userId, provider)
        return {"accessToken": _view(row, userId, shown=True)["accessToken"]}


def _delegate(body: Mapping[str, Any], custom_id: str, provider: str) -> dict[str, Any]:
    """Store a connection that is read by the grant of an organization."""
    with services().stores.database.writing() as session:
        row, done = delegations.connect(
            session, caller(), body["organization"], provider, custom_id, body["email"]
        )
    clean_up(done.replaced)
    return connection_view(row)


def _find(custom_id: str, provider: str) -> OAuthConnection:
    with services().stores.database.reading() as session:
        user = users.find(session, custom_id, organization_id=caller_organization_id())
        if user is None:
            raise NotFound("User not found", Code.USER_NOT_FOUND)
        row = connections.find(session, user.id, provider, organization_id=caller_organization_id())
    if row is None:
        raise NotFound("OAuth connection not found", Code.CONNECTION_NOT_FOUND)
    return row


def _refresh(connection_id: str) -> None:
    """Have a worker refresh the stored access token."""
    reply = services().ask(FreshToken(connection_id))
    if reply.failed is not None:
        raise request_failed(reply.failed)


def _check_shows_tokens(shown: bool) -> None:
    if shown and not caller().shows_tokens:
        raise Forbidden("This API key may not show tokens", Code.KEY_MAY_NOT_SHOW_TOKENS)


def _view(row: OAuthConnection, custom_id: str, *, shown: bool) -> dict[str, Any]:
    """A connection, with its tokens if ``shown``; the audit log then records the caller first."""
    if not shown:
        return connection_view(row)
    stores = services().stores
    with stores.database.writing() as session:
        audit.record(
            session, actor=caller().visible, action="showToken", subject=f"{custom_id}/{row.provider}"
        )
    return connection_view(row, connection_rows.open_credentials(row, stores.keyring).tokens)
