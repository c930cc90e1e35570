"""One webhook on the wire: a POST to an address that was checked, of whose answer only the status counts."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException
from threading import Event, Timer

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError

from providers.http.transport import tls
from workers.webhooks.ssrf_guard import Target, parse, resolve

# Connect, and then each read, in seconds.
TIMEOUT = 5.0
# For all of it at one address, in seconds: an answer that drips is hung up on.
MOST_SECONDS = 10.0
# Of the addresses of a name, so many are tried.
MOST_ADDRESSES = 3

USER_AGENT = "Almanac webhooks"


class NoAnswer(Exception):
    """Nobody answered; the message says how far it came, and nothing of what was sent."""


def post(url: str, headers: Mapping[str, str], body: bytes, *, allow_private: bool) -> int:
    """Send, and return the status of the answer; its body is not read, redirects are not followed.

    The name is resolved once, and what it was found to mean is connected to: no later answer of its name
    server leads elsewhere.

    :raise Refused: when the URL leads where nothing is sent
    :raise NoAnswer: when nobody answered in time
    """
    target = parse(url, allow_private=allow_private)
    began = time.monotonic()
    addresses = resolve(target, allow_private=allow_private)
    if not addresses or time.monotonic() - began > MOST_SECONDS:
        raise NoAnswer("the host was not found")
    for address in addresses[:MOST_ADDRESSES]:
        connection = _connection(target, address)
        try:
            with _hung_up_in_time(connection):
                return _exchange(connection, target, headers, body)
        except (NewConnectionError, ConnectTimeoutError):
            continue
        except (HTTPError, HTTPException, OSError) as error:
            raise NoAnswer(_in_words(error)) from error
        finally:
            connection.close()
    raise NoAnswer("no connection")


def _connection(target: Target, address: str) -> HTTPConnection:
    if not target.tls:
        return HTTPConnection(address, target.port, timeout=TIMEOUT)
    # The certificate has to be the name's, whatever the address.
    return HTTPSConnection(
        address, target.port, timeout=TIMEOUT, ssl_context=tls(), server_hostname=target.host
    )


def _exchange(connection: HTTPConnection, target: Target, headers: Mapping[str, str], body: bytes) -> int:
    connection.request(
        "POST",
        target.path,
        body,
        {**headers, "Host": target.authority, "User-Agent": USER_AGENT},
        preload_content=False,
    )
    return connection.getresponse().status


@contextmanager
def _hung_up_in_time(connection: HTTPConnection) -> Iterator[None]:
    """Hang up when it takes too long.

    :raise TimeoutError: then, also where a head that was cut off looks whole
    """
    late = Event()

    def hang_up() -> None:
        late.set()
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    timer = Timer(MOST_SECONDS, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if late.is_set():
            raise TimeoutError


def _in_words(error: Exception) -> str:
    """What went wrong; a library's own words could hold an address of our network."""
    match error:
        case ssl.SSLCertVerificationError():
            return "the certificate is not valid for the host"
        case ssl.SSLError():
            return "TLS failed"
        case TimeoutError():
            return "no answer in time"
    return "the connection broke off"
