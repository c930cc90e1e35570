"""Bytes that no honest client sends, over a real socket to the production web server."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from app.server.commands import WEB_THREADS
from tests.installation.processes import web_server

pytestmark = pytest.mark.security

# The path of a smuggled request; its answer is recognized by this header.
SMUGGLED = "smuggled-7f3a"
ANSWER = re.compile(rb"HTTP/1\.[01] (\d{3}) ")
# As many as a process has threads, and more.
SLOW = WEB_THREADS + 18


@pytest.fixture(scope="module")
def port(environment: dict[str, str], database: object) -> Iterator[int]:
    with web_server(environment, count=1) as number:
        yield number


def talk(port: int, request: bytes, patience: float = 3.0) -> bytes:
    """The answer to some bytes, until the server closes or sends nothing for ``patience`` seconds."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(request)
        connection.settimeout(patience)
        try:
            while piece := connection.recv(65_536):
                answer += piece
        except (TimeoutError, ConnectionResetError):
            pass
    return answer


@pytest.fixture
def smuggled(api) -> bytes:
    """A whole request, hidden where the body of another one is."""
    head = f"GET /v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.key}\r\nX-Request-Id: {SMUGGLED}"
    return f"{head}\r\nConnection: close\r\n\r\n".encode()


POST = b"POST /v1/users HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

# The head of a request whose end a proxy in front may see elsewhere; the smuggled request follows it.
AMBIGUOUS = {
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 300\r\n\r\n",
    "two lengths the other way": POST + b"Content-Length: 300\r\nContent-Length: 0\r\n\r\n",
    "a list of lengths": POST + b"Content-Length: 0, 0\r\n\r\n",
    "a length with a sign": POST + b"Content-Length: +0\r\n\r\n",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n",
    "a length in hexadecimal": POST + b"Content-Length: 0x0\r\n\r\n",
    "a length with an underscore": POST + b"Content-Length: 0_0\r\n\r\n",
    "a length of other digits": POST + "Content-Length: \u0660\r\n\r\n".encode(),
    "length and chunks": POST + b"Content-Length: 300\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks and length": POST + CHUNKED + b"Content-Length: 300\r\n\r\n0\r\n\r\n",
    "two encodings": POST + CHUNKED + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "an unknown encoding": POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked not last": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a tab in the value": POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "a folded header": POST + b"X-A: b\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a folded encoding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a bare carriage return": POST + b"X-A: b\rTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no carriage returns": (POST + b"Content-Length: 300\r\n\r\n").replace(b"\r\n", b"\n"),
    "a NUL in a header": POST + b"X-A: b\x00c\r\nContent-Length: 0\r\n\r\n",
    "a header without a colon": POST + b"Nonsense\r\nContent-Length: 0\r\n\r\n",
    "a header without a name": POST + b": x\r\nContent-Length: 0\r\n\r\n",
    "a name with a space": POST + b"Content Length: 0\r\n\r\n",
    "a chunk with a sign": POST + CHUNKED + b"\r\n+0\r\n\r\n",
    "a negative chunk": POST + CHUNKED + b"\r\n-1\r\n\r\n",
    "a chunk in another way": POST + CHUNKED + b"\r\n0x0\r\n\r\n",
    "a chunk beyond all bounds": POST + CHUNKED + b"\r\nffffffffffffffffffff\r\n",
    "a chunk longer than it says": POST + CHUNKED + b"\r\n1\r\nabc\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": (POST + CHUNKED + b"\r\n0\r\n\r\n").replace(b"HTTP/1.1", b"HTTP/1.0"),
    "an encoding in HTTP/1.0": (POST + CHUNKED + b"Content-Length: 300\r\n\r\n0\r\n\r\n").replace(
        b"HTTP/1.1", b"HTTP/1.0"
    ),
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_request_with_ambiguous_end_closes_the_connection(port, smuggled, case: str):
    answer = talk(port, AMBIGUOUS[case] + smuggled)

    statuses = [int(each) for each in ANSWER.findall(answer)]
    assert SMUGGLED.encode() not in answer, answer
    assert all(400 <= each < 500 or each == 501 for each in statuses), answer


def test_request_after_a_complete_request_is_served(port, smuggled):
    """The control: the test above would see such answers."""
    (key,) = re.findall(rb"Authorization: [^\r]*\r\n", smuggled)
    empty = POST + b"Content-Length: 0\r\n\r\n"
    # With a key the body is read to its end. A body that is not read ends the connection.
    in_chunks = POST + key + CHUNKED + b"\r\n2\r\n{}\r\n0\r\n\r\n"
    for head, status in ((empty, 401), (in_chunks, 400)):
        answer = talk(port, head + smuggled)
        assert SMUGGLED.encode() in answer
        assert [int(each) for each in ANSWER.findall(answer)] == [status, 200]


LINES = (
    b"GET /v1/users\r\n\r\n",
    b"GET /v1/users HTTP/0.9\r\n\r\n",
    b"GET /v1/users HTTP/2.0\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET\t/v1/users\tHTTP/1.1\r\nHost: x\r\n\r\n",
    b"get /v1/users HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/users x HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT 127.0.0.1:6379 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://127.0.0.1:6379/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET * HTTP/1.1\r\nHost: x\r\n\r\n",
    b"TRACE /v1/users HTTP/1.1\r\nHost: x\r\nX-Planted: planted\r\n\r\n",
    b"FOO /v1/users HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\x00" * 2000,
    b"GET /" + b"%00" * 500 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(500)) + b"\r\n",
    b"GET /v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
    b"GET /v1/users HTTP/1.1\r\nHost: x\r\nX-Request-Id: \xc3\xa4\r\n\r\n",
)


