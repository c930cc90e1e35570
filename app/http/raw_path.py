"""Paths whose segments may hold any text: a percent-encoded slash is part of its segment.

WSGI servers decode the path before the application receives it. This module rebuilds it from the request
line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_to_bytes

from flask import Flask

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# Almanac's adapter sets REQUEST_URI, other servers RAW_URI.
RAW = ("REQUEST_URI", "RAW_URI")

# `http://host/path`, as proxies may send it. `//host` has no origin: it is a path with an empty segment.
ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
# Most paths: without characters that need decoding, and without a doubled slash at the start.
PLAIN = re.compile(r"/[A-Za-z0-9._~-][A-Za-z0-9._~/-]*")
NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
ESCAPE = re.compile(rb"%(?!2[5Ff])([0-9A-Fa-f]{2})")
LONE_BYTE = re.compile("[\udc80-\udcff]")


def install(app: Flask) -> None:
    """Rebuild the path of every request; ``text`` decodes a segment that may hold any text."""
    app.wsgi_app = _RawPath(app.wsgi_app)  # type: ignore[method-assign]


class _RawPath:
    """WSGI middleware that passes each segment of the path as the client encoded it."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ["PATH_INFO"] = path_info(environ)
        return self._application(environ, start_response)


def path_info(environ: WSGIEnvironment) -> str:
    """The path of a request, decoded except for ``%2F``, ``%25`` and bytes that are not UTF-8.

    Routing splits the path at slashes first; ``text`` decodes the rest of a segment afterwards.
    """
    served: str = environ.get("PATH_INFO", "")
    if PLAIN.fullmatch(served) and environ.get("REQUEST_URI", "").partition("?")[0] == served:
        return served
    for path in _sent(environ):
        if _plain(path) == served.encode("latin1").decode(errors="replace"):
            return _kept(path)
    # A middleware or the server changed the path. It is fully decoded: its slashes separate segments.
    return served.replace("%", "%25")


def text(segment: str) -> str:
    """The decoded text of a segment; bytes that are not UTF-8 become surrogates."""
    return unquote(segment, errors="surrogateescape")


def _sent(environ: WSGIEnvironment) -> Iterator[str]:
    """The path of the request line, and the same without the prefix that the application is mounted at."""
    mounted = environ.get("SCRIPT_NAME", "")
    for name in RAW:
        raw = environ.get(name)
        if raw is None:
            continue
        path = re.split("[?#]", ORIGIN.sub("", raw, count=1), maxsplit=1)[0]
        yield path or "/"
        if mounted and path.startswith(mounted):
            yield path[len(mounted) :]


def _plain(path: str) -> str:
    """A fully decoded path, as servers pass it."""
    return unquote_to_bytes(path.encode("latin1")).decode(errors="replace")


def _kept(path: str) -> str:
    # A % that starts no escape is replaced by %FF, a byte that never occurs in UTF-8.
    escaped = NO_ESCAPE.sub(b"%FF", path.encode("latin1"))
    undone = ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), escaped)
    readable = undone.decode(errors="surrogateescape")
    kept = LONE_BYTE.sub(lambda found: f"%{ord(found[0]) - 0xDC00:02X}", readable)
    return _with_slashes_at_the_front_kept(kept).encode().decode("latin1")


def _with_slashes_at_the_front_kept(path: str) -> str:
    # werkzeug drops all but one of them and would match a path that the client did not request.
    rest = path.lstrip("/")
    return path if path == rest else "/" + "%2F" * (len(path) - len(rest) - 1) + rest
