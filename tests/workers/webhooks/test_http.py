"""One webhook on the wire: only to the checked address, and within the time limit."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from contextlib import ExitStack

import pytest

from providers.http.ssrf_guard import ForbiddenUrl
from tests.certificates import issue
from tests.receiver import receiving
from workers.webhooks import http
from workers.webhooks.http import NoEndpointAnswer, post

HEADERS = {"Content-Type": "application/json", "webhook-id": "msg_1"}
BODY = b'{"type":"calendar.changed"}'


@pytest.fixture
def names(monkeypatch):
    """A name server of the test; each name has the addresses of its next answer."""
    answers: dict[str, list[list[str]]] = {}
    real = socket.getaddrinfo

    def getaddrinfo(host, port, *args, **kwargs):
        if host not in answers:
            return real(host, port, *args, **kwargs)
        queue = answers[host]
        found = queue.pop(0) if len(queue) > 1 else queue[0]
        return [each for address in found for each in real(address, port, *args, **kwargs)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


def answered(url, *, allow_private=True):
    return post(url, HEADERS, BODY, allow_private=allow_private)


def send(url, *, allow_private=True):
    return answered(url, allow_private=allow_private).status


def test_it_arrives_as_it_was_sent(receiver):
    assert send(receiver.url) == 204
    (received,) = receiver.received
    assert (received.path, received.body) == ("/hook?from=almanac", BODY)
    assert received.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert HEADERS.items() <= {"Content-Type": received.headers["content-type"], **received.headers}.items()
    assert received.headers["user-agent"] == "Almanac webhooks"


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 410, 500])
def test_a_redirect_is_an_answer_like_any_other(receiver, status):
    receiver.statuses, receiver.headers = [status], {"Location": receiver.url}
    assert send(receiver.url) == status
    assert len(receiver.received) == 1


def test_an_unreachable_endpoint_gives_no_answer(receiver):
    receiver.down()
    with pytest.raises(NoEndpointAnswer, match="no connection"):
        send(receiver.url)
    with pytest.raises(NoEndpointAnswer, match="the host was not found"):
        send("https://nothing.invalid/")


def test_no_request_goes_to_a_forbidden_address(receiver):
    for url in (receiver.url.replace("http", "https"), f"https://[::ffff:127.0.0.1]:{receiver.port}/"):
        with pytest.raises(ForbiddenUrl, match="private"):
            send(url, allow_private=False)
    with pytest.raises(ForbiddenUrl, match="https"):
        send(receiver.url, allow_private=False)
    assert receiver.received == []


def test_the_address_that_was_checked_is_the_one_connected_to(receiver, names, monkeypatch):
    # The name server returns a public address for the check, and this host afterwards.
    names["rebinding.example"] = [["93.184.216.34"], ["127.0.0.1"]]
    tried = []

    def connect(connection):
        tried.append((connection.host, connection.port))
        raise http.NewConnectionError(connection, "not in a test")

    monkeypatch.setattr(http.HTTPSConnection, "connect", connect)
    with pytest.raises(NoEndpointAnswer, match="no connection"):
        send(f"https://rebinding.example:{receiver.port}/", allow_private=False)
    assert tried == [("93.184.216.34", receiver.port)]
    with pytest.raises(ForbiddenUrl, match="private"):
        send(f"https://rebinding.example:{receiver.port}/", allow_private=False)
    assert receiver.received == []


def test_the_next_address_of_a_name_is_tried(receiver, names):
    names["two.example"] = [["::1", "127.0.0.1"]]
    assert send(f"http://two.example:{receiver.port}/") == 204
    assert receiver.received[0].headers["host"] == f"two.example:{receiver.port}"


# --- TLS


@pytest.fixture
def tls_receiver(tmp_path, monkeypatch):
    """Make a receiver with a certificate of a name, trusted here."""
    closing = ExitStack()

    def make(name):
        certificate, server = issue(tmp_path, name)
        client = ssl.create_default_context(cafile=certificate)
        monkeypatch.setattr(http, "tls", lambda: client)
        requested = []
        server.sni_callback = lambda _socket, name, _context: requested.append(name)
        return closing.enter_context(receiving(tls=server)), requested

    with closing:
        yield make


def test_certificate_is_requested_by_name_and_must_match(tls_receiver, names):
    receiver, requested = tls_receiver("hooks.example")
    names["hooks.example"] = names["other.example"] = [["127.0.0.1"]]
    assert send(f"https://hooks.example:{receiver.port}/") == 204
    assert requested == ["hooks.example"]
    for url in (f"https://other.example:{receiver.port}/", f"https://127.0.0.1:{receiver.port}/"):
        with pytest.raises(NoEndpointAnswer, match="certificate"):
            send(url)
    assert len(receiver.received) == 1


def test_an_unknown_certificate_is_refused(tls_receiver, names, monkeypatch):
    receiver, _ = tls_receiver("hooks.example")
    names["hooks.example"] = [["127.0.0.1"]]
    monkeypatch.setattr(http, "tls", ssl.create_default_context)
    with pytest.raises(NoEndpointAnswer, match="certificate"):
        send(f"https://hooks.example:{receiver.port}/")
    assert receiver.received == []


# --- endpoints that are slow, long, or no HTTP servers


@pytest.fixture
def raw_server():
    """Make a server that does anything with a connection, in a thread; returns its URL."""
    listening = []

    def make(serve):
        listener = socket.create_server(("127.0.0.1", 0))
        listening.append(listener)

        def accept():
            connection, _ = listener.accept()
            with connection:
                serve(connection)

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"

    yield make
    for listener in listening:
        listener.close()


def drip(connection, head, drop):
    connection.sendall(head)
    try:
        for _ in range(1000):
            connection.sendall(drop)
            time.sleep(0.02)
    except OSError:
        return


def test_a_silent_endpoint_times_out(raw_server, monkeypatch):
    monkeypatch.setattr(http, "TIMEOUT", 0.2)
    url = raw_server(lambda connection: connection.recv(1) and time.sleep(5))
    with pytest.raises(NoEndpointAnswer, match="no answer in time"):
        send(url)


def test_a_response_that_arrives_byte_by_byte_is_cut_off(raw_server, monkeypatch):
    monkeypatch.setattr(http, "MAX_SECONDS", 0.3)
    for head, drop in ((b"HTTP/1.1 200 OK\r\nX: ", b"x"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n")):
        began = time.monotonic()
        with pytest.raises(NoEndpointAnswer, match="no answer in time"):
            send(raw_server(lambda connection, head=head, drop=drop: drip(connection, head, drop)))
        # The response would have taken twenty seconds.
        assert time.monotonic() - began < 10


def test_the_start_of_a_body_is_kept(raw_server):
    def serve(connection):
        connection.recv(65_536)
        body = b"no\0 such\r\n<b>hook</b> \xff" + b"x" * 1000
        connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    status, start = answered(raw_server(serve))

    assert status == 404
    assert start.startswith("no such <b>hook</b> \N{REPLACEMENT CHARACTER}xxx")
    assert len(start) <= http.MAX_OF_BODY


@pytest.mark.parametrize("head", [b"Content-Length: 500", b"Transfer-Encoding: chunked"])
def test_a_body_that_does_not_come_in_time_changes_nothing(raw_server, monkeypatch, head):
    monkeypatch.setattr(http, "BODY_SECONDS", 0.2)
    began = time.monotonic()
    url = raw_server(lambda connection: drip(connection, b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n", b"1"))

    assert send(url) == 200
    assert time.monotonic() - began < 5


def test_only_the_start_of_a_body_is_read(raw_server):
    sent = []

    def endless(connection):
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        try:
            while True:
                sent.append(connection.send(b"x" * 65_536))
        except OSError:
            return

    assert send(raw_server(endless)) == 200
    assert sum(sent) < 100_000_000


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 xyz\r\n\r\n", b"\0" * 100_000]
)
def test_what_is_no_answer(raw_server, answer):
    def serve(connection):
        connection.recv(65_536)
        connection.sendall(answer)

    with pytest.raises(NoEndpointAnswer, match="broke off"):
        send(raw_server(serve))


def test_nothing_of_it_is_in_an_error(receiver):
    receiver.down()
    with pytest.raises(NoEndpointAnswer) as failed:
        send(f"{receiver.url}&token=planted-secret")
    assert "planted" not in str(failed.value)
