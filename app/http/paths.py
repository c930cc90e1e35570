"""Paths of requests: how they are decoded, and the identifiers in them.

Any text may be in a segment: a percent-encoded slash is part of its segment. WSGI servers decode the path
before the application receives it, so this module rebuilds it from the request line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, unquote_to_bytes

from flask import Flask, request
from werkzeug.routing import Rule, UnicodeConverter, ValidationError

from app.http.errors import Invalid, NotFound
from app.schemas.error_codes import Code
from app.schemas.fields import (
    CONNECTION_ID,
    CONTROL,
    DELIVERY_ID,
    HOLD_ID,
    KEY_ID,
    SLUG,
    USER_ID,
    WEBHOOK_ID,
    identifier_shape,
)
from providers import registry

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


# Almanac's adapter sets REQUEST_URI, other servers RAW_URI.
RAW = ("REQUEST_URI", "RAW_URI")

# `http://host/path`, as proxies may send it. `//host` has no origin: it is a path with an empty segment.
ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")
# Most paths: without characters that need decoding, and without a doubled slash at the start.
PLAIN = re.compile(r"/[A-Za-z0-9._~-][A-Za-z0-9._~/-]*")
NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
ESCAPE = re.compile(rb"%(?!2[5Ff])([0-9A-Fa-f]{2})")
LONE_BYTE = re.compile("[\udc80-\udcff]")


def install(app: Flask) -> None:
    """Give routing the path as the client encoded it, and register the converters of its identifiers."""
    application = app.wsgi_app

    def with_raw_path(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ["PATH_INFO"] = path_info(environ)
        return application(environ, start_response)

    app.wsgi_app = with_raw_path  # type: ignore[method-assign]
    app.url_map.converters |= CONVERTERS | PAGE_CONVERTERS
    app.url_map.converters |= dict.fromkeys(("calendar_id", "event_id", "meta_id"), ForeignId)


def path_info(environ: WSGIEnvironment) -> str:
    """The path of a request, decoded except for ``%2F``, ``%25`` and bytes that are not UTF-8.

    Routing splits the path at slashes first; ``text`` decodes the rest of a segment afterwards.
    """
    served: str = environ.get("PATH_INFO", "")
    if PLAIN.fullmatch(served) and environ.get("REQUEST_URI", "").partition("?")[0] == served:
        return served
    for path in _sent(environ):
        if _plain(path) == served.encode("latin1").decode(errors="replace"):
            return _kept(path)
    # A middleware or the server changed the path. It is fully decoded: its slashes separate segments.
    return served.replace("%", "%25")


def text(segment: str) -> str:
    """The decoded text of a segment; bytes that are not UTF-8 become surrogates."""
    return unquote(segment, errors="surrogateescape")


def _sent(environ: WSGIEnvironment) -> Iterator[str]:
    """The path of the request line, and the same without the prefix that the application is mounted at."""
    mounted = environ.get("SCRIPT_NAME", "")
    for name in RAW:
        raw = environ.get(name)
        if raw is None:
            continue
        path = re.split("[?#]", ORIGIN.sub("", raw, count=1), maxsplit=1)[0]
        yield path or "/"
        if mounted and path.startswith(mounted):
            yield path[len(mounted) :]


def _plain(path: str) -> str:
    """A fully decoded path, as servers pass it."""
    return unquote_to_bytes(path.encode("latin1")).decode(errors="replace")


def _kept(path: str) -> str:
    # A % that starts no escape is replaced by %FF, a byte that never occurs in UTF-8.
    escaped = NO_ESCAPE.sub(b"%FF", path.encode("latin1"))
    undone = ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), escaped)
    readable = undone.decode(errors="surrogateescape")
    kept = LONE_BYTE.sub(lambda found: f"%{ord(found[0]) - 0xDC00:02X}", readable)
    return _with_slashes_at_the_front_kept(kept).encode().decode("latin1")


def _with_slashes_at_the_front_kept(path: str) -> str:
    # werkzeug drops all but one of them and would match a path that the client did not request.
    rest = path.lstrip("/")
    return path if path == rest else "/" + "%2F" * (len(path) - len(rest) - 1) + rest


class ForeignId(UnicodeConverter):
    """An identifier chosen by a provider or a client: any text, percent-encoded as a path segment."""

    def to_python(self, value: str) -> str:
        """The text; bytes that are not UTF-8 become surrogates, which ``_check`` answers with 404."""
        return text(value)

    def to_url(self, value: str) -> str:
        """The segment."""
        return quote(value, safe="")


# Graph documents no length limit for its identifiers; this one bounds requests and log lines.
MAX_FOREIGN_ID = 2048
NO_TEXT = re.compile("[\ud800-\udfff]")

# The shape of each identifier, and the error for one that does not exist, as none of another shape does.
IDENTIFIERS = {
    "userId": (USER_ID, "User not found", Code.USER_NOT_FOUND),
    "orgSlug": (SLUG, "Organization not found", Code.ORGANIZATION_NOT_FOUND),
    "webhookId": (WEBHOOK_ID, "Webhook not found", Code.WEBHOOK_NOT_FOUND),
    "deliveryId": (DELIVERY_ID, "Delivery not found", Code.DELIVERY_NOT_FOUND),
    "connectionId": (CONNECTION_ID, "OAuth connection not found", Code.CONNECTION_NOT_FOUND),
    "holdId": (HOLD_ID, "Hold not found", Code.HOLD_NOT_FOUND),
    "keyId": (KEY_ID, "API key not found", Code.KEY_NOT_FOUND),
}
FOREIGN_IDS = {
    "calendarId": ("Calendar not found", Code.CALENDAR_NOT_FOUND),
    "eventId": ("Event not found", Code.EVENT_NOT_FOUND),
    "metaId": ("Event not found", Code.EVENT_NOT_FOUND),
}

# The providers that a path may name, by the converter of its parameter ``provider``: all, or those whose
# definition has a part.
PROVIDERS = {
    "provider": registry.names,
    "consent_provider": registry.with_consent,
    "grant_provider": registry.with_grant,
    "form_provider": registry.with_form,
}

# The shapes of the converters in the OpenAPI document. Routing matches any text, so that a malformed
# identifier gets the error of one that does not exist.
_SHAPES: dict[str, dict[str, Any]] = {
    "user_id": identifier_shape(USER_ID),
    "org_slug": identifier_shape(SLUG),
    "webhook_id": identifier_shape(WEBHOOK_ID),
    "connection_id": identifier_shape(CONNECTION_ID),
    "hold_id": identifier_shape(HOLD_ID),
    "key_id": identifier_shape(KEY_ID),
    "delivery_id": identifier_shape(DELIVERY_ID),
    **{converter: {"enum": list(names())} for converter, names in PROVIDERS.items()},
}
CONVERTERS = {name: type(name, (UnicodeConverter,), {}) for name in _SHAPES}


class KnownProvider(UnicodeConverter):
    """The name of a provider in the path of a page; the page of another one does not exist."""

    known = staticmethod(registry.names)

    def to_python(self, value: str) -> str:
        """The name."""
        if value not in self.known():
            raise ValidationError
        return value


PAGE_CONVERTERS = {
    f"known_{name}": type(name, (KnownProvider,), {"known": staticmethod(known)})
    for name, known in PROVIDERS.items()
}
SHAPES = {CONVERTERS[name]: {"type": "string", **shape} for name, shape in _SHAPES.items()}
SHAPES[ForeignId] = {"type": "string", "minLength": 1, "maxLength": MAX_FOREIGN_ID}


def check_identifiers(app: Flask) -> None:
    """Validate the identifiers of a path before each view."""
    app.before_request(_check)


def _check() -> None:
    rule = request.url_rule
    for name, value in (request.view_args or {}).items():
        if name == "provider" and rule is not None and value not in (known := providers_of(rule)):
            raise Invalid(f"provider must be one of {', '.join(known)}", param=name)
        if name in IDENTIFIERS:
            pattern, sentence, code = IDENTIFIERS[name]
            if not pattern.fullmatch(value):
                raise NotFound(sentence, code)
        if name in FOREIGN_IDS and _cannot_exist(value):
            raise NotFound(*FOREIGN_IDS[name])


def providers_of(rule: Rule) -> tuple[str, ...]:
    """The providers that the path of a route may name."""
    of_rule = (
        names()
        for each, names in PROVIDERS.items()
        if f"<{each}:" in rule.rule or f"<known_{each}:" in rule.rule
    )
    return next(of_rule, registry.names())


def _cannot_exist(foreign_id: str) -> bool:
    """Whether an identifier is invalid at every provider."""
    # In a provider's URL, the last two change the path, even percent-encoded.
    is_text = not (NO_TEXT.search(foreign_id) or CONTROL.search(foreign_id))
    return not is_text or len(foreign_id) > MAX_FOREIGN_ID or foreign_id in (".", "..")
