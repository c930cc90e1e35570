"""Operations: a request, and how its reply is read. They know no transport, so each is written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from almanac_client.answers import Answer
from almanac_client.errors import error_of
from almanac_client.messages import Reply, Request

T = TypeVar("T")

# Rows per page by default.
PAGE = 200


@dataclass(frozen=True, slots=True)
class Operation(Generic[T]):
    """A request with one result."""

    request: Request
    read: Callable[[Reply], T]

    def result(self, status: int, headers: Mapping[str, str], content: bytes) -> T:
        """The result of an answer.

        :raise RequestFailed: when it is no success; the subclass says how to handle it
        """
        if status not in (200, 201):
            raise error_of(status, headers, content, self.request.name)
        return self.read(Reply(self.request, content, headers))


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list, and the cursor of the next one; None at the end."""

    items: Sequence[T]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A list that is requested page by page."""

    request: Request
    limit: int
    read: Callable[[Reply], Page[T]]

    def page(self, cursor: str | None) -> Operation[Page[T]]:
        """The page at a cursor; the first page without one."""
        more = {} if cursor is None else {"cursor": cursor}
        query = {**self.request.query, "limit": self.limit, **more}
        return Operation(replace(self.request, query=query), self.read)


def data(kind: type[T]) -> Callable[[Reply], T]:
    """Reads the data of an answer."""
    return lambda reply: reply.envelope(kind).data


def whole(kind: type[T]) -> Callable[[Reply], T]:
    """Reads an answer that has fields beside its data."""
    return lambda reply: reply.decoded(kind)


def nothing(reply: Reply) -> None:
    """Reads an answer that only says that the request has succeeded."""
    reply.envelope(dict[str, Any])


def field(name: str) -> Callable[[Reply], str]:
    """Reads one field of the data, a text."""
    return lambda reply: reply.envelope(dict[str, str]).data[name]


def answer(kind: type[T], *, accounted_for: bool = False) -> Callable[[Reply], Answer[T]]:
    """Reads data from calendars, and the calendars and users that could not be read."""

    def read(reply: Reply) -> Answer[T]:
        body = reply.envelope(kind)
        age = reply.headers.get("Age")
        return Answer(
            body.data,
            body.failed_calendars,
            body.failed_users,
            int(age) if age is not None and age.isdecimal() else None,
            accounted_for,
        )

    return read


def rows(kind: type[list[T]]) -> Callable[[Reply], Page[T]]:
    """Reads a page as its rows."""

    def read(reply: Reply) -> Page[T]:
        body = reply.envelope(kind)
        return Page(body.data, body.next_cursor)

    return read


def answers(kind: type[T]) -> Callable[[Reply], Page[Answer[T]]]:
    """Reads a page as an answer of its own, which names the calendars that could not be read."""

    def read(reply: Reply) -> Page[Answer[T]]:
        return Page([answer(kind)(reply)], reply.envelope(kind).next_cursor)

    return read
