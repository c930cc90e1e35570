"""Security headers: no MIME sniffing of any response, and no framing of pages."""

from __future__ import annotations

import base64
import hashlib
import re

from flask import Flask, Response

# Scripts and styles come from our own files. Nothing is loaded from, sent to or framed by other sites.
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
PAGE_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {sources}" for name, sources in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # URLs of pages contain identifiers of people.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

# The source of an inline script.
_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def install(app: Flask) -> None:
    """Set the headers that every response has; pages add their own."""
    app.after_request(_protect)


def _protect(response: Response) -> Response:
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    if response.mimetype == "text/html":
        response.headers.setdefault("X-Frame-Options", "DENY")
    return response


def policy_of(page: bytes) -> str:
    """The content security policy of a built page: that of all pages, its inline scripts, and inline styles.

    Its scripts add styles of their own, for instance to the search.
    """
    own = {"script-src": f"'self' {_inline_scripts(page)}".rstrip(), "style-src": "'self' 'unsafe-inline'"}
    policy = _POLICY | own
    return "; ".join(f"{name} {sources}" for name, sources in policy.items())


def own_scripts_only(response: Response) -> Response:
    """Restrict a page to scripts from our own files and the inline scripts that it was served with."""
    scripts = _inline_scripts(response.get_data())
    response.headers["Content-Security-Policy"] = (
        f"default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; form-action 'none'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
    response.headers["Referrer-Policy"] = "same-origin"
    return response


def _inline_scripts(page: bytes) -> str:
    hashes = (hashlib.sha256(each).digest() for each in _INLINE.findall(page))
    return " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes)
