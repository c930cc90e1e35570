"""HTTP transport: trusted certificates, and connections that outlive threads."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from providers.http import ssrf_guard, transport
from providers.http.calls import Reach
from providers.http.transport import MAX_ADDRESSES
from tests.certificates import issue
from tests.http_server import Handler, serving


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[str]:
    """The URL of an HTTPS server with an untrusted certificate."""
    _, context = issue(tmp_path, "localhost")
    with serving(Handler, context) as url:
        yield f"{url.replace('127.0.0.1', 'localhost')}/"


def test_an_untrusted_certificate_is_refused(impostor):
    with pytest.raises(transport.ConnectionFailed) as raised:
        transport.exchange("GET", impostor, {}, None, deadline=time.monotonic() + 5)
    assert "CERTIFICATE_VERIFY_FAILED" in repr(raised.value.__cause__)


def test_an_authority_the_operator_trusts_is_trusted(impostor, tmp_path):
    program = (
        "import sys, time; from providers.http import transport\n"
        "answer, _ = transport.exchange('GET', sys.argv[1], {}, None, deadline=time.monotonic() + 5)\n"
        "print(answer.status_code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, impostor],
        env=os.environ | {"SSL_CERT_FILE": str(tmp_path / "localhost.pem")},
        capture_output=True,
        check=True,
        text=True,
    )
    assert ran.stdout.strip() == "501"


def test_the_proxies_of_the_environment_are_not_used(script: Any, monkeypatch):
    script.say(body={})
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    answer, _ = transport.exchange("GET", script.url, {}, None, deadline=time.monotonic() + 5)

    assert answer.status_code == 200


def test_a_connection_outlives_the_thread_that_opened_it(script: Any):
    script.say(body={})
    for _ in range(3):
        thread = threading.Thread(
            target=transport.exchange,
            args=("GET", script.url, {}, None),
            kwargs={"deadline": time.monotonic() + 5},
        )
        thread.start()
        thread.join()
    assert len({each["peer"] for each in script.requests}) == 1


OUT_OF_FILES = """
import contextlib, os, resource, sys, time
from providers.http import transport
from providers.google.errors import error_for
from providers.http.calls import Call
from providers.http.send import send
from providers.errors import LocalResourceExhausted
transport.prepare()
more, most = 64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (more, most))
with contextlib.suppress(OSError):
    while True:
        os.open(os.devnull, os.O_RDONLY)
call = Call("Google Calendar", "calendar.freebusy.query", "GET", sys.argv[1], repeatable=False)
try:
    send(call, error_for, deadline=time.monotonic() + 60)
except LocalResourceExhausted as error:
    print(error.problem, error.message, sep="|")
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_machine_that_has_no_file_left_does_not_blame_the_provider(host):
    """Neither a failed connection nor a failed name lookup counts as the provider's fault."""
    program = [sys.executable, "-c", OUT_OF_FILES, f"http://{host}:1/"]
    ran = subprocess.run(program, capture_output=True, check=True, text=True)
    assert ran.stdout.strip() == "outOfService|The service lacks the means to ask this account just now"


def test_a_name_that_is_not_there_is_no_fault_of_ours():
    with pytest.raises(transport.ConnectionFailed):
        transport.exchange("GET", "http://nowhere.invalid/", {}, None, deadline=time.monotonic() + 60)


def fails(url: str, seconds: float = 10.0) -> transport.Unanswered:
    """The exception of a request that gets no answer."""
    with pytest.raises(transport.Unanswered) as raised:
        transport.exchange("GET", url, {}, None, deadline=time.monotonic() + seconds)
    return raised.value


def test_a_request_without_a_connection_was_not_sent(impostor):
    for url in ("http://127.0.0.1:1/", "http://nowhere.invalid/", impostor):
        assert fails(url).unsent, url


def test_a_request_on_a_connection_may_have_been_sent():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        before = after = None
        try:
            raise fails("http://127.0.0.1:1/")
        except transport.ConnectionFailed as error:
            before = error
            # The earlier failure is at the end of the next one's exception chain.
            after = fails(url, seconds=0.3)
    assert before.unsent
    assert (type(after), after.unsent) == (transport.OutOfTime, False)


def test_any_answer_shows_that_a_host_can_be_reached(script: Any):
    script.say(503, body={})
    assert transport.answers(script.url, seconds=10)
    assert not transport.answers("http://127.0.0.1:1/", seconds=10)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        assert not transport.answers(f"http://127.0.0.1:{silent.getsockname()[1]}/", seconds=0.2)
    assert time.monotonic() - began < 5


