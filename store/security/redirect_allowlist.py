"""The allow-list of URLs that browsers may be redirected to. Entries are compared as URLs, not as text.

https://www.rfc-editor.org/rfc/rfc9700#section-2.1
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

# An entry with this end allows every URL below it.
BELOW = "/*"

# The characters that RFC 3986 allows in a URL. Browsers replace others, each in its own way: a backslash may
# become a slash.
_WRITTEN = re.compile(r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]+", re.ASCII)
_HOST = re.compile(r"[a-z0-9.-]+|[0-9a-f:.]+", re.ASCII)
# Path segments that servers and browsers resolve: "%2e" is a dot, ";" may end a segment.
_DOTS = re.compile(r"(\.|%2e){1,2}(;.*)?", re.ASCII | re.IGNORECASE)
_HIDDEN_SLASH = re.compile(r"%2f|%5c", re.IGNORECASE)

_PORTS = {"http": 80, "https": 443}


class _Address(NamedTuple):
    scheme: str
    host: str
    port: int
    path: str
    query: str


def allowed(url: str, entries: Iterable[str]) -> bool:
    """Whether ``url`` is one of ``entries``, or lies below one that ends in ``/*``."""
    address = _parse(url)
    return address is not None and any(_covers(entry, address) for entry in entries)


def is_entry(text: str) -> bool:
    """Whether this is a valid entry of the list."""
    whole = text.removesuffix("*") if text.endswith(BELOW) else text
    address = _parse(whole)
    return address is not None and "*" not in whole and not (text.endswith(BELOW) and address.query)


def _covers(entry: str, address: _Address) -> bool:
    if not entry.endswith(BELOW):
        return _parse(entry) == address
    above = _parse(entry.removesuffix("*"))
    return above is not None and above[:3] == address[:3] and address.path.startswith(above.path)


def _parse(url: str) -> _Address | None:
    """The parts that are compared; None if no browser may be redirected there."""
    if not _WRITTEN.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or "@" in parts.netloc or not _HOST.fullmatch(host):
        return None
    if parts.scheme == "http" and not is_this_machine(host):
        return None
    path = parts.path or "/"
    if _HIDDEN_SLASH.search(path) or any(_DOTS.fullmatch(each) for each in path.split("/")):
        return None
    return _Address(parts.scheme, host, _PORTS[parts.scheme] if port is None else port, path, parts.query)


def is_this_machine(host: str) -> bool:
    """Whether a host is loopback: https://www.rfc-editor.org/rfc/rfc8252#section-7.3"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
