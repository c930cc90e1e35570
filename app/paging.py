"""Paging by cursor: the last identifier of a page, opaque to the caller."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, TypeVar

from app.envelope import beside
from app.errors import Invalid

Row = TypeVar("Row")


def after(query: dict[str, Any]) -> str | None:
    """The identifier that the page starts after.

    :raise Invalid: for a cursor that is not ours
    """
    cursor = query.get("cursor")
    if cursor is None:
        return None
    try:
        return base64.urlsafe_b64decode(cursor).decode("ascii")
    except (binascii.Error, ValueError) as error:
        raise Invalid("cursor is not one that this service gave") from error


def one_more(query: dict[str, Any]) -> int | None:
    """How many rows to fetch: one more than the page, to see whether it is the last."""
    limit: int | None = query.get("limit")
    return None if limit is None else limit + 1


def cut(query: dict[str, Any], rows: Sequence[Row], identifier: str) -> Sequence[Row]:
    """The page out of the rows fetched; puts ``nextCursor`` beside the data when a page was asked for."""
    limit = query.get("limit")
    if limit is None:
        return rows
    page = rows[:limit]
    last = getattr(page[-1], identifier) if len(rows) > limit else None
    beside(nextCursor=base64.urlsafe_b64encode(last.encode()).decode() if last else None)
    return page
