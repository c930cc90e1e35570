"""Lists of the dashboard: so many rows to a page, and the way on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from flask import request, url_for

from app.dashboard.blueprint import blp
from app.schemas.fields import CONTROL, USER_ID

ROWS = 25
# As many as a field offers to choose from; others are typed.
LONGEST_CHOICE = 200
LONGEST_SEARCH = 320
# What a database's integers hold.
LARGEST_NUMBER = 2**31 - 1

# What lists are asked by; of a query nothing else is taken along, as ``url_for`` has options of its own.
_ASKED_BY = ("q", "after", "before", "organization", "show", "status")

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Onward(Generic[Row]):
    """The rows of one page; ``more`` when there are others after them."""

    FETCHED: ClassVar[int] = ROWS + 1

    rows: Sequence[Row]
    more: bool

    @classmethod
    def of(cls, fetched: Sequence[Row]) -> Onward[Row]:
        """The page out of the rows fetched, which are one more than it shows."""
        return cls(fetched[:ROWS], len(fetched) > ROWS)


def searched() -> str:
    """What is searched for; empty when nothing is."""
    return CONTROL.sub("", request.args.get("q", "")).strip()[:LONGEST_SEARCH]


def after() -> str | None:
    """The identifier that this page starts after; whatever is none is the first page."""
    asked = request.args.get("after", "")
    # Slugs have the shape of a user id too.
    return asked if USER_ID.fullmatch(asked) else None


def number_before() -> int | None:
    """The number that this page's numbers lie below; whatever is no number is the first page."""
    asked = request.args.get("before", type=int)
    return asked if asked is not None and 0 <= asked <= LARGEST_NUMBER else None


@blp.app_template_global()
def same_list(endpoint: str, **changed: Any) -> str:
    """The address of a list with other arguments than this request's; None takes one away."""
    asked = {name: request.args[name] for name in _ASKED_BY if name in request.args}
    arguments = {**asked, **changed}
    there = {name: value for name, value in arguments.items() if value is not None}
    return url_for(f"dashboard.{endpoint}", **there)
