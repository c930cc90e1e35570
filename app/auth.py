"""Who calls: the API key of a request, and what it may reach."""

from __future__ import annotations

from typing import cast

from flask import Flask, g, request

from app.errors import Forbidden, Unauthenticated
from app.services import services
from store.queries import api_keys
from store.queries.api_keys import Caller

PREFIX = "/v1/"

# The description of the API holds nothing that a key protects; the callback's proof is its state.
OPEN_ENDPOINTS = frozenset({"api-docs.openapi_json", "api-docs.openapi_swagger_ui", "authorization.Callback"})

# They take a body and change nothing: a read-only key may call them.
READS_BY_POST = frozenset({"scheduling.UserScheduling", "scheduling.UsersScheduling"})

# They hand out what changes a connection: a read-only key may not call them.
WRITES_BY_GET = frozenset({"authorization.Link", "authorization.Links"})

READING = frozenset({"GET", "HEAD", "OPTIONS"})


def install(app: Flask) -> None:
    """Ask for a key on every ``/v1`` route, before anything of the request is looked at."""
    app.before_request(_authenticate)


def caller() -> Caller:
    """Who makes this request."""
    return cast(Caller, g.caller)


def within() -> int | None:
    """The organization that the key is bound to; None reaches all."""
    return caller().organization_id


def require_whole_service(doing: str) -> None:
    """Refuse a key that is bound to one organization.

    :raise Forbidden: naming what was tried
    """
    if within() is not None:
        raise Forbidden(f"{doing} needs an API key that is not bound to an organization")


def _authenticate() -> None:
    if not request.path.startswith(PREFIX) or request.endpoint is None or request.endpoint in OPEN_ENDPOINTS:
        return
    g.caller = _caller(request.headers.get("Authorization", ""))
    reads = request.method in READING and request.endpoint not in WRITES_BY_GET
    reads = reads or request.endpoint in READS_BY_POST
    if g.caller.read_only and not reads:
        raise Forbidden("This API key is read-only")


def _caller(header: str) -> Caller:
    scheme, _, key = header.partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        raise Unauthenticated("Send your API key in the header Authorization: Bearer <API_KEY>")
    with services().stores.database.reading() as session:
        found = api_keys.caller(session, key)
    if found is None:
        raise Unauthenticated("The API key is unknown, revoked or expired")
    return found
