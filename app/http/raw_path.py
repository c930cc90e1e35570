"""Paths whose segments may be any text: an escaped slash is part of its segment, and ends none.

WSGI servers undo a path's escapes before the application sees it; from the request line we make it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_to_bytes

from flask import Flask

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# gunicorn says RAW_URI, other servers REQUEST_URI.
RAW = ("RAW_URI", "REQUEST_URI")

# `http://host/path`, as a proxy may ask; `//host` is none, it is a path with an empty segment.
ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
# Most paths: nothing in them could have been escaped, and no slash is at issue.
PLAIN = re.compile(r"/[A-Za-z0-9._~-][A-Za-z0-9._~/-]*")
NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
ESCAPE = re.compile(rb"%(?!2[5Ff])([0-9A-Fa-f]{2})")
LONE_BYTE = re.compile("[\udc80-\udcff]")


def install(app: Flask) -> None:
    """Every route gets its path so; ``text`` reads a segment that may hold anything."""
    app.wsgi_app = _Exact(app.wsgi_app)  # type: ignore[method-assign]


class _Exact:
    """The application behind it sees each segment of the path as the client meant it."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ["PATH_INFO"] = path_info(environ)
        return self._application(environ, start_response)


def path_info(environ: WSGIEnvironment) -> str:
    """The path of a request, without those escapes whose meaning outlives the cutting into segments.

    ``%2F``, ``%25`` and bytes that are no UTF-8 stay escaped, for ``text`` to read.
    """
    served: str = environ.get("PATH_INFO", "")
    if PLAIN.fullmatch(served) and environ.get("RAW_URI", "").partition("?")[0] == served:
        return served
    for path in _sent(environ):
        if _plain(path) == served.encode("latin1").decode(errors="replace"):
            return _kept(path)
    # Somebody before us changed the path: its slashes stand, and no escape is left in it.
    return served.replace("%", "%25")


def text(segment: str) -> str:
    """A segment of such a path as the text that it stands for; bytes that stand for none are surrogates."""
    return unquote(segment, errors="surrogateescape")


def _sent(environ: WSGIEnvironment) -> Iterator[str]:
    """The path of the request line, then without the part that the server or a proxy mounted us at."""
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
    """A path with every escape undone, as servers do."""
    return unquote_to_bytes(path.encode("latin1")).decode(errors="replace")


def _kept(path: str) -> str:
    # A % that begins no escape is as unreadable as this byte, which is in no UTF-8.
    escaped = NO_ESCAPE.sub(b"%FF", path.encode("latin1"))
    undone = ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), escaped)
    readable = undone.decode(errors="surrogateescape")
    kept = LONE_BYTE.sub(lambda found: f"%{ord(found[0]) - 0xDC00:02X}", readable)
    return _with_slashes_at_the_front_kept(kept).encode().decode("latin1")


def _with_slashes_at_the_front_kept(path: str) -> str:
    # werkzeug drops all but one, and would find a path that was not asked for.
    rest = path.lstrip("/")
    return path if path == rest else "/" + "%2F" * (len(path) - len(rest) - 1) + rest
