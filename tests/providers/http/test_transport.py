"""HTTP transport: trusted certificates, and connections that outlive threads."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from providers.http import transport
from tests.certificates import issue
from tests.http_server import Handler, serving


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[str]:
    """The URL of an HTTPS server with an untrusted certificate."""
    _, context = issue(tmp_path, "localhost")
    with serving(Handler, context) as url:
        yield f"{url.replace('127.0.0.1', 'localhost')}/"


def test_an_untrusted_certificate_is_refused(impostor):
    with pytest.raises(transport.NoAnswer) as raised:
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
from providers.http.send import Call, send
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
    with pytest.raises(transport.NoAnswer):
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
        except transport.NoAnswer as error:
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
