"""What connecting an account by consent takes and answers."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, ValidationError, fields

from app.schemas import records
from app.schemas.bodies import Body
from app.schemas.fields import Several, Text, TrueOrFalse, Word
from app.schemas.records import MOST_SCOPES
from providers.names import ProviderName
from providers.scopes import LEVEL_NAMES, Level

ACCESS_TYPES = ("offline", "online")

# https://www.rfc-editor.org/rfc/rfc6749#section-3.3
SCOPE = re.compile(r"[!#-\[\]-~]{1,512}", re.ASCII)
# What can only be meant as a level: providers' own scopes have dots, colons or capitals.
_WORD = re.compile(r"[a-z-]+", re.ASCII)

_OWN_SCOPES = {
    "type": "array",
    "items": {"type": "string", "pattern": f"^{SCOPE.pattern}$"},
    "minItems": 1,
    "maxItems": MOST_SCOPES,
}
_MEANING = (
    "A level of access (`edit` is the old name of `write`), or the provider's own scopes; those that tell "
    "the account's address are added."
)


def _level(word: str) -> str:
    if word not in LEVEL_NAMES:
        raise ValidationError(
            f"must be one of {', '.join(LEVEL_NAMES)}, or an array of the provider's own scopes"
        )
    return word


def _own_scopes(value: list[Any]) -> tuple[str, ...]:
    if not 1 <= len(value) <= MOST_SCOPES:
        raise ValidationError(f"must have 1 to {MOST_SCOPES} elements")
    for index, scope in enumerate(value):
        if not isinstance(scope, str) or not SCOPE.fullmatch(scope):
            raise ValidationError({index: ["must be a scope: printable ASCII without spaces"]})
    return tuple(value)


class Access(fields.Field[Any]):
    """A level of access as ``str``, or the provider's own scopes as a tuple."""

    def __init__(self, **options: Any) -> None:
        shape = {
            "oneOf": [{"type": "string", "enum": list(LEVEL_NAMES)}, _OWN_SCOPES],
            "description": _MEANING,
        }
        super().__init__(metadata=shape, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str | tuple[str, ...]:
        if isinstance(value, str):
            return _level(value)
        if isinstance(value, list):
            return _own_scopes(value)
        raise ValidationError("must be a string or an array")


class AccessInQuery(Several):
    """The same in a query, where one word is a level and anything else an array."""

    def __init__(self, **options: Any) -> None:
        super().__init__(fields.String(), metadata={"description": _MEANING, "default": ["write"]}, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        scopes = super()._deserialize(value, attr, data, **kwargs)
        if not scopes:
            return str(Level.WRITE)
        return _level(scopes[0]) if _WORD.fullmatch("".join(scopes)) else _own_scopes(scopes)


class Address(Text):
    """Where a browser is sent to; whether it may be is asked later."""

    def __init__(self, description: str) -> None:
        super().__init__(longest=2048, load_default=None, metadata={"description": description})


REDIRECT = (
    "Where the provider sends code and state instead of to this service; then call verify. The settings "
    "must allow it."
)
RETURN = (
    "Where this service sends the browser in the end, with `provider`, `connected` and perhaps `error` in "
    "the query. The settings must allow it. Without it a page tells the outcome."
)
EXPECTED_EMAIL = (
    "The account that must be connected. It is compared with the address that the provider vouches for, "
    "before anything is stored; another account is refused."
)
REVOKE = "`false` leaves the grant valid at the provider."
ACCESS_TYPE = "`offline`: also while the person is away, by a refresh token."


class Consent(Schema):
    """How a person is to be asked, and where the browser goes then."""

    accessType = Word(
        ACCESS_TYPES,
        load_default="offline",
        metadata={"description": ACCESS_TYPE, "default": "offline"},
    )
    redirectUrl = Address(REDIRECT)
    returnUrl = Address(RETURN)
    expectedEmail = records.Address(load_default=None, description=EXPECTED_EMAIL)


class LinkQuery(Consent):
    """What a person is to be asked for, in a query."""

    scope = AccessInQuery(load_default=str(Level.WRITE))


class AuthorizeBody(Body, Consent):
    """What a person is to be asked for, in a body."""

    scope = Access(load_default=str(Level.WRITE))


class LinkSchema(Schema):
    """Where a person goes to consent."""

    link = fields.String(
        required=True,
        metadata={"format": "uri", "description": "Open it in a browser within ten minutes; it works once."},
    )


class ProviderLinkSchema(LinkSchema):
    """Where a person goes to consent, at one of the providers."""

    provider = Word(tuple(ProviderName), required=True)


class Granted(fields.Field[Any]):
    """Scopes as a provider wrote them, in one string or as an array."""

    def __init__(self, **options: Any) -> None:
        many = {"type": "array", "items": {"type": "string"}}
        description = "Taken and not needed: what was granted is what the provider says when it gives tokens."
        shape = {"oneOf": [{"type": ["string", "null"]}, many], "description": description}
        super().__init__(metadata=shape, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> None:
        several = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if not several and not isinstance(value, str):
            raise ValidationError("must be a string or an array of strings")


class VerifyBody(Body):
    """What the provider sent to the caller's own address."""

    code = Text(shortest=1, longest=8192, required=True)
    state = Text(shortest=1, longest=512, required=True)
    scope = Granted(load_default=None, allow_none=True)


class RevokeQuery(Schema):
    """Whether deleting a connection revokes its grant."""

    revoke = TrueOrFalse(load_default=True, metadata={"description": REVOKE, "default": True})


class AccessTokenSchema(Schema):
    """An access token in force."""

    accessToken = fields.String(required=True)
