"""Bodies over a real socket: too large, compressed or too deeply nested, each gets its own error."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from typing import Any

import pytest

from tests.app.server.test_heads import send
from tests.conftest import Api
from tests.installation.processes import web_server

TOO_LARGE = b'{"id": "ada", "x": "' + b"a" * 1_050_000 + b'"}'
SMALL = b'{"id": "no!"}'
RANGE = "start=2026-12-03&end=2026-12-04"


@pytest.fixture(scope="module")
def port(environment: dict[str, str], database: object) -> Iterator[int]:
    """A real web server."""
    with web_server(environment, count=1) as number:
        yield number


@pytest.fixture
def post(port: int, api: Api) -> Callable[..., tuple[int, str]]:
    """Send a body; returns the status and the error sentence."""

    def send_body(body: bytes, *headers: str, path: str = "/v1/users", length: int | None = None):
        lines = ["Host: x", f"Authorization: Bearer {api.key}", "Content-Type: application/json", *headers]
        if length is not None:
            lines.append(f"Content-Length: {length}")
        head = "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""])
        status, answered, found = send(port, head.encode() + body)
        assert answered["content-type"] == "application/json"
        answer: Any = json.loads(found)
        assert answer["data"] is None
        return status, answer["error"]

    return send_body


def pieces(body: bytes, *, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    """A chunked body, without Content-Length."""
    cut = [body[at : at + 65_536] for at in range(0, len(body), 65_536)]
    chunks = b"".join(b"%x%s\r\n%s\r\n" % (len(each), extension, each) for each in cut)
    return chunks + b"0\r\n" + trailer + b"\r\n"


CHUNKED = "Transfer-Encoding: chunked"


@pytest.mark.slow
def test_too_large_content_length_is_413_before_the_body(post):
    assert post(b"", length=2_000_000) == (413, "The request body is larger than 1 MiB")


def test_too_large_chunked_body_is_413(post):
    assert post(pieces(TOO_LARGE), CHUNKED) == (413, "The request body is larger than 1 MiB")


def test_a_body_in_pieces_is_a_body(post):
    status, error = post(pieces(SMALL), CHUNKED)
    assert (status, error.startswith("id ")) == (400, True)


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "identity, gzip"])
def test_a_compressed_body_is_refused(post, coding):
    body = gzip.compress(SMALL)
    found = post(body, f"Content-Encoding: {coding}", length=len(body))
    assert found == (415, "The request body must not be compressed")


def test_a_body_that_is_compressed_on_its_way_is_refused(post):
    body = pieces(gzip.compress(SMALL))
    assert post(body, "Transfer-Encoding: gzip, chunked") == (415, "The request body must not be compressed")


def test_content_encoding_identity_is_accepted(post):
    status, error = post(SMALL, "Content-Encoding: identity", length=len(SMALL))
    assert (status, error.startswith("id ")) == (400, True)


@pytest.mark.parametrize("depth", [1_024, 400_000])
def test_a_body_that_is_nested_without_end_is_refused(post, depth):
    body = b'{"id": ' + b"[" * depth + b"]" * depth + b"}"
    assert post(body, length=len(body)) == (400, "The request body is nested too deeply: 1024 levels at most")


@pytest.mark.parametrize(
    "body",
    [
        pieces(SMALL, extension=b";" + b"x" * 100_000),
        pieces(SMALL, trailer=b"".join(b"X-%d: %s\r\n" % (n, b"a" * 100) for n in range(3000))),
        b"zz\r\n{}\r\n0\r\n\r\n",
    ],
    ids=["extension", "trailers", "no number"],
)
def test_pieces_that_are_no_pieces_are_the_callers_fault(post, body):
    assert post(body, CHUNKED) == (400, "The request body is not valid HTTP")


LISTS = [
    ("/v1/users/scheduling?" + RANGE, {"users": [{"id": f"user{n}"} for n in range(1001)]}, "users", 1000),
    (
        "/v1/users/ada/scheduling?" + RANGE,
        {"schedules": [{"days": ["monday"], "start": "09:00", "end": "10:00"}] * 201},
        "schedules",
        200,
    ),
    (
        "/v1/users/ada/calendar/events/google/primary",
        {
            "start": "2026-12-03T09:00:00Z",
            "end": "2026-12-03T10:00:00Z",
            "attendees": [{"email": f"a{n}@example.com"} for n in range(201)],
        },
        "attendees",
        200,
    ),
    ("/v1/organizations/acme/members", {"userIds": [f"user{n}" for n in range(10_001)]}, "userIds", 10_000),
]


@pytest.mark.parametrize(("path", "body", "field", "most"), LISTS, ids=[each[2] for each in LISTS])
def test_a_list_that_is_too_long_is_refused_by_its_name(post, path, body, field, most):
    encoded = json.dumps(body).encode()
    assert post(encoded, path=path, length=len(encoded)) == (
        400,
        f"{field} must have at most {most} elements",
    )


def test_too_many_slots_are_refused_before_any_provider_call(post, new_user, sandbox):
    people = [new_user(sandbox.account("google", f"{name}@example.com")) for name in ("ada", "bob")]
    sandbox.forget_requests()
    body = json.dumps({"users": [{"id": each} for each in people]}).encode()

    status, error = post(
        body,
        path="/v1/users/scheduling?start=2026-01-01&end=2026-12-31&slotDuration=1",
        length=len(body),
    )

    assert (status, "1000000" in error, "narrow" in error.lower()) == (400, True, True), error
    assert sandbox.requests().total == 0


def answered(connection: socket.socket) -> tuple[int, dict[str, str]]:
    """Status and headers of one answer, whose body is read too."""
    response = HTTPResponse(connection)
    response.begin()
    response.read()
    return response.status, {name.lower(): value for name, value in response.getheaders()}


def request_of(api: Api, path: str, body: bytes, *headers: str, key: str | None = None) -> bytes:
    """The bytes of a POST."""
    lines = ["Host: x", f"Authorization: Bearer {key or api.key}", *headers]
    return "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode() + body


JSON = "Content-Type: application/json"
LARGE = b"x" * 100_000
# More than the buffers of the two sockets hold.
LARGER = b"x" * 12_000_000
REFUSED = {
    "too large": (413, "/v1/users", [JSON, f"Content-Length: {len(TOO_LARGE)}"], TOO_LARGE),
    "compressed": (415, "/v1/users", [JSON, "Content-Encoding: gzip", "Content-Length: 100000"], LARGE),
    "no JSON": (415, "/v1/users", ["Content-Type: text/plain", "Content-Length: 100000"], LARGE),
    "no such path": (404, "/v1/nothing", [JSON, "Content-Length: 100000"], LARGE),
    "too large, in pieces": (413, "/v1/users", [JSON, CHUNKED], pieces(TOO_LARGE)),
    "much too large": (413, "/v1/users", [JSON, f"Content-Length: {len(LARGER)}"], LARGER),
    "no key": (401, "/v1/users", [JSON, CHUNKED], pieces(LARGE)),
    "invalid": (400, "/v1/users", [JSON, f"Content-Length: {len(SMALL)}"], SMALL),
    "invalid, in pieces": (400, "/v1/users", [JSON, CHUNKED], pieces(SMALL)),
}


@pytest.mark.parametrize("case", [case for case in REFUSED if REFUSED[case][0] == 413])
def test_too_large_body_closes_the_connection_without_reset(port, api, case):
    status, path, headers, body = REFUSED[case]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request_of(api, path, body, *headers))
        found, response_headers = answered(connection)
        assert (found, response_headers["connection"]) == (status, "close")
        # The server ends the connection without resetting it.
        assert connection.recv(1) == b""


@pytest.mark.parametrize("case", [case for case in REFUSED if REFUSED[case][0] != 413])
def test_any_other_refused_body_leaves_the_connection_open(port, api, case):
    status, path, headers, body = REFUSED[case]
    key = "alm_none" if status == 401 else None
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        for _ in range(3):
            connection.sendall(request_of(api, path, body, *headers, key=key))
            found, told = answered(connection)
            assert (found, told.get("connection")) == (status, None)
