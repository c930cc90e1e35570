"""A request and its answer as values, so that a part of a ``$batch`` is handled like any other call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal
from urllib.parse import parse_qs, unquote

import orjson

# Damage to the bytes of an answer; see ``wild``.
BROKEN_PART, SECOND_REPLY = "brokenPart", "secondReply"
LONE_SURROGATE, BYTE_ORDER_MARK = "loneSurrogate", "byteOrderMark"
OF_BYTES = frozenset({BROKEN_PART, SECOND_REPLY, LONE_SURROGATE, BYTE_ORDER_MARK})
MARK = b"\xef\xbb\xbf"
# An array that is opened and never closed, as Graph sends it when a shared calendar fails.
BROKEN = b'{"value":["error":{"code":"ErrorAccessDenied","message":"Access is denied."}}'
TITLES = re.compile(rb'("(?:subject|summary|name|displayName|bodyPreview)":\s*")')

# Damage to an answer in transit: cut short, or the connection reset.
Wreck = Literal["truncated", "reset"]


@dataclass
class Request:
    """One call; header names are lower case, ``target`` is path and query as received."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @cached_property
    def path(self) -> list[str]:
        """The segments, each decoded once: an id may hold an encoded slash."""
        return [unquote(part) for part in self.target.partition("?")[0].split("/") if part]

    @cached_property
    def query(self) -> dict[str, list[str]]:
        """Every value of every query parameter."""
        text = self.target.partition("?")[2]
        return parse_qs(text, keep_blank_values=True) if text else {}

    @cached_property
    def form(self) -> dict[str, str]:
        """The body as a form, the last value of each name."""
        fields = parse_qs(self.body.decode("utf-8", "replace"), keep_blank_values=True)
        return {name: values[-1] for name, values in fields.items()}

    def one(self, name: str, default: str = "") -> str:
        """The last value of a query parameter."""
        values = self.query.get(name)
        return values[-1] if values else default

    def flag(self, name: str) -> bool:
        """Whether a query parameter is ``true``."""
        return self.one(name) == "true"

    @property
    def origin(self) -> str:
        """Scheme and host as the client sees them, also through a proxy that adds TLS."""
        scheme = self.headers.get("x-forwarded-proto", "http")
        return f"{scheme}://{self.headers.get('host', '127.0.0.1')}"


@dataclass
class Answer:
    """A response: a JSON ``document`` or a ready ``body``, sent ``delay`` seconds after the call."""

    status: int = 200
    document: Any = None
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    wreck: Wreck | None = None
    indent: bool = False
    damage: frozenset[str] = frozenset()

    def content(self) -> bytes:
        """The bytes of the body."""
        content = self.body
        if self.document is not None:
            content = orjson.dumps(self.document, option=orjson.OPT_INDENT_2 if self.indent else 0)
        return damaged(content, self.damage) if self.damage else content


def damaged(content: bytes, damage: frozenset[str]) -> bytes:
    """The bytes of an answer with the damage to them."""
    if LONE_SURROGATE in damage:
        content = TITLES.sub(rb"\1\\ud83d", content)
    return MARK + content if BYTE_ORDER_MARK in damage else content


class Refused(Exception):
    """Ends the handling of a call with this answer."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"refused with {answer.status}")
        self.answer = answer
