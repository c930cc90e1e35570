"""Paging by cursor. A cursor encodes the last identifier of a page and is opaque to the client."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from app.http.errors import Invalid
from app.http.responses import extra_fields
from app.schemas.fields import USER_ID

Row = TypeVar("Row")

# The sort key of a row; unique within its list.
SortKey = tuple[str | int, ...]


def after(query: Mapping[str, Any], pattern: re.Pattern[str] = USER_ID) -> str | None:
    """The identifier after which the page starts; None for the first page (no cursor, or an empty one).

    :param pattern: of the identifiers in this list; slugs and provider names match the default too
    :raise Invalid: for a cursor that this list did not produce
    """
    cursor = query.get("cursor")
    if not cursor:
        return None
    try:
        identifier = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii")
    except ValueError:
        identifier = ""
    if not pattern.fullmatch(identifier) or _cursor(identifier) != cursor:
        raise _unknown_cursor()
    return identifier


def one_more(query: Mapping[str, Any]) -> int | None:
    """How many rows to fetch: one more than the page, to detect whether another page follows."""
    limit: int | None = query.get("limit")
    return None if limit is None else limit + 1


def cut(query: Mapping[str, Any], rows: Sequence[Row], identifier: str) -> Sequence[Row]:
    """The page from the rows fetched; adds ``nextCursor`` to the response if the request asks for paging."""
    limit = query.get("limit")
    if limit is None and not query.get("cursor"):
        return rows
    page = rows[:limit]
    last = getattr(page[-1], identifier) if len(rows) > len(page) else None
    extra_fields(nextCursor=_cursor(last) if last else None)
    return page


def cut_short_list(query: Mapping[str, Any], rows: Sequence[Row], identifier: str) -> Sequence[Row]:
    """The page from all rows of a short list, sorted by ``identifier``."""
    start = after(query) or ""
    # Sorted here: databases differ in their collation.
    later = sorted(
        (row for row in rows if getattr(row, identifier) > start), key=lambda row: getattr(row, identifier)
    )
    return cut(query, later, identifier)


def cut_by_sort_key(
    query: Mapping[str, Any], rows: Sequence[Row], sort_key: Callable[[Row], SortKey]
) -> tuple[Sequence[Row], dict[str, str | None]]:
    """The page from all rows, which are sorted by ``sort_key``, and the extra fields for the response.

    :raise Invalid: for a cursor of another list
    """
    limit, cursor = query.get("limit"), query.get("cursor")
    if limit is None and not cursor:
        return rows, {}
    try:
        start: SortKey = _decode_sort_key(cursor) if cursor else ()
        if start and rows and len(start) != len(sort_key(rows[0])):
            raise ValueError("a cursor of another list")
        later = [row for row in rows if sort_key(row) > start]
    except (ValueError, TypeError) as error:
        raise _unknown_cursor() from error
    page = later[:limit]
    last = sort_key(page[-1]) if len(later) > len(page) else None
    return page, {"nextCursor": base64.urlsafe_b64encode(orjson.dumps(last)).decode() if last else None}


def _unknown_cursor() -> Invalid:
    return Invalid("cursor is not one that this service gave", param="cursor")


def _decode_sort_key(cursor: str) -> SortKey:
    """The sort key in a cursor of ``cut_by_sort_key``.

    :raise ValueError: if the cursor is malformed
    """
    values = orjson.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    if not isinstance(values, list) or not values:
        raise ValueError("not a sort key")
    return tuple(values)


def _cursor(identifier: str) -> str:
    return base64.urlsafe_b64encode(identifier.encode()).decode()
