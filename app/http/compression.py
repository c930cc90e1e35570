"""Long answers compressed, for clients that accept it."""

from __future__ import annotations

import re
from typing import cast

from flask import Flask, Response, request
from flask_compress import Compress

# From here on compressing takes less time than a gigabit line needs for the bytes it saves.
LEAST_BYTES = 4096

# Best first. Slots are so alike that higher levels gain a tenth and cost three times as much.
ALGORITHMS = ["zstd", "gzip"]

REFUSAL = re.compile(r"(gzip|zstd|\*)\s*;\s*q=0(\.0*)?\s*(,|$)", re.IGNORECASE)


def install(app: Flask) -> None:
    """Before everything else: what is registered first sees the answer last."""
    app.config.update(
        COMPRESS_MIMETYPES=["application/json"],
        COMPRESS_MIN_SIZE=LEAST_BYTES,
        COMPRESS_ALGORITHM=ALGORITHMS,
        COMPRESS_ALGORITHM_STREAMING=ALGORITHMS,
        COMPRESS_LEVEL=1,
        COMPRESS_ZSTD_LEVEL=1,
        COMPRESS_EVALUATE_CONDITIONAL_REQUEST=False,
    )
    _Compress(app)


class _Compress(Compress):
    """Takes ``gzip;q=0`` for what it is, a refusal; the library takes it for a last choice."""

    def after_request(self, response: Response) -> Response:
        """The answer as the client wants it."""
        accepted = request.headers.get("Accept-Encoding")
        if not accepted and "Vary" not in response.headers:
            response.headers.add("Vary", "Accept-Encoding")
            return response
        if accepted and REFUSAL.search(accepted):
            response.vary.add("Accept-Encoding")
            return response
        return cast(Response, super().after_request(response))
