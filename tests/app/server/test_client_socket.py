"""The time budget of a client socket, with both ends of the connection."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from app.server import client_socket
from app.server.client_socket import ClientSocket

# More bytes than the buffers of a socket pair hold.
ANSWER = bytes(4 * 1024 * 1024)


@pytest.fixture
def pair(monkeypatch) -> Iterator[tuple[ClientSocket, socket.socket]]:
    """The server's end of a connection, with a short time budget, and the client's."""
    monkeypatch.setattr(client_socket, "PATIENCE", 0.2)
    ours, theirs = socket.socketpair()
    with ClientSocket(fileno=ours.detach()) as end, theirs:
        end.restart_timer()
        yield end, theirs


def test_a_client_that_receives_nothing_is_reset(pair):
    ours, _ = pair
    with pytest.raises(ConnectionResetError):
        ours.sendall(ANSWER)


def test_a_client_that_sends_nothing_is_reset(pair):
    ours, _ = pair
    with pytest.raises(ConnectionResetError):
        ours.recv(1)


def test_after_a_reset_there_is_no_second_wait(pair):
    ours, _ = pair
    ours.left = 0.0
    for again in (lambda: ours.recv(1), lambda: ours.send(b"x"), lambda: ours.sendall(b"x")):
        with pytest.raises(ConnectionResetError):
            again()
    ours.restart_timer()
    assert ours.send(b"x") == 1


def test_received_bytes_add_time_up_to_the_budget(pair, monkeypatch):
    ours, _ = pair
    monkeypatch.setattr(client_socket, "PATIENCE", 90.0)
    for left, least, most in ((30.0, 31.0, 40.0), (85.0, 86.0, 90.0)):
        ours.left = left
        ours.sendall(bytes(10 * client_socket.BYTES_A_SECOND))
        assert least < ours.left <= most


def test_an_answer_arrives_whole_with_the_timeout_that_was_set(pair):
    ours, theirs = pair
    ours.settimeout(60)
    ours.sendall(b"first")
    ours.setblocking(False)
    assert ours.send(b"second") == 6
    assert theirs.recv(64) == b"firstsecond"
    assert ours.gettimeout() == 0.0


def test_closing_gracefully_informs_the_client_and_leaves_the_socket_open(pair):
    ours, theirs = pair
    ours.close_gracefully()
    assert theirs.recv(1) == b""
    assert ours.fileno() >= 0
    with pytest.raises(ConnectionResetError):
        ours.recv(1)
    ours.close()
    ours.close_gracefully()
