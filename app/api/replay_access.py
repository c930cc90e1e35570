"""Access checks before a stored response is replayed for an ``Idempotency-Key``.

A key can lose access after the first request: a user leaves the organization, a connection ends or loses
scopes. Each idempotent route names one of these checks as its ``replay_check``. A check repeats the access
checks of the route.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import request

from app.accounts import managed_keys, organization_grants, organizations, webhook_endpoints
from app.accounts.ownership import CONNECTION, own_user
from app.availability import connections
from app.events import calendar_search
from app.http.authentication import authentication, caller, caller_organization_id
from app.http.errors import NotFound
from app.http.routes import Blueprint
from app.schemas.error_codes import Code
from app.schemas.events import EventQuery
from app.schemas.parameters import ProviderQuery
from app.services import services
from providers.scopes import Operation
from store.sql.queries import users

Names = Mapping[str, Any]


def user(names: Names, _: Names) -> None:
    """The created user."""
    with services().stores.database.reading() as session:
        if users.find(session, names["id"], organization_id=caller_organization_id()) is None:
            raise NotFound("User not found", Code.USER_NOT_FOUND)


def organization(names: Names, _: Names) -> None:
    """The created organization."""
    with services().stores.database.reading() as session:
        organizations.number(session, caller(), names["slug"])


def members(names: Names, _: Names) -> None:
    """The organization and the added users."""
    with services().stores.database.reading() as session:
        organizations.number(session, caller(), names["orgSlug"])
        organizations.require_users(session, caller(), names["userIds"])


def grant_members(names: Names, _: Names) -> None:
    """The organization's grant, and the imported users."""
    with services().stores.database.reading() as session:
        organization_grants.find(session, caller(), names["orgSlug"], names["provider"])
        organizations.require_users(session, caller(), [each["userId"] for each in names["members"]])


def connection(names: Names, _: Names) -> None:
    """The user of the stored connection."""
    with services().stores.database.writing() as session:
        own_user(session, caller(), names["userId"], otherwise=CONNECTION)


def event(names: Names, _: Names) -> None:
    """The connection that the event was created with."""
    params = Blueprint.ARGUMENTS_PARSER.parse(EventQuery(), request, location="query")
    path = (names["userId"], names["provider"], names["calendarId"])
    ref = calendar_search.find(authentication(), *path, params["connection"])[0]
    connections.require(ref, Operation.INSERT_EVENT, calendar_id=names["calendarId"])


def unified_event(names: Names, _: Names) -> None:
    """The connections that the unified event was created with."""
    params = Blueprint.ARGUMENTS_PARSER.parse(ProviderQuery(), request, location="query")
    refs = connections.of_user(authentication(), names["userId"], params)
    if not refs:
        raise NotFound(connections.NO_CALENDARS, Code.NO_CONNECTED_CALENDARS)
    for ref in refs:
        connections.require(ref, Operation.INSERT_EVENT, Operation.DELETE_EVENT)


def hold(_: Names, stored_names: Names) -> None:
    """The users of the hold."""
    with services().stores.database.reading() as session:
        organizations.require_users(session, caller(), stored_names["data"]["users"])


def webhook(_: Names, stored_names: Names) -> None:
    """The created webhook endpoint."""
    with services().stores.database.reading() as session:
        webhook_endpoints.find(session, caller(), stored_names["data"]["id"])


def key(_: Names, stored_names: Names) -> None:
    """The created or rotated API key."""
    with services().stores.database.reading() as session:
        managed_keys.find(session, caller(), stored_names["data"]["id"])
