"""The hosts of a request, as far as they are trusted: the host that it names, and the host that sent it."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import request

from app.services import services
from store.security import redirect_allowlist

# Proxies add one of these to the requests that they forward.
_PROXY_HEADERS = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")


def base_url() -> str | None:
    """The base URL of this service, for links that lead back to it; None if it is not known.

    ``ALMANAC_PUBLIC_URL``, else the base URL of this request if its host is this machine. Other hosts are not
    trusted: a client could send any ``Host`` and have people redirected there.
    """
    public_url = services().settings.public_url
    if public_url:
        return public_url
    parts = urlsplit(request.url_root)
    on_this_machine = redirect_allowlist.is_this_machine(parts.hostname or "")
    return f"{parts.scheme}://{parts.netloc}" if on_this_machine else None


def browser_url() -> str:
    """The base URL that is shown to the person of this request: any ``Host`` is theirs.

    Behind a proxy, the address of the request may differ from ``ALMANAC_PUBLIC_URL``.
    """
    return services().settings.public_url or request.url_root.rstrip("/")


def forwarded() -> bool:
    """Whether this request carries a header that proxies add."""
    return any(name in request.headers for name in _PROXY_HEADERS)


def from_this_machine() -> bool:
    """Whether a process on this machine sent this request directly.

    A proxy on this machine also connects over loopback, but it may forward requests from anywhere.
    """
    return redirect_allowlist.is_this_machine(request.remote_addr or "") and not forwarded()
