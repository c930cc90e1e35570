"""HTTP/1.1 over sockets: keep-alive, and deliberately damaged answers.

This replaces a WSGI server, which cannot send a body shorter than its Content-Length, or a TCP reset.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from http.client import responses

from providers.sandbox.exchange import Answer, Request

MAX_HEAD = 64 * 1024
RECEIVE = 64 * 1024
# Linger for zero seconds: closing the socket then sends RST instead of FIN.
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Malformed(Exception):
    """The received bytes are not HTTP."""


class Connection:
    """One client's connection: reads requests and writes answers until either side closes."""

    def __init__(self, sock: socket.socket, handle: Callable[[Request], Answer]) -> None:
        self.sock = sock
        self.handle = handle
        self.buffer = b""

    def run(self) -> None:
        """Serve this client until it disconnects."""
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while self.serve_one():
                pass
        except (ConnectionError, Malformed):
            return
        finally:
            self.sock.close()

    def serve_one(self) -> bool:
        """Serve one request; returns whether another may follow."""
        request = self.read()
        if request is None:
            return False
        answer = self.handle(request)
        if answer.delay:
            time.sleep(answer.delay)
        if answer.wreck:
            self.spoil(answer)
            return False
        keep = request.headers.get("connection", "").lower() != "close"
        content = answer.content()
        self.sock.sendall(head(answer, len(content), keep) + content)
        return keep

    def read(self) -> Request | None:
        """The next request, or None when the client has closed."""
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            if len(self.buffer) > MAX_HEAD:
                raise Malformed("the head of the request never ends")
            if not (data := self.sock.recv(RECEIVE)):
                return None
            self.buffer += data
        lines = self.buffer[:end].decode("latin-1").split("\r\n")
        self.buffer = self.buffer[end + 4 :]
        method, target = request_line(lines[0])
        headers = fields(lines[1:])
        if headers.get("expect", "").lower() == "100-continue":
            self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        return Request(method, target, headers, self.body(headers))

    def body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(iter(self.chunk, b""))
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise Malformed("Content-Length is not a number")
        return self.take(int(length))

    def chunk(self) -> bytes:
        while b"\r\n" not in self.buffer:
            self.more()
        size, _, self.buffer = self.buffer.partition(b"\r\n")
        try:
            data = self.take(int(size.partition(b";")[0], 16))
        except ValueError as error:
            raise Malformed("a chunk has no size") from error
        self.take(2)
        return data

    def take(self, size: int) -> bytes:
        while len(self.buffer) < size:
            self.more()
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def more(self) -> None:
        if not (data := self.sock.recv(RECEIVE)):
            raise ConnectionError("the client closed within a request")
        self.buffer += data

    def spoil(self, answer: Answer) -> None:
        """Send half of the body under its full length, or reset the connection."""
        if answer.wreck == "reset":
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            return
        content = answer.content()
        self.sock.sendall(head(answer, len(content), False) + content[: len(content) // 2])


def request_line(line: str) -> tuple[str, str]:
    try:
        method, target, _version = line.split(" ")
    except ValueError as error:
        raise Malformed("the request line has not three words") from error
    return method, target


def fields(lines: list[str]) -> dict[str, str]:
    """Header fields by lower-case name; repeated ones are joined by a comma."""
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name = name.strip().lower()
        value = value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def head(answer: Answer, length: int, keep: bool) -> bytes:
    """Status line and header fields."""
    lines = [f"HTTP/1.1 {answer.status} {responses.get(answer.status, 'Unknown')}"]
    lines.extend(f"{name}: {value}" for name, value in answer.headers.items())
    if answer.status != 204:
        lines.append(f"Content-Length: {length}")
    if not keep:
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
