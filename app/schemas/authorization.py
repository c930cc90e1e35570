"""Schemas for connecting accounts by OAuth consent."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, ValidationError, fields

from app.schemas import connections
from app.schemas.connections import MAX_SCOPES
from app.schemas.fields import Body, Several, Text, TrueOrFalse, Word
from providers.names import ProviderName
from providers.scopes import LEVEL_NAMES, Level

ACCESS_TYPES = ("offline", "online")

# https://www.rfc-editor.org/rfc/rfc6749#section-3.3
SCOPE = re.compile(r"[!#-\[\]-~]{1,512}", re.ASCII)
# Matches levels only: providers' own scopes have dots, colons or capitals.
_WORD = re.compile(r"[a-z-]+", re.ASCII)

_OWN_SCOPES = {
    "type": "array",
    "items": {"type": "string", "pattern": f"^{SCOPE.pattern}$"},
    "minItems": 1,
    "maxItems": MAX_SCOPES,
}
_MEANING = (
    "A level of access (`edit` is the old name of `write`), or the provider's own scopes; scopes for the "
    "account's e-mail address are added."
)


def _level(word: str) -> str:
    if word not in LEVEL_NAMES:
        raise ValidationError(
            f"must be one of {', '.join(LEVEL_NAMES)}, or an array of the provider's own scopes"
        )
    return word


def _own_scopes(value: list[Any]) -> tuple[str, ...]:
    if not 1 <= len(value) <= MAX_SCOPES:
        raise ValidationError(f"must have 1 to {MAX_SCOPES} elements")
    for index, scope in enumerate(value):
        if not isinstance(scope, str) or not SCOPE.fullmatch(scope):
            raise ValidationError({index: ["must be a scope: printable ASCII without spaces"]})
    return tuple(value)


class Access(fields.Field[Any]):
    """A level of access as ``str``, or the provider's own scopes as a tuple."""

    def __init__(self, *, description: str = _MEANING, **options: Any) -> None:
        shape = {
            "oneOf": [{"type": "string", "enum": list(LEVEL_NAMES)}, _OWN_SCOPES],
            "description": description,
        }
        super().__init__(metadata=shape, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str | tuple[str, ...]:
        if isinstance(value, str):
            return _level(value)
        if isinstance(value, list):
            return _own_scopes(value)
        raise ValidationError("must be a string or an array")


class AccessInQuery(Several):
    """The same in a query: one lower-case word is a level, anything else an array of scopes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(fields.String(), metadata={"description": _MEANING, "default": ["write"]}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        scopes = super()._deserialize(value, attr, data, **kwargs)
        if not scopes:
            return str(Level.WRITE)
        return _level(scopes[0]) if _WORD.fullmatch("".join(scopes)) else _own_scopes(scopes)


class Address(Text):
    """A URL to redirect a browser to; the allow-list is checked later."""

    def __init__(self, description: str) -> None:
        super().__init__(longest=2048, load_default=None, metadata={"description": description})


REDIRECT = (
    "Where the provider sends code and state instead of to this service; then call verify. The settings "
    "must allow it."
)
RETURN = (
    "Where this service sends the browser in the end, with `provider`, `connected` and perhaps `error` in "
    "the query. The settings must allow it. Without it a page shows the result."
)
EXPECTED_EMAIL = (
    "The account that must be connected. It is compared with the address that the provider has verified, "
    "before anything is stored; another account is refused."
)
REVOKE = "`false` leaves the grant valid at the provider."
ACCESS_TYPE = "`offline`: also while the person is away, by a refresh token."


class Consent(Schema):
    """Options of a consent, and the URLs of its redirects."""

    accessType = Word(
        ACCESS_TYPES,
        load_default="offline",
        metadata={"description": ACCESS_TYPE, "default": "offline"},
    )
    redirectUrl = Address(REDIRECT)
    returnUrl = Address(RETURN)
    expectedEmail = connections.Address(load_default=None, description=EXPECTED_EMAIL)


class LinkQuery(Consent):
    """Options and scopes of a consent, in a query."""

    scope = AccessInQuery(load_default=str(Level.WRITE))


class AuthorizeBody(Body, Consent):
    """Options and scopes of a consent, in a body."""

    scope = Access(load_default=str(Level.WRITE))


class LinkSchema(Schema):
    """A link to a consent page."""

    link = fields.String(
        required=True,
        metadata={"format": "uri", "description": "Open it in a browser within ten minutes; it works once."},
    )


class ProviderLinkSchema(LinkSchema):
    """A link to the consent page of one provider."""

    provider = Word(
        tuple(ProviderName), required=True, metadata={"description": "The provider that the link leads to."}
    )


class Granted(fields.Field[Any]):
    """Scopes as the provider formats them, in one string or as an array. The value is ignored."""

    def __init__(self, **options: Any) -> None:
        many = {"type": "array", "items": {"type": "string"}}
        description = (
            "Accepted and ignored: the granted scopes are those that the provider returns with the tokens."
        )
        shape = {"oneOf": [{"type": ["string", "null"]}, many], "description": description}
        super().__init__(metadata=shape, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> None:
        several = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if not several and not isinstance(value, str):
            raise ValidationError("must be a string or an array of strings")


class VerifyBody(Body):
    """The parameters that the provider sent to the client's ``redirectUrl``."""

    code = Text(
        shortest=1,
        longest=8192,
        required=True,
        metadata={"description": "`code` of the redirect.", "examples": ["4/0AVMBsJh"]},
    )
    state = Text(
        shortest=1,
        longest=512,
        required=True,
        metadata={"description": "`state` of the redirect. It works once.", "examples": ["q2Vw8cJ5"]},
    )
    scope = Granted(load_default=None, allow_none=True)


class RevokeQuery(Schema):
    """Whether deleting a connection revokes its grant."""

    revoke = TrueOrFalse(load_default=True, metadata={"description": REVOKE, "default": True})


class AccessTokenSchema(Schema):
    """A valid access token."""

    accessToken = fields.String(
        required=True,
        metadata={"description": "For the header `Authorization` of requests to the provider."},
    )
