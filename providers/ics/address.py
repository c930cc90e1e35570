"""The address of a feed."""

from __future__ import annotations

import hashlib
from urllib.parse import urldefrag

from providers.http import ssrf_guard

# Applications offer feeds under these names, which mean HTTPS.
_NAMES = ("webcal://", "webcals://")


def of_feed(entered: str, *, allow_private: bool) -> str:
    """The HTTPS address that a person has entered, or that a redirect names.

    ``allow_private``: it may be one of HTTP too.

    :raise ForbiddenUrl: when it is not an address that is called
    """
    url = urldefrag(entered.strip()).url
    for name in _NAMES:
        if url.lower().startswith(name):
            url = f"https://{url[len(name) :]}"
    ssrf_guard.parse(url, allow_private=allow_private)
    return url


def hashed(url: str) -> str:
    """A name of a feed that does not reveal its address, which is often a secret."""
    return hashlib.sha256(url.encode()).hexdigest()[:32]
