"""JSON responses, built at once or streamed; they and pages are compressed if they are long."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

import orjson
from flask import Flask, Response, g, request
from flask.json.provider import JSONProvider
from werkzeug.datastructures import Accept
from werkzeug.http import parse_accept_header

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdCompressor
else:
    from backports.zstd import ZstdCompressor

# Longer responses, in bytes, are streamed. Each piece costs a change of threads, so pieces are large.
STREAMED_FROM = 1_048_576


class Json(JSONProvider):
    """JSON by orjson: fast, strict, and without Python's recursion limit."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        """Serialize a value."""
        return orjson.dumps(obj).decode()

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        """Parse a text."""
        return orjson.loads(s)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        """A response with one value as its body."""
        return Response(orjson.dumps(self._prepare_response_obj(args, kwargs)), mimetype="application/json")


def json_response(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response with this body, without an envelope; bytes are JSON already.

    An iterator of pieces is streamed if it is long.
    """
    if isinstance(body, Iterator):
        data: bytes | Iterator[bytes] = _joined_or_streamed(body)
    else:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
    return Response(data, status, headers, mimetype="application/json")


def json_object(members: Mapping[str, Any]) -> Iterator[bytes]:
    """A JSON object in pieces. Bytes and iterators are JSON already; names must need no escaping."""
    between = b"{"
    for name, value in members.items():
        yield b'%s"%s":' % (between, name.encode())
        if isinstance(value, Iterator):
            yield from value
        else:
            yield value if isinstance(value, bytes) else orjson.dumps(value)
        between = b","
    yield b"}"


def json_array(items: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """A JSON array in pieces, from items in pieces."""
    between = b"["
    for item in items:
        yield between
        yield from item
        between = b","
    yield b"[]" if between == b"[" else b"]"


def extra_fields(**fields: object) -> None:
    """Add these fields to the body of the response of this request."""
    g.extra_fields = fields


def _joined_or_streamed(pieces: Iterator[bytes]) -> bytes | Iterator[bytes]:
    blocks = _blocks(pieces)
    first = next(blocks, b"")
    second = next(blocks, None)
    return first if second is None else chain((first, second), blocks)


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of at least ``STREAMED_FROM`` bytes; the last may be shorter."""
    block: list[bytes] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if size >= STREAMED_FROM:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)


# Above this size, compressing takes less time than a gigabit link needs for the saved bytes.
MIN_BYTES = 4096

# Preferred first.
_ENCODINGS = ("zstd", "gzip")


def install(app: Flask) -> None:
    """Serialize with orjson, and compress.

    Install first: Flask runs ``after_request`` hooks in reverse order, and this one must run last.
    """
    app.json = Json(app)
    app.after_request(_compress_response)


def compress(body: bytes, accepted: str) -> tuple[bytes, str | None]:
    """A JSON body as it is sent to a client that accepts these encodings, and its encoding, if any."""
    encoding = _encoding(accepted) if len(body) >= MIN_BYTES else None
    return (body, None) if encoding is None else (b"".join(_compressed([body], encoding)), encoding)


# A part of a file is not compressed.
_WHOLE = frozenset({200, 201, 202, 203})

# Besides JSON: what pages are made of. A page repeats no secret beside text of a request, and has another
# token in its forms each time, so that its compressed length tells nothing.
_TEXTS = frozenset({"text/html", "text/css", "text/javascript", "image/svg+xml"})


def _compress_response(response: Response) -> Response:
    response.vary.add("Accept-Encoding")
    encoding = _encoding(request.headers.get("Accept-Encoding", ""))
    is_text = response.is_json or response.mimetype in _TEXTS
    short = not response.is_streamed and (response.content_length or 0) < MIN_BYTES
    if encoding is None or short or not is_text or response.status_code not in _WHOLE:
        return response
    if response.content_encoding:
        return response
    if response.is_streamed and response.is_json:
        response.response = _compressed(response.iter_encoded(), encoding)
        response.headers.pop("Content-Length", None)
    else:
        # Files are read whole, too.
        response.direct_passthrough = False
        response.data = b"".join(_compressed([response.get_data()], encoding))
    response.content_encoding = encoding
    if response.get_etag()[0] is not None:
        # The bytes differ from those of the same file without compression.
        response.set_etag(response.get_etag()[0] or "", weak=True)
    return response


@lru_cache(maxsize=128)
def _encoding(accepted: str) -> str | None:
    """The encoding that the client likes best, if it does not like the plain text more."""
    qualities = parse_accept_header(accepted, Accept)
    best = max(_ENCODINGS, key=qualities.quality)
    plain = dict(qualities).get("identity", 0)
    return best if qualities.quality(best) > 0 and qualities.quality(best) >= plain else None


def _compressed(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    # Higher levels save a tenth of the bytes and take three times as long.
    compressor = (
        ZstdCompressor(level=1) if encoding == "zstd" else zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    )
    for piece in pieces:
        if packed := compressor.compress(piece):
            yield packed
    yield compressor.flush()
