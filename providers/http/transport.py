"""HTTP transport of every provider call: connection pool, one TLS context, enforced deadlines.

Uses the adapter of requests without a ``Session``: cookies, redirects, proxies and ``.netrc`` must not
apply to these calls. The pool is thread-safe.
"""

from __future__ import annotations

import errno
import io
import os
import socket
import ssl
import threading
import time
from contextvars import ContextVar
from functools import cache
from http.client import HTTPResponse
from typing import Any, NamedTuple

import certifi
import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
)

from providers.http import ssrf_guard
from providers.http.calls import MAX_BYTES, Reach
from providers.http.ssrf_guard import ForbiddenUrl, ParsedUrl

# To connect to one address, in seconds.
CONNECT_TIMEOUT = 2.0
# How many addresses are tried of a host name that a person has entered.
MAX_ADDRESSES = 4
# Then to read. An attempt gets half of the time left, so that a second one fits; when half is less than
# this, in seconds, it gets all. A fixed timeout would call a slow provider three times in vain.
MIN_READ_TIMEOUT = 4.0

# Bytes to read between two checks of the deadline.
PIECE = 65_536


# Hosts, and connections kept open to each: more than one process uses at once, so that none is reopened.
POOLS = 16
CONNECTIONS = 256

# Errors of this machine's own resources, independent of the host that is called.
OUR_OWN = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})

_building = threading.Lock()


class Unanswered(Exception):
    """No complete answer was received. ``unsent``: no connection was opened, so nothing was sent."""

    def __init__(self, *, unsent: bool = False) -> None:
        super().__init__()
        self.unsent = unsent


class OutOfTime(Unanswered):
    """The deadline passed before the answer was complete."""


class ConnectionFailed(Unanswered):
    """The connection failed, or broke before the answer was complete."""


class NoSuchHost(ConnectionFailed):
    """The resolver knows no host of this name."""


class NotSent(Exception):
    """This machine has no files or memory left for a connection."""


class TooLong(Exception):
    """The answer exceeds the limit of the call."""


class Private(Exception):
    """The address is not public, and the call may reach public addresses only; nothing was sent."""


class _Limits(NamedTuple):
    """Until when the call of this thread may connect, and read its answer, and what it may reach."""

    connect_until: float
    read_until: float
    allow_private: bool


_limits: ContextVar[_Limits] = ContextVar("limits")


class _UntilDeadline(io.RawIOBase):
    """Reads a socket until the call's time has passed. The timeout of a socket applies to each read alone."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._sock = sock
        self._until = _limits.get().read_until

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Read what has arrived, or wait for it.

        :raise TimeoutError: after the timeout of the socket, or when the call's time has passed
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._sock.settimeout(min(left, self._sock.gettimeout() or left))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Release the socket too."""
        self._raw.close()
        super().close()


