"""Routes for all accounts of a user, each by the id of its connection."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView

from app.accounts import account_forms, user_connections
from app.accounts.disconnect import forget_one
from app.accounts.user_connections import Change, UserConnection
from app.api import replay_access
from app.http.authentication import caller
from app.http.errors import NotFound
from app.http.routes import Blueprint, enveloped, route_facts
from app.schemas.connection_forms import account_body, declared
from app.schemas.connections import (
    ConnectionChangeBody,
    RevokeQuery,
    UserConnectionSchema,
    user_connection_view,
)
from app.schemas.error_codes import Code
from app.schemas.records import SuccessSchema
from providers import registry

blp = Blueprint(
    "connections",
    __name__,
    metric_group="oauth",
    description="The accounts of a user. A user may connect several accounts with one provider: one of them "
    "is the default one, which the routes under `oauth` mean.",
    no_store=True,
)


# The account behind a form is read before it is stored.
_OF_FORMS = (
    (
        Code.ACCESS_DENIED,
        Code.AUTHORIZATION_INVALID,
        Code.NOT_FOUND,
        Code.NO_WORKER,
        Code.OVERLOADED,
        Code.PROVIDER_ERROR,
        Code.RATE_LIMITED,
    )
    if registry.with_form()
    else ()
)


@blp.route("/users/<user_id:userId>/connections")
class UserConnections(MethodView):
    @route_facts("listUserConnections")
    @blp.response(200, UserConnectionSchema(many=True))
    def get(self, userId: str) -> list[dict[str, Any]]:
        """List all connections of a user

        By provider, in each the default one first. `lastRead` is what the last read of the main calendar has
        found.
        """
        return [_view(each) for each in user_connections.of_user(caller(), userId)]

    @route_facts(
        "addConnection",
        replay_check=replay_access.connection,
        codes=(Code.GRANT_NOT_FOUND, Code.MEMBER_NOT_FOUND, Code.ORGANIZATION_NOT_FOUND, *_OF_FORMS),
    )
    @blp.arguments(account_body())
    @blp.response(201, UserConnectionSchema)
    @blp.alt_response(
        200,
        schema=enveloped(UserConnectionSchema, many=False),
        success=True,
        description="The same account was connected already, and is replaced",
    )
    def post(self, body: dict[str, Any], userId: str) -> tuple[dict[str, Any], int]:
        """Connect an account

        Beside the accounts that the user has; the first one with a provider is the default one. Tokens are
        stored as by POST of `oauth`. They replace those of the same account, which is recognized by `email`:
        the connection keeps its id, and its label without a new one. With the fields of a form, the account
        is read once before anything is stored: wrong credentials are `authorizationInvalid`, and `param`
        names a field that leads to no calendar. Credentials are stored encrypted and are never shown.
        """
        provider = body["provider"]
        if fields := declared(provider):
            values = {each.name: body[each.name] for each in fields}
            row, same = account_forms.connect(caller(), userId, provider, values, body["label"])
        elif body["type"] == "delegated":
            row, same = user_connections.delegate(caller(), userId, body)
        else:
            row, same = user_connections.store(caller(), userId, body)
        return _view(user_connections.one(caller(), userId, row.public_id)), 200 if same else 201


@blp.route("/users/<user_id:userId>/connections/<connection_id:connectionId>")
class UserConnectionById(MethodView):
    @route_facts("getUserConnection", codes=(Code.CONNECTION_NOT_FOUND,))
    @blp.response(200, UserConnectionSchema)
    def get(self, userId: str, connectionId: str) -> dict[str, Any]:
        """Read a connection by its id

        Without tokens. `lastRead` is what the last read of the main calendar has found.
        """
        return _view(user_connections.one(caller(), userId, connectionId))

    @route_facts("updateConnection", codes=(Code.CONNECTION_NOT_FOUND,))
    @blp.arguments(ConnectionChangeBody)
    @blp.response(200, UserConnectionSchema)
    def patch(self, body: dict[str, Any], userId: str, connectionId: str) -> dict[str, Any]:
        """Change the label of a connection, or make it the default one

        The default one of the provider before is one no more. An API key that is bound to an organization may
        do this for users who belong to no other.
        """
        label = body["label"]
        change = Change(label or None, labels=label is not None, default=body["default"])
        user_connections.change(caller(), userId, connectionId, change)
        return _view(user_connections.one(caller(), userId, connectionId))

    @route_facts("deleteUserConnection", codes=(Code.CONNECTION_NOT_FOUND,))
    @blp.arguments(RevokeQuery, location="query")
    @blp.response(200, SuccessSchema)
    def delete(self, params: dict[str, Any], userId: str, connectionId: str) -> dict[str, bool]:
        """Delete a connection by its id

        As by DELETE of `oauth`. After the default one, the oldest other connection with the provider is the
        default one.
        """
        if not forget_one(caller(), userId, connectionId, revoke=params["revoke"]):
            raise NotFound("OAuth connection not found", Code.CONNECTION_NOT_FOUND)
        return {"success": True}


def _view(connection: UserConnection) -> dict[str, Any]:
    return user_connection_view(connection.row, connection.last_read, is_default=connection.is_default)
