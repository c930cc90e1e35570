"""Whether a part of this host answers over HTTP, also behind a proxy for the outside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from app.server import local_http


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """No log."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_success_is_no_fault_although_the_environment_has_a_proxy(url, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)

    assert local_http.fault(f"{url}/healthz", seconds=5) is None


def test_another_status_is_a_fault(url):
    assert "503" in (local_http.fault(f"{url}/other", seconds=5) or "")


def test_a_closed_port_is_a_fault():
    assert "refused" in (local_http.fault("http://127.0.0.1:1/healthz", seconds=5) or "")
