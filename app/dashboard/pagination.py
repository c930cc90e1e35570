"""Keyset pagination of the dashboard's lists, with a fixed number of rows for each page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from flask import request, url_for

from app.dashboard.blueprint import blp
from app.schemas.fields import CONTROL, USER_ID
from store.sql.keyset import Order, Position, Rows

ROWS = 100
# A field suggests at most this many choices; others are typed.
MAX_CHOICE = 200
MAX_SEARCH = 320
# The largest value of a database integer.
MAX_NUMBER = 2**31 - 1

# The query arguments of lists. Links copy no others, as some names are options of ``url_for``.
_ARGUMENTS = (
    *("q", "after", "before", "organization", "show", "sort"),
    *("status", "person", "action", "target"),
)

# Between the value and the key of a position; keys have no such character.
_BETWEEN = "~"

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


class Chip(NamedTuple):
    """A filter of a list as a link."""

    title: str
    href: str
    current: bool
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Sort:
    """How this request sorts a list, and where in it the page begins.

    ``endpoint`` and ``path`` are those of the list, ``default`` is the order without a choice. A minus before
    the name of an order, in addresses too, means descending.
    """

    endpoint: str
    path: Mapping[str, str]
    orders: Mapping[str, Order]
    default: str
    chosen: str
    position: Position | None

    @classmethod
    def of_request(cls, endpoint: str, orders: Mapping[str, Order], default: str, **path: str) -> Sort:
        """The sort that the query asks for; the default for an unknown one."""
        chosen = request.args.get("sort", "")
        if chosen.removeprefix("-") not in orders:
            chosen = default
        order = orders[chosen.removeprefix("-")]
        before = _position(order, request.args.get("before", ""), backwards=True)
        if "last" in request.args:
            before = Position(None, backwards=True)
        return cls(
            endpoint, path, orders, default, chosen, before or _position(order, request.args.get("after", ""))
        )

    @property
    def name(self) -> str:
        """The name of the order."""
        return self.chosen.removeprefix("-")

    @property
    def order(self) -> Order:
        """The order itself."""
        return self.orders[self.name]

    @property
    def descending(self) -> bool:
        """Whether the last row of the order comes first."""
        return self.chosen.startswith("-")

    def direction(self, name: str) -> str | None:
        """The direction of this order, in the words of ``aria-sort``; None for another order."""
        if name != self.name:
            return None
        return "descending" if self.descending else "ascending"

    def href(self, name: str) -> str:
        """The first page of the list in this order; in the opposite direction, if it has the order now."""
        first = name if self.default.removeprefix("-") != name else self.default
        if name == self.name:
            first = name if self.descending else f"-{name}"
        return self.at(sort=None if first == self.default else first)

    def at(self, **changed: Any) -> str:
        """The address of the list with other arguments; without a position among them, its first page."""
        return same_list(self.endpoint, **{**self.path, "after": None, "before": None, **changed})

    def cursor(self, row: Any) -> str:
        """The position of a row, as text."""
        key = str(self.order.key_of(row))
        if self.order.value_of is None:
            return key
        value = self.order.value_of(row)
        return f"{value.isoformat() if isinstance(value, datetime) else value}{_BETWEEN}{key}"


@dataclass(frozen=True, slots=True)
class ListPage(Generic[Row]):
    """The rows of one page of a sorted list, with links to the pages around it."""

    rows: Sequence[Row]
    offset: int
    total: int
    sort: Sort

    @classmethod
    def of(cls, result: Rows[Row], sort: Sort) -> ListPage[Row]:
        """A page, from the rows that were fetched for it."""
        return cls(result.rows, result.offset, result.total, sort)

    @property
    def next_page(self) -> str | None:
        """The address of the next page."""
        more = self.rows and self.offset + len(self.rows) < self.total
        return self.sort.at(after=self.sort.cursor(self.rows[-1])) if more else None

    @property
    def previous(self) -> str | None:
        """The address of the previous page."""
        more = self.rows and self.offset > 0
        return self.sort.at(before=self.sort.cursor(self.rows[0])) if more else None

    @property
    def last(self) -> str | None:
        """The address of the last page, if this is another one."""
        return self.sort.at(last=1) if self.next_page else None

    @property
    def first(self) -> str | None:
        """The address of the first page, if this is another one."""
        return None if self.sort.position is None else self.sort.at()

    @property
    def past_end(self) -> bool:
        """Whether the page has no rows although the list has some: its position is past an end."""
        return not self.rows and self.total > 0

    @property
    def row_range(self) -> str:
        """The numbers of the rows, as in ``1-25 of 512``."""
        if not self.rows:
            return f"0 of {self.total:,}"
        return f"{self.offset + 1:,}\N{EN DASH}{self.offset + len(self.rows):,} of {self.total:,}"


def searched() -> str:
    """The search text of the query; empty without one."""
    return CONTROL.sub("", request.args.get("q", "")).strip()[:MAX_SEARCH]


def after() -> str | None:
    """The identifier that this page starts after; None, the first page, for text that is no identifier."""
    identifier = request.args.get("after", "")
    # Slugs match the pattern of user ids too.
    return identifier if USER_ID.fullmatch(identifier) else None


def number_before() -> int | None:
    """The exclusive upper bound of this page's row numbers; None, the first page, for any other text."""
    number = request.args.get("before", type=int)
    return number if number is not None and 0 <= number <= MAX_NUMBER else None


def _position(order: Order, text: str, *, backwards: bool = False) -> Position | None:
    """The position that ``Sort.cursor`` wrote; None for any other text."""
    value, between, key = text.rpartition(_BETWEEN)
    if not USER_ID.fullmatch(key) and not key.isdecimal():
        return None
    try:
        parsed = order.parse_key(key)
        if order.value is None:
            return None if between or _too_large(parsed) else Position(parsed, None, backwards)
        bound = order.parse_value(value)
        if isinstance(bound, datetime):
            bound = bound.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    if not between or _too_large(parsed) or _too_large(bound):
        return None
    return Position(parsed, bound, backwards)


def _too_large(number: Any) -> bool:
    return isinstance(number, int) and not 0 <= number <= MAX_NUMBER


@blp.app_template_global()
def same_list(endpoint: str, **changed: Any) -> str:
    """The address of a list with this request's arguments, some of them changed; None removes one."""
    current = {name: request.args[name] for name in _ARGUMENTS if name in request.args}
    arguments = {name: value for name, value in {**current, **changed}.items() if value is not None}
    return url_for(f"dashboard.{endpoint}", **arguments)