class _TimedResponse(HTTPResponse):
    """An answer whose head, and the frame of whose body, must arrive in time too."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_UntilDeadline(self.fp.detach(), sock))


class _Entered:
    """A connection to a host that a person has entered, which may be slow on purpose.

    The address that was checked is the one that is called.
    """

    response_class: Any = _TimedResponse
    host: str
    port: int
    timeout: Any
    _dns_host: str

    def _new_conn(self) -> socket.socket:
        name, timeout = self._dns_host, self.timeout
        failure: HTTPError = NameResolutionError(name, self, socket.gaierror("no address"))  # type: ignore[arg-type]
        try:
            for address in self._addresses(name)[:MAX_ADDRESSES]:
                left = _limits.get().connect_until - time.monotonic()
                if left <= 0:
                    raise ConnectTimeoutError(self, "no time is left")
                self._dns_host, self.timeout = address, min(timeout, left)
                try:
                    return super()._new_conn()  # type: ignore[misc, no-any-return]
                except (NewConnectionError, ConnectTimeoutError) as error:
                    failure = error
        finally:
            # The certificate is checked for the name, not for the address.
            self._dns_host, self.timeout = name, timeout
        raise failure

    def _addresses(self, name: str) -> list[str]:
        try:
            target = ParsedUrl(True, name, self.port, name, "/")
            return ssrf_guard.look_up(target, allow_private=_limits.get().allow_private)
        except ForbiddenUrl:
            raise Private from None
        except OSError as error:
            raise NameResolutionError(name, self, error) from error  # type: ignore[arg-type]
        except UnicodeError:
            unknown = socket.gaierror(socket.EAI_NONAME, "no host can have this name")
            raise NameResolutionError(name, self, unknown) from unknown  # type: ignore[arg-type]


class _EnteredConnection(_Entered, HTTPConnection):
    pass


class _EnteredTlsConnection(_Entered, HTTPSConnection):
    pass


class _EnteredPool(HTTPConnectionPool):
    ConnectionCls = _EnteredConnection


class _EnteredTlsPool(HTTPSConnectionPool):
    ConnectionCls = _EnteredTlsConnection


class _Adapter(HTTPAdapter):
    """Keeps connections open between calls, and verifies certificates with one TLS context."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        self._to: dict[str, Any] = {}
        super().init_poolmanager(*args, ssl_context=tls(), **kwargs)

    def get_connection_with_tls_context(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """The connection pool of one host, cached by address."""
        base, _ = _split(request.url)
        if base not in self._to:
            self._to[base] = super().get_connection_with_tls_context(request, *args, **kwargs)
        return self._to[base]

    def request_url(self, request: Any, proxies: Any) -> str:
        """The path, which is already quoted; there are no proxies."""
        return _split(request.url)[1]

    def build_response(self, req: Any, resp: Any) -> requests.Response:
        """Status, headers and the readable body; no cookies, encodings or history."""
        response = requests.Response()
        response.status_code = resp.status
        response.headers = resp.headers
        response.raw = resp
        return response

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """Do nothing: the context verifies. A bundle set here would be loaded for every connection."""
        conn.cert_reqs = "CERT_REQUIRED"


class _ManyHostsAdapter(_Adapter):
    """The same for addresses that people enter: any number of hosts, of which the latest keep connections."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _EnteredPool, "https": _EnteredTlsPool}

    def get_connection_with_tls_context(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """The connection pool of one host. It is not kept here: the pool manager closes the oldest."""
        return HTTPAdapter.get_connection_with_tls_context(self, request, *args, **kwargs)


def _split(url: str) -> tuple[str, str]:
    """``https://host`` and ``/path?query``."""
    slash = url.find("/", url.index("://") + 3)
    return (url, "/") if slash < 0 else (url[:slash], url[slash:])


@cache
def tls() -> ssl.SSLContext:
    """Trusts the system's certificates (``SSL_CERT_FILE`` included) and certifi's; takes 30 ms or more."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    return context


# Hosts that people enter, and connections to each.
_MANY_POOLS = 256
_FEW_CONNECTIONS = 8


def _adapter(reach: Reach = Reach.PROVIDER) -> HTTPAdapter:
    """One connection pool per process; it outlives the threads of a fan-out."""
    with _building:  # only one thread of the first fan-out builds it
        return _built(reach)


def prepare() -> None:
    """Build the connection pool now: loading certificates would delay the first call."""
    _adapter()


# Each reach has connections of its own: one that was opened to a private address serves no other call.
@cache
def _built(reach: Reach) -> HTTPAdapter:
    if reach is Reach.PROVIDER:
        return _Adapter(pool_connections=POOLS, pool_maxsize=CONNECTIONS, max_retries=0)
    return _ManyHostsAdapter(pool_connections=_MANY_POOLS, pool_maxsize=_FEW_CONNECTIONS, max_retries=0)


def exchange(
    method: str,
    url: str,
    headers: dict[str, str],
    body: bytes | None,
    *,
    deadline: float,
    grace: float = 0.0,
    max_bytes: int = MAX_BYTES,
    reach: Reach = Reach.PROVIDER,
) -> tuple[requests.Response, bytes]:
    """Send one request and read its whole answer, whatever its status; redirects are not followed.

    ``url`` must already be quoted. ``grace``: seconds to wait after the deadline for the answer to a request
    that was sent before it.

    :raise OutOfTime: at the timeout, or at ``deadline`` if that is earlier
    :raise NoAnswer: when the connection failed or broke
    :raise UnknownHost: when there is no host of this name
    :raise NotSent: when this machine has no resources for a connection
    :raise TooLong: when the answer exceeds ``max_bytes``
    :raise Private: when ``reach`` does not allow the address
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise OutOfTime
    patience = left / 2 if left / 2 >= MIN_READ_TIMEOUT else left + grace
    timeout = (min(CONNECT_TIMEOUT, left), patience)
    _limits.set(_Limits(deadline, deadline + grace, reach is not Reach.PUBLIC))
    try:
        with _adapter(reach).send(
            _prepared(method, url, headers, body), stream=True, timeout=timeout, proxies={}
        ) as response:
            return response, _content(response, patience, deadline + grace, max_bytes)
    except (requests.Timeout, ReadTimeoutError) as error:
        raise OutOfTime(unsent=_unconnected(error)) from error
    except (requests.RequestException, HTTPError, OSError) as error:
        if _is_ours(error):
            raise NotSent from error
        if _is_unknown_host(error):
            raise NoSuchHost(unsent=True) from error
        raise ConnectionFailed(unsent=_unconnected(error)) from error


def answers(url: str, *, seconds: float) -> bool:
    """Whether ``url`` answers HTTP, with any status, within ``seconds``."""
    headers = {"User-Agent": "almanac", "Connection": "close"}
    try:
        exchange("GET", url, headers, None, deadline=time.monotonic() + seconds)
    except Unanswered:
        return False
    except (NotSent, TooLong):
        # An answer that is too long, or no files or memory in this process: the network is not at fault.
        return True
    return True


def _unconnected(error: BaseException | None) -> bool:
    """Whether no connection was opened: refused, unreachable, unknown host, untrusted certificate."""
    # A call made while an earlier failure is handled has that failure at the end of its chain.
    while error is not None and not isinstance(error, Unanswered):
        if isinstance(error, NewConnectionError | ConnectTimeoutError | ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_unknown_host(error: BaseException | None) -> bool:
    """Whether the resolver knows no address of the name. If it gave no answer, the name may exist."""
    while error is not None and not isinstance(error, Unanswered):
        if isinstance(error, socket.gaierror):
            return error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
        error = error.__cause__ or error.__context__
    return False


def _is_ours(error: BaseException | None) -> bool:
    """Whether this machine refused the connection; the root of the chain has its error number."""
    while error is not None:
        if isinstance(error, socket.gaierror):
            # A resolver that cannot open a file reports only that the name is unknown.
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
    """A minimal request: the preparation in requests (cookies, URL) costs more than sending."""
    request = requests.PreparedRequest()
    request.method = method
    request.url = url
    request.prepare_headers(headers)
    request.body = body
    if body is not None:
        request.headers["Content-Length"] = str(len(body))
    return request


def _content(response: requests.Response, patience: float, deadline: float, room: int) -> bytes:
    """The body, read in pieces, so that a slow or stalled server cannot exceed the deadline by much."""
    pieces: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        connection = response.raw.connection
        # The connection is gone once the body is complete; the socket is gone when the server closes it.
        if connection is not None and connection.sock is not None:
            connection.sock.settimeout(min(left, patience))
        piece = response.raw.read1(PIECE, decode_content=True)
        if not piece:
            return b"".join(pieces)
        room -= len(piece)
        if room < 0:
            raise TooLong
        pieces.append(piece)
