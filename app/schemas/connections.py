"""Schemas of connections, and of connecting accounts by OAuth consent."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from app.schemas.fields import (
    SLUG,
    Body,
    Identifier,
    Instant,
    JsonBoolean,
    Several,
    Text,
    Timestamp,
    TrueOrFalse,
    Word,
    about,
    given,
)
from app.schemas.parameters import MAX_CONNECTION_ID, PageQuery
from providers import registry
from providers.errors import Reason
from providers.scopes import LEVEL_NAMES, Level
from scheduling.json_render import timestamp
from store.cache.last_reads import LastRead
from store.sql.models import OAuthConnection
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.connections import ReplacedConnection
from store.sql.queries.users import ListedConnection

# Printable ASCII without spaces, as an HTTP header allows; providers use more than RFC 6750 allows.
TOKEN = re.compile(r"[!-~]+")
ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")
MAX_SCOPES = 200
TOKEN_TYPES = ("oauth2", "delegated")
# Those of forms too.
CONNECTION_TYPES = (*TOKEN_TYPES, *registry.form_types())
# The length of the column.
MAX_LABEL = 128
SCOPE = about("The provider's own scopes, as granted.", ["https://www.googleapis.com/auth/calendar"])
STORED_SCOPE = about(
    "The provider's own scopes, as granted; also in one string with spaces, as providers return them. A "
    "level (`write`, `read`, `free-busy`, `edit`) stands for the calendar scopes that it requests.",
    ["https://www.googleapis.com/auth/calendar"],
    ["write"],
)
SHOWN = about("Null unless `showToken` was asked for.")


class TokenText(Text):
    """An access or refresh token, as it can be sent in a header."""

    def __init__(self, description: str, **options: Any) -> None:
        shape = {"pattern": f"^{TOKEN.pattern}$", "description": description}
        super().__init__(shortest=1, longest=16_384, metadata=shape, **options)

    def parse(self, text: str) -> str:
        """The validated token."""
        token = super().parse(text)
        if not TOKEN.fullmatch(token):
            raise ValidationError("must be printable ASCII without spaces")
        return token


class Address(Text):
    """An e-mail address; only its syntax is checked, and only roughly."""

    def __init__(self, *, description: str | None = None, **options: Any) -> None:
        shape: dict[str, Any] = {"pattern": f"^{ADDRESS.pattern}$", "examples": ["ada@example.com"]}
        if description is not None:
            shape["description"] = description
        super().__init__(shortest=3, longest=320, metadata=shape, **options)

    def parse(self, text: str) -> str:
        """The validated address."""
        address = super().parse(text)
        if not ADDRESS.fullmatch(address):
            raise ValidationError("must be an e-mail address, like ada@example.com")
        return address


def _parts(scopes: str) -> list[str]:
    """The scopes of a text; one empty scope, which is refused, if it has none."""
    return scopes.replace(",", " ").split() or [""]


class Scopes(fields.List[str]):
    """Scopes as an array, or as one string with spaces, as token endpoints return them (RFC 6749, 3.3).

    Some libraries write commas instead, which no scope of a provider has.
    """

    def __init__(self, **options: Any) -> None:
        length = validate.Length(1, MAX_SCOPES, error="must have {min} to {max} elements")
        super().__init__(Text(shortest=1, longest=512), validate=length, metadata=STORED_SCOPE, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        if isinstance(value, str):
            value = [value]
        if isinstance(value, list):
            parts = (_parts(each) if isinstance(each, str) else [each] for each in value)
            value = [part for each in parts for part in each]
        return super()._deserialize(value, attr, data, **kwargs)


class ConnectionSchema(Schema):
    """A provider account of a user."""

    provider = Word(registry.names(), required=True, metadata=about("The provider of the account."))
    email = given(
        fields.String, "The address of the account; null if it is not known.", "ada@example.com", null=True
    )
    alive = given(fields.Boolean, "False once the provider says that the grant is gone.")
    expiresAt = given(Timestamp, "When the access token expires. It is refreshed before that.", null=True)
    scope = fields.List(fields.String(), required=True, metadata=SCOPE)
    type = Word(CONNECTION_TYPES, required=True, metadata=about("How the account is connected."))
    accessToken = fields.String(required=True, allow_none=True, metadata=SHOWN)
    refreshToken = fields.String(required=True, allow_none=True, metadata=SHOWN)


LABEL = about("A name of your own for the account.", "Work")


class LastReadSchema(Schema):
    """The result of the last read of a main calendar."""

    at = given(Timestamp, "When it was read.")
    ok = given(fields.Boolean, "Whether it could be read.")
    reason = fields.String(metadata=about("Why it could not be read.", enum=[str(r) for r in Reason]))
    message = fields.String(metadata=about("The same for people."))
    since = fields.String(
        metadata=about("When the present run of failures began.", format="date-time"),
    )


class UserConnectionSchema(Schema):
    """An account of a user, by the id of its connection."""

    id = given(
        fields.String,
        "The id of the connection. It stays when the same account is connected again.",
        "5f0c3e9a7b1d4e2f8a6c9d0b1e3f5a7c",
    )
    provider = Word(registry.names(), required=True, metadata=about("The provider of the account."))
    type = Word(CONNECTION_TYPES, required=True, metadata=about("How the account is connected."))
    email = given(
        fields.String, "The address of the account; null if it is not known.", "ada@example.com", null=True
    )
    label = fields.String(required=True, allow_none=True, metadata=LABEL)
    default = given(fields.Boolean, "Whether it is the user's default connection with the provider.")
    alive = given(fields.Boolean, "False once the provider says that the grant is gone.")
    scope = fields.List(fields.String(), required=True, metadata=SCOPE)
    expiresAt = given(Timestamp, "When the access token expires. It is refreshed before that.", null=True)
    createdAt = given(Timestamp, "When the account was connected, or connected again.")
    lastRead = fields.Nested(
        LastReadSchema,
        required=True,
        allow_none=True,
        metadata=about("What the last read of its main calendar has found; null before the first one."),
    )


class ConnectionChangeBody(Body):
    """A change of a connection; absent fields stay unchanged."""

    label = Text(
        longest=MAX_LABEL,
        load_default=None,
        metadata=about("A name of your own for the account; an empty text removes it.", "Work"),
    )
    default = JsonBoolean(
        load_default=None,
        metadata=about(
            "`true`: the user's default connection with the provider. It cannot be set to `false`."
        ),
    )


class ConnectionBody(Body):
    """Tokens that the client obtained itself; or with the type `delegated`, a mailbox that is read by the
    grant of an organization.
    """

    type = Word(
        TOKEN_TYPES,
        load_default="oauth2",
        metadata=about(
            "`oauth2`, the default: from `accessToken` and `scope`, which are then required. "
            "`delegated`: by the grant of `organization`, which is then required, as is `email`.",
            default="oauth2",
        ),
    )
    organization = Identifier(
        SLUG,
        metadata=about("Only with `delegated`: the organization whose grant is used. The user is a member."),
    )
    accessToken = TokenText("The access token.")
    refreshToken = TokenText(
        "The refresh token. Without it the connection ends with the access token.",
        load_default=None,
        allow_none=True,
    )
    email = Address(
        load_default=None,
        allow_none=True,
        description="The address of the account. By it, two connections of one account are recognized.",
    )
    expiresAt = Instant(load_default=None, allow_none=True, metadata=about("When the access token expires."))
    scope = Scopes()

    @validates_schema
    def has_what_its_type_needs(self, data: dict[str, Any], **_: Any) -> None:
        """Require the fields of each type."""
        delegated = data["type"] == "delegated"
        for name in ("email", "organization") if delegated else ("accessToken", "scope"):
            if data.get(name) is None:
                raise ValidationError("is required", name)


class ShowTokenQuery(Schema):
    """Whether to reveal tokens."""

    showToken = TrueOrFalse(load_default=False, metadata=about("Reveal access and refresh token."))


class ConnectionsQuery(PageQuery, ShowTokenQuery):
    """Paging, and whether to reveal tokens."""


def connection_view(row: OAuthConnection | ListedConnection, tokens: Tokens | None = None) -> dict[str, Any]:
    """A connection for ``ConnectionSchema``; ``tokens`` only if the response shows them.

    Values that a person has entered in a form are never shown.
    """
    kind = registry.connection_type(row.provider) if row.grant_id is None else "delegated"
    if kind not in TOKEN_TYPES:
        tokens = None
    return {
        "provider": row.provider,
        "email": row.email,
        "alive": row.usable,
        "expiresAt": row.expires_at,
        "scope": row.scope,
        "type": kind,
        "accessToken": tokens.access_token if tokens else None,
        "refreshToken": tokens.refresh_token if tokens else None,
    }


def user_connection_view(
    row: OAuthConnection, last_read: LastRead | None, *, is_default: bool
) -> dict[str, Any]:
    """A connection for ``UserConnectionSchema``."""
    view = connection_view(row)
    return {
        "id": row.public_id,
        **{name: view[name] for name in ("provider", "type", "email", "alive", "scope", "expiresAt")},
        "label": row.label,
        "default": is_default,
        "createdAt": row.created_at,
        "lastRead": None if last_read is None else _last_read(last_read),
    }


def _last_read(read: LastRead) -> dict[str, Any]:
    if read.ok:
        return {"at": read.moment, "ok": True}
    return {
        "at": read.moment,
        "ok": False,
        "reason": read.reason,
        "message": read.message,
        "since": timestamp(read.at if read.since is None else read.since),
    }


ACCESS_TYPES = ("offline", "online")

# https://www.rfc-editor.org/rfc/rfc6749#section-3.3
SCOPE_PATTERN = re.compile(r"[!#-\[\]-~]{1,512}", re.ASCII)
# Matches levels only: providers' own scopes have dots, colons or capitals.
_WORD = re.compile(r"[a-z-]+", re.ASCII)

_OWN_SCOPES = {
    "type": "array",
    "items": {"type": "string", "pattern": f"^{SCOPE_PATTERN.pattern}$"},
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
        if not isinstance(scope, str) or not SCOPE_PATTERN.fullmatch(scope):
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
        super().__init__(fields.String(), metadata=about(_MEANING, default=["write"]), **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        scopes = super()._deserialize(value, attr, data, **kwargs)
        if not scopes:
            return str(Level.WRITE)
        return _level(scopes[0]) if _WORD.fullmatch("".join(scopes)) else _own_scopes(scopes)


class RedirectUrl(Text):
    """A URL to redirect a browser to; the allow-list is checked later."""

    def __init__(self, description: str) -> None:
        super().__init__(longest=2048, load_default=None, metadata=about(description))


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


ACCOUNT = (
    "Which connection the account replaces. `default`: the default one with the provider. `add`: none, it "
    "becomes another connection; the same account is renewed. The id of a connection: that one, and only its "
    "account is accepted."
)


class Consent(Schema):
    """Options of a consent, and the URLs of its redirects."""

    account = Text(
        shortest=1,
        longest=MAX_CONNECTION_ID,
        load_default=str(ReplacedConnection.DEFAULT),
        metadata=about(ACCOUNT, "add", default="default"),
    )

    accessType = Word(ACCESS_TYPES, load_default="offline", metadata=about(ACCESS_TYPE, default="offline"))
    redirectUrl = RedirectUrl(REDIRECT)
    returnUrl = RedirectUrl(RETURN)
    expectedEmail = Address(load_default=None, description=EXPECTED_EMAIL)


class LinkQuery(Consent):
    """Options and scopes of a consent, in a query."""

    scope = AccessInQuery(load_default=str(Level.WRITE))


class AuthorizeBody(Body, Consent):
    """Options and scopes of a consent, in a body."""

    scope = Access(load_default=str(Level.WRITE))


class LinkSchema(Schema):
    """A link to a consent page."""

    link = given(fields.String, "Open it in a browser within ten minutes; it works once.", format="uri")


class ProviderLinkSchema(LinkSchema):
    """A link to the consent page of one provider."""

    provider = Word(
        registry.with_consent(), required=True, metadata=about("The provider that the link leads to.")
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
        shortest=1, longest=8192, required=True, metadata=about("`code` of the redirect.", "4/0AVMBsJh")
    )
    state = Text(
        shortest=1,
        longest=512,
        required=True,
        metadata=about("`state` of the redirect. It works once.", "q2Vw8cJ5"),
    )
    scope = Granted(load_default=None, allow_none=True)


class RevokeQuery(Schema):
    """Whether deleting a connection revokes its grant."""

    revoke = TrueOrFalse(load_default=True, metadata=about(REVOKE, default=True))


class AccessTokenSchema(Schema):
    """A valid access token."""

    accessToken = given(fields.String, "For the header `Authorization` of requests to the provider.")
