"""Sends one webhook: a POST to a checked address. Only the status and the start of the response are used."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPException
from threading import Event, Timer
from typing import NamedTuple

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError
from urllib3.response import BaseHTTPResponse

from providers.http.ssrf_guard import ParsedUrl, parse, resolve
from providers.http.transport import tls

# Timeout for the connection, and for each read, in seconds.
TIMEOUT = 5.0
# Limit in seconds for one address as a whole, which also ends a response that arrives byte by byte.
MAX_SECONDS = 10.0
# Time limit for the start of the body, which is kept for the log, in seconds; and its length in bytes.
BODY_SECONDS = 1.0
MAX_OF_BODY = 500
# How many addresses of a host name are tried.
MAX_ADDRESSES = 3
# An upper bound of the duration of ``post``, with the resolution of the host name.
MAX_POST_SECONDS = MAX_SECONDS * (1 + MAX_ADDRESSES)

USER_AGENT = "Almanac webhooks"


class EndpointResponse(NamedTuple):
    """The status of a response, and the start of its body as text without control characters."""

    status: int
    start: str


class NoEndpointAnswer(Exception):
    """The endpoint did not answer. The message names the stage that failed, and nothing that was sent."""


def post(url: str, headers: Mapping[str, str], body: bytes, *, allow_private: bool) -> EndpointResponse:
    """Send, and return the response. Only the start of its body is read; redirects are not followed.

    The host name is resolved once, and the connection goes to the checked address. A later DNS answer cannot
    redirect it.

    :raise ForbiddenUrl: if webhooks must not be sent to the URL
    :raise NoEndpointAnswer: if the endpoint did not answer in time
    """
    target = parse(url, allow_private=allow_private)
    began = time.monotonic()
    addresses = resolve(target, allow_private=allow_private)
    if not addresses or time.monotonic() - began > MAX_SECONDS:
        raise NoEndpointAnswer("the host was not found")
    for address in addresses[:MAX_ADDRESSES]:
        connection = _connection(target, address)
        try:
            with _hung_up_in_time(connection, MAX_SECONDS):
                response = _exchange(connection, target, headers, body)
            return EndpointResponse(response.status, _start(connection, response))
        except (NewConnectionError, ConnectTimeoutError):
            continue
        except (HTTPError, HTTPException, OSError) as error:
            raise NoEndpointAnswer(_in_words(error)) from error
        finally:
            connection.close()
    raise NoEndpointAnswer("no connection")


def _connection(target: ParsedUrl, address: str) -> HTTPConnection:
    if not target.tls:
        return HTTPConnection(address, target.port, timeout=TIMEOUT)
    # The certificate is checked for the host name, not for the address.
    return HTTPSConnection(
        address, target.port, timeout=TIMEOUT, ssl_context=tls(), server_hostname=target.host
    )


def _exchange(
    connection: HTTPConnection, target: ParsedUrl, headers: Mapping[str, str], body: bytes
) -> BaseHTTPResponse:
    connection.request(
        "POST",
        target.path,
        body,
        {**headers, "Host": target.authority, "User-Agent": USER_AGENT},
        preload_content=False,
    )
    return connection.getresponse()


def _start(connection: HTTPConnection, response: BaseHTTPResponse) -> str:
    """The start of the body, as far as it arrives at once; "" after an error, as the status is known."""
    start = b""
    with suppress(HTTPError, HTTPException, OSError, ValueError), _hung_up_in_time(connection, BODY_SECONDS):
        start = response.read(MAX_OF_BODY, decode_content=False) or b""
    text = start[:MAX_OF_BODY].decode("utf-8", "replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


@contextmanager
def _hung_up_in_time(connection: HTTPConnection, seconds: float) -> Iterator[None]:
    """Close the connection when the time limit has passed.

    :raise TimeoutError: then, even if a truncated response head looks complete
    """
    late = Event()

    def hang_up() -> None:
        late.set()
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    timer = Timer(seconds, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if late.is_set():
            raise TimeoutError


def _in_words(error: Exception) -> str:
    """A message for a failure. A library's own message could contain an internal address."""
    match error:
        case ssl.SSLCertVerificationError():
            return "the certificate is not valid for the host"
        case ssl.SSLError():
            return "TLS failed"
        case TimeoutError():
            return "no answer in time"
    return "the connection broke off"
