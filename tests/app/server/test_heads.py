"""Limits of the head of a request, and paths as the client sent them, over a real socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.conftest import Api
from tests.installation.processes import web_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def port(environment: dict[str, str], database: object) -> Iterator[int]:
    """A real web server."""
    with web_server(environment, count=1) as number:
        yield number


def send(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send bytes; returns the status, headers and body of the answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece
            head, found, body = answer.partition(b"\r\n\r\n")
            lines = head.decode("latin1").split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
            if found and len(body) >= int(headers.get("content-length", 0)):
                return int(lines[0].split()[1]), headers, body
    pytest.fail(f"no whole answer: {answer!r}")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /v1/users?x=" + b"a" * 65_600 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET /v1/users HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * 400_000 + b"\r\n\r\n", 431),
        (b"GET /v1/users HTTP/1.1\r\nHost: x\r\n" + b"X-Many: a\r\n" * 101 + b"\r\n", 431),
        (b"NONSENSE\r\n\r\n", 400),
    ],
)
def test_heads_that_are_too_large_or_not_http_are_refused(port, request_, status):
    assert send(port, request_)[0] == status


def test_a_long_but_legal_query_reaches_the_application(port):
    ids = ",".join(f"calendar{number}@group.calendar.google.com" for number in range(205))
    path = f"/v1/users/ada/calendar/busy?start=2026-12-03&end=2026-12-04&calendarIds={ids}"
    assert 7000 < len(path) < 8150

    status, headers, body = send(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    assert (status, json.loads(body)["data"]) == (401, None)
    assert headers["x-request-id"]


def test_bytes_that_are_no_text_in_a_query_are_refused(port, api):
    head = f"\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n\r\n".encode()
    assert send(port, b"GET /v1/users?limit=\xff HTTP/1.1" + head)[0] == 400


@pytest.fixture
def get(port: int, api: Api) -> Callable[[str], tuple[int, Any]]:
    """Send an unescaped path with an API key; returns the status and the body."""

    def send_path(path: str) -> tuple[int, Any]:
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\n\r\n"
        status, _, body = send(port, head.encode())
        return status, json.loads(body)

    return send_path


EVENT = "/v1/users/nobody/calendar/events/google"


@pytest.mark.parametrize(
    "path",
    [
        f"{EVENT}/a%2Fb/c%2Fd%25",
        f"{EVENT}/{quote('x/' * 512, safe='')}/{quote('y#' * 512, safe='')}",
        # The maximum length of both; 49 KB when escaped.
        f"{EVENT}/{quote('🎉' * 2048)}/{quote('🎉' * 2048)}",
        f"http://almanac.example{EVENT}/a%2Fb/c",
        f"{EVENT}/meta%2F/x?y=/z",
    ],
)
def test_identifiers_with_slashes_and_of_any_length_reach_their_route(get, path):
    assert get(path) == (404, {"data": None, "error": "User not found", "code": "userNotFound"})


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        (f"{EVENT}/a/b%2F/c", 404, "There is no such path"),
        (f"/{EVENT}/a/b", 404, "There is no such path"),
        (f"{EVENT}/a//", 404, "There is no such path"),
        (f"{EVENT}/a/%FF", 404, "Event not found"),
        (f"{EVENT}/a/%zz", 404, "Event not found"),
        (f"{EVENT}/%2E%2E/b", 404, "Calendar not found"),
        (f"{EVENT}/../b", 404, "Calendar not found"),
        (f"{EVENT}/a/{quote('🎉' * 2049)}", 404, "Event not found"),
    ],
)
def test_other_identifiers_and_paths_are_refused_as_what_they_are(get, path, status, error):
    codes = {"Event not found": "eventNotFound", "Calendar not found": "calendarNotFound"}
    assert get(path) == (status, {"data": None, "error": error, "code": codes.get(error, "pathNotFound")})
