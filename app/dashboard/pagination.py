"""Keyset pagination of the dashboard's lists, with a fixed number of rows for each page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from flask import request, url_for

from app.dashboard.blueprint import blp
from app.schemas.fields import CONTROL, USER_ID

ROWS = 25
# A field suggests at most this many choices; others are typed.
LONGEST_CHOICE = 200
LONGEST_SEARCH = 320
# The largest value of a database integer.
LARGEST_NUMBER = 2**31 - 1

# The query arguments of lists. Links copy no others, as some names are options of ``url_for``.
_ARGUMENTS = ("q", "after", "before", "organization", "show", "status")

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class ResultPage(Generic[Row]):
    """The rows of one page; ``more`` is whether another page follows."""

    FETCHED: ClassVar[int] = ROWS + 1

    rows: Sequence[Row]
    more: bool

    @classmethod
    def of(cls, fetched: Sequence[Row]) -> ResultPage[Row]:
        """Make a page from up to ``FETCHED`` rows, which is one more than a page shows."""
        return cls(fetched[:ROWS], len(fetched) > ROWS)


def searched() -> str:
    """The search text of the query; empty without one."""
    return CONTROL.sub("", request.args.get("q", "")).strip()[:LONGEST_SEARCH]


def after() -> str | None:
    """The identifier that this page starts after; None, the first page, for text that is no identifier."""
    identifier = request.args.get("after", "")
    # Slugs match the pattern of user ids too.
    return identifier if USER_ID.fullmatch(identifier) else None


def number_before() -> int | None:
    """The exclusive upper bound of this page's row numbers; None, the first page, for any other text."""
    number = request.args.get("before", type=int)
    return number if number is not None and 0 <= number <= LARGEST_NUMBER else None


@blp.app_template_global()
def same_list(endpoint: str, **changed: Any) -> str:
    """The address of a list with this request's arguments, some of them changed; None removes one."""
    current = {name: request.args[name] for name in _ARGUMENTS if name in request.args}
    arguments = {name: value for name, value in {**current, **changed}.items() if value is not None}
    return url_for(f"dashboard.{endpoint}", **arguments)
