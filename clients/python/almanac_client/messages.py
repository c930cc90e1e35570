"""Requests and replies, apart from how they travel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar
from urllib.parse import quote
from uuid import uuid4

import msgspec

from almanac_client.errors import Unreadable
from almanac_client.records import FailedCalendar, FailedUser

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a path below ``/v1``. A ``repeatable`` one has the same effect when it is sent twice."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False

    @classmethod
    def get(
        cls, path: str, query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> Self:
        """A request that only reads."""
        return cls("GET", path, query or {}, headers=headers or {}, repeatable=True)

    @classmethod
    def create(
        cls,
        path: str,
        body: Mapping[str, Any],
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Self:
        """A request that creates once, however often it is sent: Almanac knows it by its idempotency key."""
        key = {"Idempotency-Key": idempotency_key or str(uuid4())}
        return cls("POST", path, query or {}, body, {**(headers or {}), **key}, repeatable=True)

    @property
    def name(self) -> str:
        """The request in messages of errors."""
        return f"{self.method} {self.path}"


class Envelope(msgspec.Struct, Generic[T], rename="camel"):
    """The body of a successful answer."""

    data: T
    failed_calendars: list[FailedCalendar] = []
    failed_users: list[FailedUser] = []
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A successful answer to a request."""

    request: Request
    content: bytes
    headers: Mapping[str, str]

    def envelope(self, kind: type[T]) -> Envelope[T]:
        """The body, with data of this type.

        :raise Unreadable: when it is not an answer of Almanac's
        """
        found: Envelope[T] = self.decoded(Envelope[kind])  # type: ignore[valid-type]
        return found

    def decoded(self, kind: type[T]) -> T:
        """The body as this type.

        :raise Unreadable: when it is not an answer of Almanac's
        """
        try:
            return msgspec.json.decode(self.content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            text = f"{self.request.name} was answered by something that is not Almanac: {error}"
            raise Unreadable(text, status=200, request_id=self.headers.get("X-Request-Id")) from error


def path(template: str, *names: str) -> str:
    """A path with ids in place of each ``{}``.

    :raise ValueError: for an id that would change the path
    """
    for name in names:
        if name in ("", ".", ".."):
            raise ValueError(f"an id is not {name!r}")
    return template.format(*(quote(name, safe="") for name in names))
