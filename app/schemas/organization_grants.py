"""Schemas of the grants of organizations and of imports of members."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from app.schemas.connections import Access, Address
from app.schemas.fields import (
    USER_ID,
    Body,
    Identifier,
    QuerySchema,
    RefusingBody,
    Text,
    Timestamp,
    WholeBody,
    Word,
    about,
    given,
    list_of,
)
from providers import registry
from providers.directory import KINDS, Entry
from store.sql.queries.organization_grants import GrantSummary

GRANT_TYPES = ("serviceAccount", "application")
MAX_IMPORTED = 1000
MAX_PART = 320

# A part of Microsoft's addresses: a GUID or a domain.
TENANT = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?"
VISIBLE = r"[!-~]+"
THUMBPRINT = r"[0-9A-Fa-f]{2}(:?[0-9A-Fa-f]{2}){19,31}"
MAX_CERTIFICATE = 32_768
_LINES = re.compile(r"[ -~\r\n]*")


class Shaped(Text):
    """A text of one shape; ``must`` ends the sentence about any other."""

    def __init__(self, pattern: str, must: str, *, longest: int, metadata: dict[str, Any], **options: Any):
        shape = {"pattern": f"^{pattern}$", **metadata}
        super().__init__(shortest=1, longest=longest, metadata=shape, **options)
        self._matches = validate.Regexp(f"{pattern}\\Z", error=must)

    def parse(self, text: str) -> str:
        """The validated text."""
        return str(self._matches(super().parse(text)))


class Pem(Text):
    """A text of several lines in printable ASCII."""

    def parse(self, text: str) -> str:
        """The text itself."""
        if not _LINES.fullmatch(text):
            raise ValidationError("must be PEM")
        super().parse(text.replace("\r", "").replace("\n", ""))
        return text


class KeyFile(fields.Field[Any]):
    """The JSON key file of a service account, as it was downloaded."""

    def __init__(self, **options: Any) -> None:
        shape = {
            "type": "object",
            "additionalProperties": True,
            "description": "The JSON key file of the service account, as Google offers it for download. It "
            "is stored encrypted and never shown.",
            "example": {
                "type": "service_account",
                "client_email": "almanac@acme-calendars.iam.gserviceaccount.com",
                "private_key": "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n",
            },
        }
        super().__init__(metadata=shape, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValidationError("must be an object")
        return value


class GoogleGrantBody(Body):
    """A service account that the administrator of a Google domain has authorized."""

    serviceAccountKey = KeyFile(required=True)
    subject = Address(
        required=True,
        description="The account of the domain that free/busy is read as. Its domain is that of the grant.",
    )
    scope = Access(
        load_default="write",
        description="A level of access, or Google's own scopes; by default `write`. The administrator has "
        "authorized exactly these.",
    )


class MicrosoftGrantBody(RefusingBody):
    """An application that the administrator of a Microsoft tenant has given permissions."""

    refused = {  # noqa: RUF012
        "scope": "must not be given for Microsoft: the permissions of the application decide about the access"
    }

    tenant = Shaped(
        TENANT,
        "must be the Directory (tenant) ID or a domain",
        longest=253,
        required=True,
        metadata=about(
            "The Directory (tenant) ID, or a domain of the tenant.", "3aa9e1e8-3e55-4d5c-9d57-0f5c9b8f9a10"
        ),
    )
    clientId = Shaped(
        VISIBLE,
        "must be printable ASCII without spaces",
        longest=512,
        load_default=None,
        allow_none=True,
        metadata=about(
            "The Application (client) ID; without it the registration of the installation is "
            "used, which needs an API key that is not bound to an organization."
        ),
    )
    clientSecret = Shaped(
        VISIBLE,
        "must be printable ASCII without spaces",
        longest=1024,
        load_default=None,
        allow_none=True,
        metadata=about("The client secret of `clientId`. It is stored encrypted and never shown."),
    )
    certificate = Pem(
        shortest=1,
        longest=MAX_CERTIFICATE,
        load_default=None,
        allow_none=True,
        metadata=about(
            "Instead of `clientSecret`: a certificate of the application and its private key (RSA), as PEM. "
            "It is stored encrypted and never shown."
        ),
    )
    thumbprint = Shaped(
        THUMBPRINT,
        "must be the SHA-1 or SHA-256 of the certificate in hexadecimal digits",
        longest=95,
        load_default=None,
        allow_none=True,
        metadata=about("The thumbprint that Microsoft shows; a `certificate` with another one is refused."),
    )


class GrantSchema(Schema):
    """The grant of an organization, without its secrets."""

    provider = Word(registry.with_grant(), required=True, metadata=about("The provider."))
    type = Word(GRANT_TYPES, required=True, metadata=about("What the administrator has authorized."))
    email = fields.String(
        metadata=about("Google: the account that free/busy is read as.", "admin@acme.example")
    )
    serviceAccount = fields.String(
        metadata=about("Google: the service account.", "almanac@acme-calendars.iam.gserviceaccount.com")
    )
    tenant = fields.String(metadata=about("Microsoft: the tenant.", "3aa9e1e8-3e55-4d5c-9d57-0f5c9b8f9a10"))
    clientId = fields.String(
        metadata=about("Microsoft: the application; absent when it is the installation's.")
    )
    scope = fields.List(
        fields.String(),
        required=True,
        metadata=about(
            "The scopes (Google) or application permissions (Microsoft).",
            ["https://www.googleapis.com/auth/calendar"],
        ),
    )
    alive = given(fields.Boolean, "False once the provider refuses the grant; a new PUT makes it true again.")
    endedAt = Timestamp(metadata=about("When the provider refused the grant; absent while it is alive."))
    endedBecause = fields.String(
        metadata=about(
            "Why, and what the administrator does; absent while the grant is alive.",
            "The client secret of the application has expired",
        )
    )
    createdAt = given(Timestamp, "When the grant was first stored.")


class MemberImportSchema(Body):
    """A member to read by the grant."""

    userId = Identifier(USER_ID, required=True, metadata=about("The id of the user, who is made if missing."))
    email = Address(
        required=True,
        description="The address of the mailbox: of a person, or of a room. At Google it is in the domain of "
        "the grant.",
    )


class ImportBody(Body):
    """Members to read by the grant."""

    members = fields.List(
        fields.Nested(MemberImportSchema),
        required=True,
        validate=validate.Length(max=MAX_IMPORTED, error="must have at most {max} elements"),
        metadata=about(f"At most {MAX_IMPORTED}. Each user and each address once."),
    )


class ImportedMembersSchema(Schema):
    """The users of an import, by what it has changed for them."""

    created = fields.List(
        Identifier(USER_ID),
        required=True,
        metadata=about("Users who had no account with the provider, in the order of the request."),
    )
    changed = fields.List(
        Identifier(USER_ID),
        required=True,
        metadata=about(
            "Users whose connection was replaced, or who have become members, in the order of the request."
        ),
    )
    unchanged = fields.List(
        Identifier(USER_ID), required=True, metadata=about("All others, in the order of the request.")
    )


class DirectoryQuery(QuerySchema):
    """Which part of a directory to list."""

    q = Text(
        longest=MAX_PART,
        load_default="",
        metadata=about("Only entries with this part in the name or the address, in any case.", "ada"),
    )
    kind = Word(KINDS, metadata=about("Only people, or only rooms; by default both."))


class DirectoryEntrySchema(Schema):
    """A person or a room."""

    kind = Word(KINDS, required=True, metadata=about("A person or a room."))
    id = given(fields.String, "The id of the directory, which stays when the address changes.")
    email = given(fields.String, "The address, by which a member is imported.", "ada@acme.example")
    name = given(fields.String, "The name in the directory.", "Ada Lovelace")
    building = fields.String(
        metadata=about("Of a room: the building. Absent where the directory has none.", "HQ")
    )
    capacity = fields.Integer(
        metadata=about("Of a room: the number of people. Absent where the directory has none.", 8)
    )
    userId = fields.String(
        metadata=about("The user whom the grant reads under this address; absent if there is none.", "ada")
    )


class DirectoryAnswer(WholeBody):
    """A directory."""

    data = list_of(DirectoryEntrySchema, about("The entries by address."))
    more = fields.Boolean(
        metadata=about("True if there are over 20 000 of a kind, of which the answer has the first ones.")
    )


def entry_view(entry: Entry, user_id: str | None) -> dict[str, Any]:
    """An entry for ``DirectoryEntrySchema``."""
    optional = {"building": entry.building, "capacity": entry.capacity, "userId": user_id}
    return {
        "kind": entry.kind,
        "id": entry.id,
        "email": entry.email,
        "name": entry.name,
        **{name: value for name, value in optional.items() if value is not None},
    }


def grant_view(grant: GrantSummary) -> dict[str, Any]:
    """A grant for ``GrantSchema``."""
    google = grant.provider == "google"
    optional = {
        "email": grant.subject,
        "serviceAccount": grant.client_email,
        "tenant": grant.tenant,
        "clientId": grant.client_id,
        "endedAt": grant.ended_at,
        "endedBecause": grant.ended_because,
    }
    return {
        "provider": grant.provider,
        "type": "serviceAccount" if google else "application",
        "scope": grant.scope,
        "alive": grant.alive,
        "createdAt": grant.created_at,
        **{name: value for name, value in optional.items() if value is not None},
    }
