"""Keyset pagination in both directions: reading a page costs the same wherever in the list it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Select, and_, func, not_, or_
from sqlalchemy.orm import Session
from sqlalchemy.sql.base import ExecutableOption

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Order:
    """A total order of rows: by ``value``, if given, then by ``key``, which is unique. Neither is NULL.

    ``key_of`` and ``value_of`` read both from a row, ``parse_key`` and ``parse_value`` from text.
    """

    key: ColumnElement[Any] | Any
    key_of: Callable[[Any], Any]
    parse_key: Callable[[str], Any] = str
    value: ColumnElement[Any] | Any = None
    value_of: Callable[[Any], Any] | None = None
    parse_value: Callable[[str], Any] = str


class Position(NamedTuple):
    """The row that a page begins after; or, if ``backwards``, the row that it ends before.

    Without a key, a page that is read backwards ends with the list.
    """

    key: Any
    value: Any = None
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """A page: its rows, the number of rows before them, and the number of all rows of the list."""

    rows: Sequence[Row]
    offset: int
    total: int


def fetch(
    session: Session,
    query: Select[*tuple[Any, ...]],
    order: Order,
    *,
    descending: bool = False,
    position: Position | None = None,
    limit: int | None = None,
    options: Sequence[ExecutableOption] = (),
) -> Rows[Any]:
    """One page of a query, in two statements: one counts, one reads. Rows of one entity are that entity."""
    backwards = position is not None and position.backwards
    beyond = None
    if position is not None and position.key is not None:
        beyond = _beyond(order, position, descending is not backwards)
    total, past = _counted(session, query, beyond)
    down = descending is not backwards
    columns = [order.key] if order.value is None else [order.value, order.key]
    page = query.options(*options).order_by(*(each.desc() if down else each.asc() for each in columns))
    if beyond is not None:
        page = page.where(beyond)
    found = session.execute(page.limit(limit))
    rows = list(found.scalars() if len(query.column_descriptions) == 1 else found)
    if backwards:
        return Rows(rows[::-1], total - past - len(rows), total)
    return Rows(rows, past, total)


def _counted(
    session: Session, query: Select[*tuple[Any, ...]], beyond: ColumnElement[bool] | None
) -> tuple[int, int]:
    """The number of all rows, and of those on the other side of the position."""
    past = func.count() if beyond is None else func.count().filter(not_(beyond))
    counted = query.with_only_columns(func.count(), past, maintain_column_froms=True).order_by(None)
    total, other_side = session.execute(counted).one()
    return total, 0 if beyond is None else other_side


def _beyond(order: Order, position: Position, down: bool) -> ColumnElement[bool]:
    """Whether a row comes after the position, in the direction of reading."""

    def after(column: Any, bound: Any) -> ColumnElement[bool]:
        return column < bound if down else column > bound  # type: ignore[no-any-return]

    if order.value is None:
        return after(order.key, position.key)
    same = and_(order.value == position.value, after(order.key, position.key))
    return or_(after(order.value, position.value), same)
