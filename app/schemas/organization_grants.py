"""Schemas of the grants of organizations and of imports of members."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from app.schemas.connections import Access, Address
from app.schemas.fields import USER_ID, Body, Identifier, Text, Timestamp, Word, about, given
from providers import registry
from store.sql.queries.organization_grants import GrantSummary

GRANT_TYPES = ("serviceAccount", "application")
MAX_IMPORTED = 1000

# A part of Microsoft's addresses: a GUID or a domain.
TENANT = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?"
VISIBLE = r"[!-~]+"


class Shaped(Text):
    """A text of one shape; ``must`` ends the sentence about any other."""

    def __init__(self, pattern: str, must: str, *, longest: int, metadata: dict[str, Any], **options: Any):
        shape = {"pattern": f"^{pattern}$", **metadata}
        super().__init__(shortest=1, longest=longest, metadata=shape, **options)
        self._matches = validate.Regexp(f"{pattern}\\Z", error=must)

    def parse(self, text: str) -> str:
        """The validated text."""
        return str(self._matches(super().parse(text)))


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


class MicrosoftGrantBody(Body):
    """An application that the administrator of a Microsoft tenant has given permissions."""

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


class GrantSchema(Schema):
    """The grant of an organization, without its secrets."""

    provider = Word(registry.names(), required=True, metadata=about("The provider."))
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
