"""Facts about routes, declared on each view by ``@route_facts``.

The facts are read for each request (authentication, sign-in, idempotency) and for the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from flask import Flask, current_app, request

from app.http.error_codes import Code
from store.sql.models import Role

# Gets the parameters of the repeated request (body and path) and the stored body of the first response.
# Raises ``ApiError`` if the caller has no access to that response any more.
ReplayCheck = Callable[[Mapping[str, Any], Mapping[str, Any]], None]

View = TypeVar("View", bound=Callable[..., Any])

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

_ATTRIBUTE = "_almanac_route_facts"


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """Facts about one method of one route, and its decorator. The defaults are the restrictive ones.

    ``operation_id``: the id in the OpenAPI document, which is the method name in generated clients. A route
    without one is not in the document, because no program calls it.
    ``needs_key``: the route requires an API key, if it is one of the API.
    ``needs_sign_in``: the route requires a signed-in person, if it is one of the dashboard.
    ``role``: the least role of that person; None means that the HTTP method decides.
    ``polled``: open pages request the route periodically; such a request does not count as use of the
      session.
    ``writes``: a read-only key is rejected; None means that the HTTP method decides.
    ``replay_check``: the route creates something and supports ``Idempotency-Key``.
    ``fails_with_provider``: the request fails if a provider fails.
    ``accepts_cache_control``: the request may require fresh data with the header ``Cache-Control``.
    ``sends_age``: the same, and the response is made of busy periods and has the header ``Age``.
    ``bare_list``: a second form of the response is a bare array, and bare strings for errors.
    ``codes``: error codes that do not follow from the other facts, see ``app.openapi.operations``.
    """

    operation_id: str | None = None
    needs_key: bool = True
    needs_sign_in: bool = True
    role: Role | None = None
    writes: bool | None = None
    replay_check: ReplayCheck | None = None
    fails_with_provider: bool = False
    accepts_cache_control: bool = False
    sends_age: bool = False
    bare_list: bool = False
    codes: tuple[Code, ...] = ()
    polled: bool = False

    def __call__(self, view: View) -> View:
        """Declare the facts of a view function, or of a method of a view class."""
        setattr(view, _ATTRIBUTE, self)
        return view

    @property
    def idempotent(self) -> bool:
        """Whether the route supports ``Idempotency-Key``."""
        return self.replay_check is not None

    def writes_by(self, method: str) -> bool:
        """Whether a request with this HTTP method writes."""
        return method not in SAFE_METHODS if self.writes is None else self.writes

    def role_for(self, method: str) -> Role:
        """The least role for a request with this HTTP method."""
        if self.role is not None:
            return self.role
        return Role.VIEWER if method in SAFE_METHODS else Role.ADMINISTRATOR


# The decorator of views: ``@route_facts("listUsers")``.
route_facts = RouteFacts

_DEFAULT = RouteFacts()


def declared_facts(app: Flask, endpoint: str, method: str) -> RouteFacts | None:
    """The facts that a route declares for an HTTP method; None if it declares none."""
    view: Any = app.view_functions[endpoint]
    return facts_of_view(getattr(view, "view_class", None) or view, method)


def facts_of_view(view: Any, method: str) -> RouteFacts | None:
    """The facts that a view, or a view class for an HTTP method, declares; None if it declares none."""
    if isinstance(view, type):
        # Flask answers HEAD by the view of GET.
        view = getattr(view, "get" if method == "HEAD" else method.lower(), None)
    facts: RouteFacts | None = getattr(view, _ATTRIBUTE, None)
    return facts


def facts_of_request() -> RouteFacts:
    """The facts of the route that this request matches; the defaults if it matches none."""
    if request.endpoint is None:
        return _DEFAULT
    return declared_facts(current_app, request.endpoint, request.method) or _DEFAULT
