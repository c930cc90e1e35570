"""HTTP transport: trusted certificates, and connections that outlive threads."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from providers.http import transport


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[str]:
    """The URL of an HTTPS server with an untrusted certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "pem").write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pem")

    class Quiet(HTTPServer):
        def handle_error(self, *_: object) -> None:
            """Ignore the rejected handshake, which the test expects."""

    server = Quiet(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"https://localhost:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


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
        env=os.environ | {"SSL_CERT_FILE": str(tmp_path / "pem")},
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
