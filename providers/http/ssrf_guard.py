"""Checks that a URL which a client has entered leads to a public address (protection against SSRF)."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

# Printable ASCII without the backslash, which some parsers read as a slash.
_WRITTEN = re.compile(r"[!-\[\]-~]+", re.ASCII)
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+", re.ASCII)
_PORTS = {"http": 80, "https": 443}

# All routed IPv6 addresses. Forms of IPv4 addresses lie outside, such as NAT64 (64:ff9b::/96 and
# 64:ff9b:1::/48), except for 6to4 and Teredo.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")

# Networks without hosts on the internet, some of which ``ipaddress`` takes for global in some versions of
# Python: protocol assignments and 6to4 relays of IPv4; of IPv6 the protocol assignments with Teredo
# (RFC 2928, RFC 4380), 6to4 (RFC 3056), the former 6bone, and documentation (RFC 3849, RFC 9637).
# https://www.iana.org/assignments/iana-ipv6-special-registry/iana-ipv6-special-registry.xhtml
_NO_HOSTS = tuple(
    ipaddress.ip_network(each)
    for each in (
        "192.0.0.0/24",
        "192.88.99.0/24",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3ffe::/16",
        "3fff::/20",
    )
)


class ForbiddenUrl(Exception):
    """The URL is not allowed; the message completes "url ..."."""


@dataclass(frozen=True, slots=True)
class ParsedUrl:
    """A URL, parsed once, so that the check and the connection agree. ``path`` includes the query."""

    tls: bool
    host: str
    port: int
    authority: str
    path: str


def parse(url: str, *, allow_private: bool) -> ParsedUrl:
    """The parts of a URL.

    :raise ForbiddenUrl: if such a URL must not be called, whatever its address
    """
    try:
        parts = urlsplit(url) if _WRITTEN.fullmatch(url) else None
        host, port = (parts.hostname or "", parts.port) if parts else ("", None)
    except ValueError:
        parts, host, port = None, "", None
    if parts is None or parts.scheme not in _PORTS or not _HOST.fullmatch(host) or port == 0:
        raise ForbiddenUrl("must be an https URL")
    if parts.username is not None or parts.password is not None:
        raise ForbiddenUrl("must not hold a user or a password")
    if parts.fragment:
        raise ForbiddenUrl("must not have a fragment")
    if parts.scheme != "https" and not allow_private:
        raise ForbiddenUrl("must be an https URL")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return ParsedUrl(parts.scheme == "https", host, port or _PORTS[parts.scheme], parts.netloc, path)


def resolve(target: ParsedUrl, *, allow_private: bool) -> list[str]:
    """The current addresses of a host name; an empty list if it has none.

    :raise ForbiddenUrl: if one of them is not public and private ones are not allowed
    """
    try:
        return look_up(target, allow_private=allow_private)
    except (OSError, UnicodeError):
        return []


def look_up(target: ParsedUrl, *, allow_private: bool) -> list[str]:
    """As :func:`resolve`.

    :raise OSError, UnicodeError: when the resolver returns no address
    """
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not allow_private and not all(is_public(address) for address in addresses):
        raise ForbiddenUrl("must not lead to a private or loopback address")
    return addresses


def is_public(text: str) -> bool:
    """Whether an address is public."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    if any(address in network for network in _NO_HOSTS):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
