"""The base URL of this service, for links that lead back to it."""

from __future__ import annotations

from urllib.parse import urlsplit

from flask import request

from app.services import services
from store.security import redirect_allowlist


def base_url() -> str | None:
    """``ALMANAC_PUBLIC_URL``, else the base URL of this request if its host is this machine; otherwise None.

    Other hosts are not trusted: a client could send any ``Host`` and have people redirected there.
    """
    public_url = services().settings.public_url
    if public_url:
        return public_url
    parts = urlsplit(request.url_root)
    on_this_machine = redirect_allowlist.is_this_machine(parts.hostname or "")
    return f"{parts.scheme}://{parts.netloc}" if on_this_machine else None
