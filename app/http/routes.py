"""The routes of the API: their blueprint, and the facts that each view declares by ``@route_facts``.

The facts are read for each request (authentication, sign-in, idempotency) and for the OpenAPI document. The
blueprint wraps results in the envelope and shares parsed schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial, wraps
from typing import Any, TypeVar

import flask_smorest
from flask import Flask, Response, current_app, g, request
from marshmallow import Schema, fields

from app.http.parsing import Parser
from app.schemas.error_codes import Code
from app.schemas.errors import ErrorSchema
from app.schemas.fields import WholeBody
from app.schemas.parameters import NEXT_CURSOR
from store.metrics.counters import Group
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
    ``manages_keys``: that key must be one that may manage keys.
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
    manages_keys: bool = False
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


class Blueprint(flask_smorest.Blueprint):
    """Wraps results as ``{data: ...}``, in responses and in the OpenAPI document."""

    ARGUMENTS_PARSER = Parser()

    def __init__(
        self, name: str, import_name: str, *, metric_group: Group, description: str, no_store: bool = False
    ) -> None:
        """``metric_group``: the label under which the metrics count requests to these routes.

        ``no_store``: some responses contain secrets, so caches may store none of them.
        """
        super().__init__(name, import_name, description=description)
        self.metric_group = metric_group
        self.no_store = no_store
        if no_store:
            self.after_request(_forbid_caching)

    def arguments(self, schema: type[Schema], **options: Any) -> Any:
        """As in flask-smorest, but with one schema instance for all requests, as creating one is slow."""
        decorate = super().arguments(schema(), **options)
        in_query: type[Schema] | None = getattr(schema, "in_query", None)
        if in_query is None:
            return decorate
        query = super().arguments(in_query(), location="query")
        return lambda view: query(_with_zone_of_query(view, decorate(view)))

    def register_views_in_doc(self, api: Any, *arguments: Any, **options: Any) -> None:
        """Leave the description of the views to the first request for the document.

        Most processes never serve the document, and it takes a large part of the time of a start.
        """
        api.describe_later(partial(super().register_views_in_doc, api, *arguments, **options))

    def _store_endpoint_docs(
        self, endpoint: str, obj: Any, parameters: Any, tags: Any, **options: Any
    ) -> None:
        """Leave a view out of the OpenAPI document if it has no operation id."""
        methods = getattr(obj, "methods", None) or options.get("methods", ("GET",))
        facts = [facts_of_view(obj, method) for method in methods]
        if any(each is not None and each.operation_id for each in facts):
            super()._store_endpoint_docs(endpoint, obj, parameters, tags, **options)

    @staticmethod
    def _prepare_response_content(data: Any) -> dict[str, Any]:
        return {"data": data, **g.pop("extra_fields", {})}

    @staticmethod
    def _make_doc_response_schema(schema: Schema | None) -> Schema | None:
        if schema is None or isinstance(schema, WholeBody | ErrorSchema):
            return schema
        return enveloped(type(schema), many=schema.many)()


def _forbid_caching(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    return response


def _with_zone_of_query(view: Callable[..., Any], by_header: Callable[..., Any]) -> Callable[..., Any]:
    """The view, called with the zone of the query, or without one there by ``by_header``, which reads it."""

    @wraps(by_header)
    def choose(*args: Any, **kwargs: Any) -> Any:
        *others, query = args
        zone = query.get("timeZone")
        return by_header(*others, **kwargs) if zone is None else view(*others, {"zone": zone}, **kwargs)

    return choose


@cache
def enveloped(schema: type[Schema], *, many: bool) -> type[Schema]:
    """The schema of an answer, as the OpenAPI document describes it."""
    name = schema.__name__.removesuffix("Schema")
    members: dict[str, Any] = {"data": fields.Nested(schema(many=many), required=True)}
    if many:
        name += "List"
        members["data"].metadata["description"] = "The elements of the list."
        members["nextCursor"] = fields.String(allow_none=True, metadata=NEXT_CURSOR)
    envelope = WholeBody.from_dict(members, name=f"{name}Answer")
    envelope.__doc__ = f"A list. Each element: {schema.__doc__}" if many else schema.__doc__
    return envelope
