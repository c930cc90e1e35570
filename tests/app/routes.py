"""Every route of the API, read from the application, as paths that can be called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from flask import Flask

from app.http.routes import RouteFacts, declared_facts

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
NOBODY = {
    "userId": "nobody",
    "orgSlug": "nowhere",
    "provider": "google",
    "webhookId": f"wh_{0:024x}",
    "deliveryId": f"msg_{0:032x}",
    "keyId": "key_999999999",
    "holdId": f"hold_{0:024x}",
}


class Route(NamedTuple):
    method: str
    path: str
    endpoint: str


def facts_of(app: Flask, route: Route) -> RouteFacts:
    """The facts that a route declares."""
    facts = declared_facts(app, route.endpoint, route.method)
    assert facts is not None, route
    return facts


def idempotent_endpoints(app: Flask) -> set[str]:
    """The endpoints that support ``Idempotency-Key``."""
    return {route.endpoint for route in routes(app) if facts_of(app, route).idempotent}


def routes(app: Flask, **names: str) -> Iterator[Route]:
    """Routes below ``/v1``; path parameters are ``names``, or else identifiers that do not exist."""
    for rule in app.url_map.iter_rules():
        if not rule.rule.startswith("/v1/"):
            continue
        values = {name: (NOBODY | names).get(name, "x") for name in rule.arguments}
        built = rule.build(values, append_unknown=False)
        assert built is not None
        for method in METHODS:
            if method in (rule.methods or ()):
                yield Route(method, built[1].removeprefix("/v1"), rule.endpoint)
