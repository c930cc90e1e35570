"""A malicious provider: every request fails, and the answer echoes the request."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.http_server import Handler, serving

STATUSES = (400, 401, 403, 404, 409, 429, 500, 503, 200)


@contextmanager
def echoing() -> Iterator[str]:
    """Its address."""
    statuses = itertools.cycle(STATUSES)

    class EchoHandler(Handler):
        def handle_any(self) -> None:
            sent = self.read_body().decode(errors="replace")
            said = f"{self.command} {self.path} {self.headers} {sent}"
            error = {"code": said, "message": said, "status": said, "errors": [{"reason": said}]}
            body = json.dumps({"error": error, "error_description": said, "responses": said}).encode()
            self.send_response(next(statuses), said.replace("\r", " ").replace("\n", " "))
            for name in ("X-Said", "WWW-Authenticate", "Location"):
                self.send_header(name, said.replace("\r", " ").replace("\n", " "))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

    with serving(EchoHandler) as url:
        yield url
