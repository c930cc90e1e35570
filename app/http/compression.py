"""Compression of long responses, for clients that accept it."""

from __future__ import annotations

import re
from typing import cast

from flask import Flask, Response, request
from flask_compress import Compress
from flask_compress.flask_compress import _choose_algorithm, _compress_data

# Above this size, compressing takes less time than a gigabit link needs for the saved bytes.
MIN_BYTES = 4096

# Preferred first. Higher levels save a tenth of the bytes and take three times as long.
ALGORITHMS = ["zstd", "gzip"]

REFUSAL = re.compile(r"(gzip|zstd|\*)\s*;\s*q=0(\.0*)?\s*(,|$)", re.IGNORECASE)


def install(app: Flask) -> None:
    """Install first: Flask runs ``after_request`` hooks in reverse order, and this one must run last."""
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
