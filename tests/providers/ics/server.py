"""A small HTTP server of feeds: validators, faults, and a count of what it was asked."""

from __future__ import annotations

import gzip
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from providers.base import Account, Token
from tests.http_server import KeepAliveHandler, serving


@dataclass
class Asked:
    """One request."""

    path: str
    headers: dict[str, str]


@dataclass
class FeedServer:
    """Feeds by path. ``replies`` are answers to the next requests, before those of the feeds."""

    url: str = ""
    feeds: dict[str, bytes] = field(default_factory=dict)
    has_validators: bool = True
    zipped: bool = False
    asked: list[Asked] = field(default_factory=list)
    # Status, body and headers.
    replies: list[tuple[int, bytes, dict[str, str]]] = field(default_factory=list)
    # The same for all requests.
    always: tuple[int, bytes, dict[str, str]] | None = None
    # How many requests to close the connection on, without an answer; all if negative.
    silent_requests: int = 0

    def put(self, content: bytes, path: str = "/feed.ics") -> str:
        """Serve a feed; its address."""
        self.feeds[path] = content
        return self.url + path

    def answer(self, handler: Any) -> None:
        """Answer one request."""
        self.asked.append(Asked(handler.path, dict(handler.headers)))
        if self.silent_requests:
            self.silent_requests -= 1
            handler.close_connection = True
            return
        reply = self.replies.pop(0) if self.replies else self.always
        if reply is not None:
            handler.reply(*reply)
        elif handler.path not in self.feeds:
            handler.reply(404, b"<html>not found</html>")
        else:
            self._serve(handler, self.feeds[handler.path])

    def _serve(self, handler: Any, content: bytes) -> None:
        etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        headers = {"Content-Type": "text/calendar; charset=utf-8"}
        if self.has_validators:
            headers["ETag"] = etag
            if handler.headers.get("If-None-Match") == etag:
                handler.send_response(304)
                handler.send_header("ETag", etag)
                handler.end_headers()
                return
        if self.zipped:
            content, headers["Content-Encoding"] = gzip.compress(content), "gzip"
        handler.reply(200, content, headers)


@contextmanager
def feed_server() -> Iterator[FeedServer]:
    """A server on a free port."""
    server = FeedServer()

    class Feeds(KeepAliveHandler):
        def do_GET(self) -> None:
            server.answer(self)

    handler: type[BaseHTTPRequestHandler] = Feeds
    with serving(handler) as server.url:
        yield server


class Stored:
    """The stored address of a feed."""

    def __init__(self, url: str) -> None:
        self._url = Token(url)

    def access_token(self, *, deadline: float) -> Token:
        return self._url

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        raise AssertionError("nothing is renewed")


def account(url: str, **given: Any) -> Account:
    """The account of a feed."""
    return Account(None, frozenset({"read"}), Stored(url), **given)


def soon(seconds: float = 20.0) -> float:
    """A deadline."""
    return time.monotonic() + seconds
