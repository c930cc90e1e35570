"""Pages of a collection, ``$select`` and the zone of an answer: common to every list of Graph.

https://learn.microsoft.com/graph/paging
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

from providers.sandbox.exchange import Answer, Request
from providers.sandbox.microsoft.errors import refusal

DEFAULT_PAGE, MAX_PAGE = 10, 1000
CONTEXT = "https://graph.microsoft.com/v1.0/$metadata#"

Item = TypeVar("Item")


def page(request: Request, items: Sequence[Item]) -> tuple[Sequence[Item], str]:
    """One page, and the link to the next; empty at the end."""
    size = number(request, "$top", DEFAULT_PAGE)
    skip = number(request, "$skip", 0)
    if not 1 <= size <= MAX_PAGE:
        raise refusal(
            "ErrorInvalidRequest",
            f"Invalid page size specified: '{size}'. Must be between 1 and 1000 inclusive.",
        )
    taken = items[skip : skip + size]
    return taken, next_link(request, skip + size) if skip + size < len(items) else ""


def number(request: Request, name: str, default: int) -> int:
    text = request.one(name) or str(default)
    if not text.isdecimal():
        raise refusal("BadRequest", f"Invalid value '{text}' for {name} query option found.")
    return int(text)


def next_link(request: Request, skip: int) -> str:
    """An absolute link with all parameters of the call, in parts of a ``$batch`` as well."""
    query = {name: values[-1] for name, values in request.query.items()} | {"$skip": str(skip)}
    return f"{request.origin}{request.target.partition('?')[0]}?{urlencode(query)}"


def chosen(request: Request) -> frozenset[str]:
    """The properties of ``$select``; empty for all."""
    text = request.one("$select")
    return frozenset(name.strip().lower() for name in text.split(",") if name.strip())


def selected(document: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """A resource with the selected properties; id and etag are always included."""
    if not names:
        return document
    return {k: v for k, v in document.items() if k.lower() in names or k in ("id", "@odata.etag")}


def collection(request: Request, context: str, items: Sequence[dict[str, Any]], link: str) -> Answer:
    """A page as an answer."""
    if select := request.one("$select"):
        context += f"({select})"
    document: dict[str, Any] = {"@odata.context": CONTEXT + context, "value": items}
    if link:
        document["@odata.nextLink"] = link
    return Answer(200, document=document)


def entity(request: Request, context: str, document: dict[str, Any], status: int = 200) -> Answer:
    """One resource as an answer."""
    return Answer(
        status, document={"@odata.context": CONTEXT + context, **selected(document, chosen(request))}
    )
