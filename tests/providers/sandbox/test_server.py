"""The sandbox's process: start, stop and load."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import DAY, MEETING


def test_server_prints_its_url_and_stops_on_sigterm(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = [sys.executable, "-m", "providers.sandbox", "--port", "0", "--ready-file", str(ready)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        url = line.removeprefix("Sandbox on ").strip()
        assert ready.read_text().strip() == url
        sandbox = Sandbox(url)
        account = sandbox.account("google", "ada@example.com")
        sandbox.fault(latency_ms=60_000)
        # A slow call does not block it.
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as waiting:
            head = f"GET /google/userinfo HTTP/1.1\r\nAuthorization: Bearer {account.access_token}\r\n\r\n"
            waiting.sendall(head.encode())
            while sandbox.requests().total == 0:
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=20) == 0
        assert process.stderr.read() == ""


def test_one_connection_serves_many_calls_of_every_form(sandbox: Sandbox) -> None:
    port = int(sandbox.url.rpartition(":")[2])
    token = sandbox.account("google", "ada@example.com", events=[MEETING]).access_token
    body = json.dumps({**DAY, "items": [{"id": "primary"}]}).encode()
    head = f"POST /google/calendar/v3/freeBusy HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    plain = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()
    chunked += b"5\r\n" + body[:5] + b"\r\n" + f"{len(body) - 5:x}\r\n".encode() + body[5:] + b"\r\n0\r\n\r\n"
    careful = (
        f"{head}Expect: 100-continue\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    )
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(plain + chunked + careful + body)
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.count(b"HTTP/1.1 100 Continue") == 1
    assert answer.count(b"2026-12-03T09:00:00Z") == 3
