"""Roles: refuses requests that the signed-in person's role forbids, and tells templates what it permits."""

from __future__ import annotations

from flask import Blueprint, abort, current_app, request
from werkzeug.exceptions import HTTPException

from app.dashboard.sign_in import sessions
from app.http.routes import RouteFacts, declared_facts, facts_of_request

_UNDECLARED = RouteFacts()


def install(blp: Blueprint) -> None:
    """Register the functions for templates."""
    blp.add_app_template_global(may)
    blp.add_app_template_global(may_send)


def require() -> None:
    """Answer 403 if the role of the signed-in person does not permit this request."""
    if not sessions.current().role.includes(facts_of_request().role_for(request.method)):
        abort(403)


def may(endpoint: str) -> bool:
    """Whether the signed-in person may use a route of the dashboard; the form of a route with one."""
    name = endpoint if "." in endpoint else f"dashboard.{endpoint}"
    methods = {method for rule in current_app.url_map.iter_rules(name) for method in rule.methods or ()}
    return _permits(name, "POST" if "POST" in methods else "GET")


def may_send(path: str) -> bool:
    """Whether the signed-in person may send a form to this path."""
    adapter = current_app.create_url_adapter(request)
    assert adapter is not None
    try:
        endpoint, _ = adapter.match(path.removeprefix(request.root_path).partition("?")[0], method="POST")
    except HTTPException:
        return False
    return _permits(endpoint, "POST")


def _permits(endpoint: str, method: str) -> bool:
    facts = declared_facts(current_app, endpoint, method) or _UNDECLARED
    role = sessions.role()
    return not facts.needs_sign_in or (role is not None and role.includes(facts.role_for(method)))
