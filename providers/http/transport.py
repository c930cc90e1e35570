"""The wire under every provider call: kept connections, one TLS context, a clock that is never ignored.

The adapter of requests is used without a ``Session``: cookies, redirects, proxies and ``.netrc`` of the
environment are all things that must not happen to these calls, and the pool serves any number of threads.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading
import time
from functools import cache
from typing import Any

import certifi
import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, ReadTimeoutError

# Connect, in seconds.
CONNECT_TIMEOUT = 2.0
# Then read: a try has half of the time left, so that one more as long still fits; when half of it would be
# less than this, in seconds, all of it. A fixed timeout would ask a slow provider three times in vain.
LEAST_READ_TIMEOUT = 4.0

# The answer is read in pieces of this size, and the deadline checked between them.
PIECE = 65_536

# Of one answer, unpacked: more than any page of events, and little enough for a process that reads many at
# once. A megabyte can unpack to a gigabyte.
MOST_BYTES = 64 * 1024 * 1024

# Hosts, and connections kept to each: more than one process reads at once, so that none is opened twice.
POOLS = 16
CONNECTIONS = 256

# What the system says when it lacks something itself, whoever is called.
OUR_OWN = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})

_building = threading.Lock()


class Unanswered(Exception):
    """No whole answer was received. ``unsent``: no connection was opened, so nothing was sent."""

    def __init__(self, *, unsent: bool = False) -> None:
        super().__init__()
        self.unsent = unsent


class OutOfTime(Unanswered):
    """The deadline passed before the answer was there."""


class NoAnswer(Unanswered):
    """The connection failed, or broke off before the answer was whole."""


class NotSent(Exception):
    """This machine has run out of what a connection needs: files, or memory."""


class TooLong(Exception):
    """The answer is longer than any that a provider has reason to give."""


class _AtOnce:
    """A connection that sends head and body of a request together: one system call, and one packet."""

    _held: list[bytes] | None = None

    def request(self, *args: Any, **kwargs: Any) -> None:
        """Send a request whole."""
        self._held = []
        try:
            super().request(*args, **kwargs)  # type: ignore[misc]
            whole = b"".join(self._held)
        finally:
            self._held = None
        self.send(whole)

    def send(self, data: Any) -> None:
        """Send, or hold for later what is a part."""
        if self._held is None:
            super().send(data)  # type: ignore[misc]
        else:
            self._held.append(data)


class _Connection(_AtOnce, HTTPConnection):
    pass


class _TlsConnection(_AtOnce, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class _Adapter(HTTPAdapter):
    """Keeps connections open between calls, and trusts what one TLS context trusts."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        self._to: dict[str, Any] = {}
        super().init_poolmanager(*args, ssl_context=tls(), **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def get_connection_with_tls_context(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """The connections to one host: found once, as what an address means is always the same."""
        base, _ = _split(request.url)
        if base not in self._to:
            self._to[base] = super().get_connection_with_tls_context(request, *args, **kwargs)
        return self._to[base]

    def request_url(self, request: Any, proxies: Any) -> str:
        """The path, which is quoted already; there are no proxies."""
        return _split(request.url)[1]

    def build_response(self, req: Any, resp: Any) -> requests.Response:
        """Status, headers and what is to be read: cookies, encodings and history are nobody's here."""
        response = requests.Response()
        response.status_code = resp.status
        response.headers = resp.headers
        response.raw = resp
        return response

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Leave trust to the context: naming a bundle here would read it anew for every connection."""
        conn.cert_reqs = "CERT_REQUIRED"


def _split(url: str) -> tuple[str, str]:
    """``https://host`` and ``/path?query``."""
    slash = url.find("/", url.index("://") + 3)
    return (url, "/") if slash < 0 else (url[:slash], url[slash:])


@cache
def tls() -> ssl.SSLContext:
    """What the machine trusts (``SSL_CERT_FILE`` included) and certifi's bundle; 30 ms and more to build."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


def _adapter() -> HTTPAdapter:
    """One pool of connections for the process: it outlives the threads that come and go with a fan-out."""
    with _building:  # the threads of a first fan-out must not each build one
        return _built()


def prepare() -> None:
    """Build now what the first call would have to wait for: trust is read from a bundle of certificates."""
    _adapter()


@cache
def _built() -> HTTPAdapter:
    return _Adapter(pool_connections=POOLS, pool_maxsize=CONNECTIONS, max_retries=0)


def exchange(
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes | None,
    *,
    deadline: float,
    grace: float = 0.0,
) -> tuple[requests.Response, bytes]:
    """Send one request and read its whole answer, whatever its status; redirects are not followed.

    ``url`` is sent as it is and must be quoted already. ``grace`` is for how many seconds after the deadline
    an answer is waited for that was asked for before.

    :raise OutOfTime: at the timeout, or at ``deadline`` when that comes first
    :raise NoAnswer: when the connection failed or broke off
    :raise NotSent: when that is our own fault
    :raise TooLong: when there is more than ``MOST_BYTES`` of it
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise OutOfTime
    patience = left / 2 if left / 2 >= LEAST_READ_TIMEOUT else left + grace
    timeout = (min(CONNECT_TIMEOUT, left), patience)
    try:
        with _adapter().send(
            _prepared(method, url, headers, body), stream=True, timeout=timeout, proxies={}
        ) as response:
            return response, _content(response, patience, deadline + grace)
    except (requests.Timeout, ReadTimeoutError) as error:
        raise OutOfTime(unsent=_unconnected(error)) from error
    except (requests.RequestException, HTTPError, OSError) as error:
        if _is_ours(error):
            raise NotSent from error
        raise NoAnswer(unsent=_unconnected(error)) from error


def answers(url: str, *, seconds: float) -> bool:
    """Whether an HTTP answer comes from ``url``, with whatever status, within ``seconds``."""
    headers = {"User-Agent": "almanac", "Connection": "close"}
    try:
        exchange("GET", url, headers, None, deadline=time.monotonic() + seconds)
    except Unanswered:
        return False
    except (NotSent, TooLong):
        # This process lacks files or memory, which says nothing about the network; or there is an answer.
        return True
    return True


def _unconnected(error: BaseException | None) -> bool:
    """Whether no connection was opened: refused, unreachable, no such host, no trusted certificate."""
    # A call made while an earlier failure is handled has that failure at the end of its chain.
    while error is not None and not isinstance(error, Unanswered):
        if isinstance(error, NewConnectionError | ConnectTimeoutError | ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_ours(error: BaseException | None) -> bool:
    """Whether the system has refused a connection, and not the other side: it says so at the root."""
    while error is not None:
        if isinstance(error, socket.gaierror):
            # A resolver that can open no file says only that there is no such name.
            return not _opens()
        if isinstance(error, OSError) and error.errno in OUR_OWN:
            return True
        error = error.__cause__ or error.__context__
    return False


def _opens() -> bool:
    """Whether this process can open a file."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True


def _prepared(method: str, url: str, headers: dict[str, str], body: bytes | None) -> requests.PreparedRequest:
    """As little as a request needs: requests' own preparation of cookies and URL costs more than sending."""
    request = requests.PreparedRequest()
    request.method = method
    request.url = url
    request.prepare_headers(headers)
    request.body = body
    if body is not None:
        request.headers["Content-Length"] = str(len(body))
    return request


def _content(response: requests.Response, patience: float, deadline: float) -> bytes:
    """The body, piece by piece: a server that drips or stops cannot hold us much beyond the deadline."""
    pieces: list[bytes] = []
    room = MOST_BYTES
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        connection = response.raw.connection
        # Neither is there once the body is whole, nor the socket when the server is to close it.
        if connection is not None and connection.sock is not None:
            connection.sock.settimeout(min(left, patience))
        piece = response.raw.read1(PIECE, decode_content=True)
        if not piece:
            return b"".join(pieces)
        room -= len(piece)
        if room < 0:
            raise TooLong
        pieces.append(piece)