# Hosts that people enter.
ENTERED = pytest.mark.parametrize("reach", [Reach.ANY, Reach.PUBLIC])


@pytest.fixture
def resolve(monkeypatch) -> Callable[..., list[str]]:
    """Give names addresses of this machine, which count as public; returns the names that are looked up."""
    monkeypatch.setattr(ssrf_guard, "is_public", lambda address: True)
    real = socket.getaddrinfo

    def fill(**addresses: list[str]) -> list[str]:
        asked: list[str] = []

        def getaddrinfo(host, port, *args, **kwargs):
            asked.append(host)
            found = addresses.get(host.removesuffix(".test"), [host])
            return [each for address in found for each in real(address, port, *args, **kwargs)]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        return asked

    return fill


@pytest.fixture
def trickling() -> Iterator[Callable[[bytes, bytes], int]]:
    """Start a server that sends ``first`` at once and then ``rest`` again and again, a byte at a time."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(first: bytes, rest: bytes) -> None:
            caller, _ = server.accept()
            with caller, suppress(OSError):
                caller.recv(10_000)
                caller.sendall(first)
                until = time.monotonic() + 10
                while not ended.is_set() and time.monotonic() < until:
                    for byte in rest:
                        caller.sendall(bytes([byte]))
                        time.sleep(0.05)

        def begin(first: bytes, rest: bytes) -> int:
            threading.Thread(target=serve, args=(first, rest), daemon=True).start()
            return server.getsockname()[1]

        yield begin
        ended.set()


def entered(url: str, reach: Reach, seconds: float, grace: float = 0.0) -> Any:
    """The answer of a host that a person has entered."""
    return transport.exchange(
        "GET", url, {}, None, deadline=time.monotonic() + seconds, reach=reach, grace=grace
    )


OK = b"HTTP/1.1 200 OK\r\n"


@ENTERED
@pytest.mark.parametrize(
    ("first", "rest"),
    [
        (b"HTTP/1.1 2", b"0"),
        (OK, b"X: a\r\n"),
        (OK + b"X: ", b"aaa"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (OK + b"Content-Length: 9999\r\n\r\n", b"a"),
        (OK + b"Connection: close\r\n\r\n", b"a"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: a\r\n"),
    ],
)
def test_an_answer_that_trickles_in_ends_at_the_deadline(trickling, resolve, reach, first, rest):
    resolve()
    url = f"http://127.0.0.1:{trickling(first, rest)}/"
    began = time.monotonic()
    with pytest.raises(transport.OutOfTime) as raised:
        entered(url, reach, 0.3, grace=0.2)
    assert 0.45 < time.monotonic() - began < 1.5
    assert not raised.value.unsent


@ENTERED
def test_a_connection_stays_open_for_a_later_deadline(script: Any, reach, resolve):
    resolve()
    script.say(body={})
    for _ in range(2):
        assert entered(script.url, reach, 0.4)[0].status_code == 200
        time.sleep(0.5)
    assert len({each["peer"] for each in script.requests}) == 1


@ENTERED
def test_the_deadline_holds_for_all_addresses_of_a_name(resolve, reach):
    with socket.create_server(("0.0.0.0", 0), backlog=0) as full:
        port = full.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            # Later connections find no room, and wait.
            each.setblocking(False)
            each.connect_ex(("127.0.0.1", port))
        resolve(many=[f"127.0.0.{number}" for number in range(1, 9)])
        began = time.monotonic()
        with pytest.raises(transport.OutOfTime) as raised:
            entered(f"http://many.test:{port}/", reach, 0.4)
        assert time.monotonic() - began < 1.2
        assert raised.value.unsent
        for each in waiting:
            each.close()


@ENTERED
def test_only_the_first_addresses_of_a_name_are_tried(resolve, reach):
    addresses = [f"127.0.0.{number}" for number in range(1, 9)]
    asked = resolve(many=addresses)
    with pytest.raises(transport.ConnectionFailed) as raised:
        entered("http://many.test:1/", reach, 5)
    assert raised.value.unsent
    assert asked == ["many.test", *addresses[:MAX_ADDRESSES]]


@ENTERED
def test_the_next_address_is_tried_when_one_refuses(script: Any, resolve, reach):
    script.say(body={})
    resolve(two=["127.0.0.2", "127.0.0.1"])
    assert entered(script.url.replace("127.0.0.1", "two.test"), reach, 5)[0].status_code == 200


@ENTERED
def test_a_name_without_addresses_was_not_called(resolve, reach):
    resolve(none=[])
    with pytest.raises(transport.ConnectionFailed) as raised:
        entered("http://none.test/", reach, 5)
    assert raised.value.unsent
