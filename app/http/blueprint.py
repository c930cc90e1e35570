"""The blueprint of the API's routes: wraps results in the envelope and shares parsed schemas."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any

import flask_smorest
from flask import Response, g
from marshmallow import Schema, fields

from app.http.parsing import Parser
from app.http.responses import WholeBody
from app.http.route_facts import facts_of_view
from app.schemas.errors import ErrorSchema
from app.schemas.parameters import NEXT_CURSOR
from store.metrics.counters import Group


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
        return _enveloped(type(schema), schema.many)()


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
def _enveloped(schema: type[Schema], many: bool) -> type[Schema]:
    name = schema.__name__.removesuffix("Schema")
    members: dict[str, Any] = {"data": fields.Nested(schema(many=many), required=True)}
    if many:
        name += "List"
        members["data"].metadata["description"] = "The elements of the list."
        members["nextCursor"] = fields.String(allow_none=True, metadata=NEXT_CURSOR)
    envelope = WholeBody.from_dict(members, name=f"{name}Answer")
    envelope.__doc__ = f"A list. Each element: {schema.__doc__}" if many else schema.__doc__
    return envelope
