"""JSON responses: built at once or streamed, compressed if they are long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, cast

import orjson
from flask import Flask, Response, g, request
from flask.json.provider import JSONProvider
from flask_compress import Compress
from flask_compress.flask_compress import _choose_algorithm, _compress_data

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

# Preferred first. Higher levels save a tenth of the bytes and take three times as long.
ALGORITHMS = ["zstd", "gzip"]

REFUSAL = re.compile(r"(gzip|zstd|\*)\s*;\s*q=0(\.0*)?\s*(,|$)", re.IGNORECASE)


def install(app: Flask) -> None:
    """Serialize with orjson, and compress.

    Install first: Flask runs ``after_request`` hooks in reverse order, and this one must run last.
    """
    app.json = Json(app)
    app.config.update(
        COMPRESS_MIMETYPES=["application/json"],
        COMPRESS_MIN_SIZE=MIN_BYTES,
        COMPRESS_ALGORITHM=ALGORITHMS,
        COMPRESS_ALGORITHM_STREAMING=ALGORITHMS,
        COMPRESS_LEVEL=1,
        COMPRESS_ZSTD_LEVEL=1,
        COMPRESS_EVALUATE_CONDITIONAL_REQUEST=False,
    )
    _Compress(app)


def compress(app: Flask, body: bytes, accepted: str) -> tuple[bytes, str | None]:
    """A JSON body as it is sent to a client that accepts these encodings, and its encoding, if any."""
    if len(body) < MIN_BYTES or REFUSAL.search(accepted):
        return body, None
    encoding = _choose_algorithm(tuple(ALGORITHMS), accepted)
    return (body, None) if encoding is None else (_compress_data(app, body, encoding), encoding)


class _Compress(Compress):
    """Treats ``gzip;q=0`` as a refusal; the library treats it as the last choice."""

    def after_request(self, response: Response) -> Response:
        """Compress the response if the client accepts it."""
        accepted = request.headers.get("Accept-Encoding", "")
        if REFUSAL.search(accepted):
            response.vary.add("Accept-Encoding")
            return response
        return cast(Response, super().after_request(response))
