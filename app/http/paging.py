"""Paging by cursor: the last identifier of a page, opaque to the caller."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from app.http.envelope import extra_fields
from app.http.errors import Invalid
from app.schemas.fields import USER_ID

Row = TypeVar("Row")

# Where a row stands in its list; no two stand in the same place.
Place = tuple[str | int, ...]


def after(query: Mapping[str, Any]) -> str | None:
    """The identifier that the page starts after; an empty cursor means the first page, as no cursor does.

    :raise Invalid: for a cursor that is not ours
    """
    cursor = query.get("cursor")
    if not cursor:
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
    if limit is None and not query.get("cursor"):
        return rows
    page = rows[:limit]
    last = getattr(page[-1], identifier) if len(rows) > len(page) else None
    extra_fields(nextCursor=_cursor(last) if last else None)
    return page


def cut_short_list(query: Mapping[str, Any], rows: Sequence[Row], identifier: str) -> Sequence[Row]:
    """The page out of all rows, which are few, by ``identifier``."""
    start = after(query) or ""
    # Databases sort text each in its own way.
    later = sorted(
        (row for row in rows if getattr(row, identifier) > start), key=lambda row: getattr(row, identifier)
    )
    return cut(query, later, identifier)


def cut_by_place(
    query: Mapping[str, Any], rows: Sequence[Row], place: Callable[[Row], Place]
) -> tuple[Sequence[Row], dict[str, str | None]]:
    """The page out of all rows, which are sorted by their ``place``, and what then stands beside the data.

    :raise Invalid: for a cursor that is not one of such a list
    """
    limit, cursor = query.get("limit"), query.get("cursor")
    if limit is None and not cursor:
        return rows, {}
    try:
        start: Place = _place(cursor) if cursor else ()
        if start and rows and len(start) != len(place(rows[0])):
            raise ValueError("a place in another list")
        later = [row for row in rows if place(row) > start]
    except (ValueError, TypeError) as error:
        raise Invalid("cursor is not one that this service gave") from error
    page = later[:limit]
    last = place(page[-1]) if len(later) > len(page) else None
    return page, {"nextCursor": base64.urlsafe_b64encode(orjson.dumps(last)).decode() if last else None}


def _place(cursor: str) -> Place:
    """The other side of the cursor of such a list.

    :raise ValueError: when it is none
    """
    values = orjson.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    if not isinstance(values, list) or not values:
        raise ValueError("no place")
    return tuple(values)


def _cursor(identifier: str) -> str:
    return base64.urlsafe_b64encode(identifier.encode()).decode()
