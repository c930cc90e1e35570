"""Access checks before a stored response is replayed for an ``Idempotency-Key``.

A key can lose access after the first request: a user leaves the organization, a connection ends or loses
scopes. Each idempotent route has a check here, which repeats the access checks of the route.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from flask import request

from app.accounts import connections, organizations, webhook_endpoints
from app.accounts.ownership import CONNECTION, own_user
from app.http.auth import within
from app.http.blueprint import Blueprint
from app.http.errors import NotFound
from app.schemas.calendars import ProviderQuery
from app.services import services
from providers.scopes import Operation
from store.sql.queries import users

Names = Mapping[str, Any]
Check = Callable[[Names, Names], None]


def check(kept: str) -> None:
    """Reject this repeated request if its route would reject it now.

    ``kept`` is the body of the stored response.

    :raise ApiError: if the caller has no access to that response any more
    """
    assert request.endpoint is not None, "a response is stored for a route"
    body = orjson.loads(request.get_data() or b"{}")
    CHECKS[request.endpoint]({**body, **(request.view_args or {})}, orjson.loads(kept))


def _user(asked: Names, _: Names) -> None:
    with services().stores.database.reading() as session:
        if users.find(session, asked["id"], within=within()) is None:
            raise NotFound("User not found")


def _organization(asked: Names, _: Names) -> None:
    with services().stores.database.reading() as session:
        organizations.number(session, asked["slug"])


def _members(asked: Names, _: Names) -> None:
    with services().stores.database.reading() as session:
        organizations.number(session, asked["orgSlug"])
        organizations.require_users(session, asked["userIds"])


def _connection(asked: Names, _: Names) -> None:
    with services().stores.database.writing() as session:
        own_user(session, asked["userId"], otherwise=CONNECTION)


def _event(asked: Names, _: Names) -> None:
    ref = connections.one_of_user(asked["userId"], asked["provider"])
    connections.require(ref, Operation.INSERT_EVENT)


def _unified_event(asked: Names, _: Names) -> None:
    query = Blueprint.ARGUMENTS_PARSER.parse(ProviderQuery(), request, location="query")
    refs = connections.of_user(asked["userId"], query)
    if not refs:
        raise NotFound(connections.NO_CALENDARS)
    for ref in refs:
        connections.require(ref, Operation.INSERT_EVENT, Operation.DELETE_EVENT)


def _webhook(_: Names, kept: Names) -> None:
    with services().stores.database.reading() as session:
        webhook_endpoints.find(session, kept["data"]["id"])


CHECKS: Mapping[str, Check] = {
    "users.Users": _user,
    "organizations.Organizations": _organization,
    "organizations.Members": _members,
    "oauth.Connection": _connection,
    "events.CalendarEvents": _event,
    "unified.UnifiedEvents": _unified_event,
    "webhooks.Webhooks": _webhook,
}
