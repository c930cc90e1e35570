"""Paging by cursor: the last identifier of a page, opaque to the caller."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from app.envelope import beside
from app.errors import Invalid
from app.fields import USER_ID

Row = TypeVar("Row")


def after(query: Mapping[str, Any]) -> str | None:
    """The identifier that the page starts after.

    :raise Invalid: for a cursor that is not ours
    """
    cursor = query.get("cursor")
    if cursor is None:
        return None
    try:
        identifier = base64.b64decode(cursor, altchars=b"-_", validate=True).decode("ascii")
    except ValueError:
        identifier = ""
    # Slugs and provider names have the shape of a user id too.
    if not USER_ID.fullmatch(identifier) or _cursor(identifier) != cursor:
        raise Invalid("cursor is not one that this service gave")
    return identifier


def one_more(query: Mapping[str, Any]) -> int | None:
    """How many rows to fetch: one more than the page, to see whether it is the last."""
    limit: int | None = query.get("limit")
    return None if limit is None else limit + 1


def cut(query: Mapping[str, Any], rows: Sequence[Row], identifier: str) -> Sequence[Row]:
    """The page out of the rows fetched; puts ``nextCursor`` beside the data when paging was asked for."""
    limit = query.get("limit")
    if limit is None and "cursor" not in query:
        return rows
    page = rows[:limit]
    last = getattr(page[-1], identifier) if len(rows) > len(page) else None
    beside(nextCursor=_cursor(last) if last else None)
    return page


def cut_short_list(query: Mapping[str, Any], rows: Sequence[Row], identifier: str) -> Sequence[Row]:
    """The page out of all rows, which are few, by ``identifier``."""
    start = after(query) or ""
    # Databases sort text each in its own way.
    later = sorted(
        (row for row in rows if getattr(row, identifier) > start), key=lambda row: getattr(row, identifier)
    )
    return cut(query, later, identifier)


def _cursor(identifier: str) -> str:
    return base64.urlsafe_b64encode(identifier.encode()).decode()