@pytest.mark.parametrize("line", LINES)
def test_no_request_line_is_a_fault_of_ours_and_none_is_sent_back(port, line: bytes):
    answer = talk(port, line)

    statuses = [int(each) for each in ANSWER.findall(answer)]
    assert all(400 <= each < 500 or each in (501, 505) for each in statuses), answer
    assert b"planted" not in answer
    assert b"Traceback" not in answer


HOSTS = (
    b"evil.example",
    b"evil.example:80",
    b"127.0.0.1@evil.example",
    b"evil.example/x",
    b"[::1",
    b"a b",
    b"",
)
FORWARDED = (
    b"X-Forwarded-Host: evil.example\r\n",
    b"X-Forwarded-Server: evil.example\r\n",
    b"X-Forwarded-Prefix: //evil.example\r\n",
    b"X-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example\r\n",
    b"Forwarded: host=evil.example;proto=https\r\n",
    b"X-Original-URL: //evil.example/\r\nX-Rewrite-URL: //evil.example/\r\n",
    b"X-Script-Name: //evil.example\r\nSCRIPT_NAME: //evil.example\r\n",
    b"Script-Name: //evil.example\r\n",
)
PATHS = (b"/dashboard", b"/dashboard/", b"/dashboard/users?after=x", b"/v1/docs", b"/v1/openapi.json", b"//x")


@pytest.mark.parametrize("path", PATHS)
def test_no_answer_leads_to_a_host_of_the_caller_s_choice(port, path: bytes):
    """Or a cache in front would keep it for all clients."""
    for extra in (
        *(b"Host: " + each + b"\r\n" for each in HOSTS),
        *(b"Host: x\r\n" + each for each in FORWARDED),
    ):
        answer = talk(port, b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\n" + extra + b"\r\n")
        assert b"evil" not in answer, (extra, answer)
        assert not answer.startswith(b"HTTP/1.1 5"), (extra, answer)


# --- slow clients


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
UNFINISHED = {
    "a head": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "a body": POST + b"Content-Length: 1000\r\n\r\n{",
    "a chunk": POST + CHUNKED + b"\r\n100\r\n{",
    "nothing": b"",
}


@pytest.mark.parametrize("what", UNFINISHED)
def test_unfinished_requests_delay_others_briefly(port, what: str):
    with ExitStack() as held:
        for _ in range(SLOW):
            connection = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            connection.sendall(UNFINISHED[what])

        # Longer than the server's timeout, and bounded.
        answer = talk(port, HEALTH, patience=90)

        assert answer.startswith(b"HTTP/1.1 200 "), answer


@pytest.fixture(scope="module")
def impatient(environment: dict[str, str], database: object) -> Iterator[int]:
    """The port of a server that waits for two seconds only."""
    with web_server(environment, count=1, target="tests.security.impatient:app") as number:
        yield number


# As many as a process has threads, and more.
DEAF = WEB_THREADS + 16
TURNS = 30
UNTAKEN = {
    "a file": b"GET /v1/docs/swagger-ui.js HTTP/1.1\r\nHost: x\r\n\r\n" * TURNS,
    "a text": b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * TURNS,
    "a goodbye": HEALTH,
}


@pytest.mark.parametrize("what", UNTAKEN)
def test_unread_answers_delay_others_briefly(impatient, what: str):
    with ExitStack() as held:
        for _ in range(DEAF):
            connection = held.enter_context(socket.create_connection(("127.0.0.1", impatient), timeout=20))
            connection.sendall(UNTAKEN[what])

        # Until the others have requested more than their sockets hold: each in turn begins one answer.
        for _ in range(TURNS):
            answer = talk(impatient, HEALTH, patience=60)
            assert answer.startswith(b"HTTP/1.1 200 "), answer
