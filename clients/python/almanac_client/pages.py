"""Lists, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from almanac_client.transport import Reply, Transport

T = TypeVar("T")

# Rows of a page, unless the caller says otherwise.
PAGE = 200


def pages(
    transport: Transport, path: str, query: Mapping[str, Any], limit: int, headers: Mapping[str, str]
) -> Iterator[Reply]:
    """Every page of a list, each asked for when it is reached."""
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        reply = transport.get(path, {**query, "limit": limit, **more}, headers)
        yield reply
        cursor = reply.body.get("nextCursor")
        if cursor is None:
            return


def rows(transport: Transport, path: str, query: Mapping[str, Any], limit: int, kind: type[T]) -> Iterator[T]:
    """Every row of a list, its pages fetched on the way."""
    for reply in pages(transport, path, query, limit, {}):
        found: list[T] = reply.body["data"]
        yield from found
