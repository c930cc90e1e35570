"""Identifiers in a path: their shape in the document, and the answer to a bad one."""

from __future__ import annotations

from typing import Any

from flask import Flask, request
from werkzeug.routing import UnicodeConverter

from app.errors import Invalid
from app.fields import SLUG, USER_ID, identifier_shape
from providers.base import ProviderName


class UserId(UnicodeConverter):
    """A user's identifier. Any text gets here: a bad one is answered 400, not 404."""


class OrgSlug(UnicodeConverter):
    """An organization's slug."""


class Provider(UnicodeConverter):
    """A provider's name."""


SHAPES: dict[type[UnicodeConverter], dict[str, Any]] = {
    UserId: {"type": "string", **identifier_shape(USER_ID)},
    OrgSlug: {"type": "string", **identifier_shape(SLUG)},
    Provider: {"type": "string", "enum": [str(name) for name in ProviderName]},
}


def install(app: Flask) -> None:
    """The converters, and the check before each view."""
    app.url_map.converters |= {"user_id": UserId, "org_slug": OrgSlug, "provider": Provider}
    app.before_request(_check)


def _check() -> None:
    for name, value in (request.view_args or {}).items():
        pattern = {"userId": USER_ID, "orgSlug": SLUG}.get(name)
        if pattern is not None and not pattern.fullmatch(value):
            raise Invalid(f"{name} must match ^{pattern.pattern}$")
        if name == "provider" and value not in set(ProviderName):
            raise Invalid(f"provider must be one of {', '.join(ProviderName)}")
