"""Paginated lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from almanac_client.transport import Reply, Transport

T = TypeVar("T")

# Rows per page by default.
PAGE = 200


def pages(
    transport: Transport, path: str, query: Mapping[str, Any], limit: int, headers: Mapping[str, str]
) -> Iterator[Reply]:
    """Every page of a list, each requested when it is reached."""
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        reply = transport.get(path, {**query, "limit": limit, **more}, headers)
        yield reply
        cursor = reply.body.get("nextCursor")
        if cursor is None:
            return


def rows(transport: Transport, path: str, query: Mapping[str, Any], limit: int, kind: type[T]) -> Iterator[T]:
    """Every row of a list; pages are requested on demand."""
    for reply in pages(transport, path, query, limit, {}):
        found: list[T] = reply.body["data"]
        yield from found
