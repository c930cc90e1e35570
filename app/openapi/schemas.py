"""Converts marshmallow schemas for the OpenAPI document.

Docstrings become descriptions. Objects are open: answers may gain fields, and unknown fields of requests are
ignored.
"""

from __future__ import annotations

from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin, OpenAPIConverter
from marshmallow import Schema, fields

from app.schemas.availability import WEEKDAYS
from app.schemas.calendars import ROLES
from app.schemas.changes import CHANGE_TYPES
from app.schemas.connections import ACCESS_TYPES, CONNECTION_TYPES, TOKEN_TYPES
from app.schemas.error_codes import Code
from app.schemas.errors import REFUSED_QUOTAS
from app.schemas.events import RESPONSES
from app.schemas.explain import REASONS
from app.schemas.fields import OneOf
from app.schemas.groups import GROUP_REASONS
from app.schemas.organization_grants import GRANT_TYPES
from app.schemas.parameters import ALIGNMENTS, APPLY, IGNORE, LEAST_BUSY, ON_FAILURE, REQUEST
from app.schemas.webhooks import EVENTS, RELEASES, SENT_EVENTS, STATUSES
from providers import registry
from providers.directory import KINDS
from providers.errors import Reason
from providers.events import EventStatus, ResponseStatus, Scope, ShowAs, Visibility
from providers.scopes import LEVEL_NAMES
from store.sql.queries.users import RELATIONS

# Objects that marshmallow passes through unchanged, by name: client generators make a type of each.
OBJECTS: dict[str, dict[str, Any]] = {
    "MeetingUrl": {
        "type": "object",
        "description": "A meeting elsewhere.",
        "required": ["url"],
        "properties": {
            "url": {
                "type": "string",
                "description": "The address of the meeting: `https` or `http`, in ASCII.",
                "examples": ["https://meet.example.com/review"],
            }
        },
    },
    "Original": {
        "type": "object",
        "description": f"A provider's own record. Its fields are those of {registry.titles('or')}.",
        "additionalProperties": True,
    },
    "StoredRow": {
        "description": "A row of a table: the values of its columns, by their names.",
        "type": "object",
        "additionalProperties": True,
    },
}


class Converter(OpenAPIConverter):
    """apispec's converter, with descriptions from docstrings, ``const``, and objects of several schemas."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.attribute_functions.append(self.one_of2properties)

    def schema2jsonschema(self, schema: Schema) -> dict[str, Any]:
        """The JSON schema of a marshmallow schema."""
        converted: dict[str, Any] = super().schema2jsonschema(schema)
        converted.pop("additionalProperties", None)
        return {"description": _description(schema), **converted}

    def metadata2properties(self, field: fields.Field[Any], **named: Any) -> dict[str, Any]:
        """The keywords in the metadata of a field; apispec drops ``const`` and ``$ref``."""
        found: dict[str, Any] = super().metadata2properties(field, **named)
        return found | {word: field.metadata[word] for word in ("const", "$ref") if word in field.metadata}

    def one_of2properties(self, field: fields.Field[Any], **_: Any) -> dict[str, Any]:
        """A reference to the component of a ``OneOf``, which is registered at its first use."""
        if not isinstance(field, OneOf):
            return {}
        if field.component not in self.spec.components.schemas:
            references = {word: self.resolve_nested_schema(each) for word, each in field.schemas.items()}
            mapping = {word: reference["$ref"] for word, reference in references.items()}
            component = {
                "description": field.meaning,
                "oneOf": list(references.values()),
                "discriminator": {"propertyName": field.selector, "mapping": mapping},
            }
            self.spec.components.schema(field.component, component)
        return {"$ref": f"#/components/schemas/{field.component}"}


class SchemaPlugin(MarshmallowPlugin):
    """apispec's plugin for marshmallow, with our converter."""

    Converter = Converter


def _description(schema: Schema) -> str:
    text = type(schema).__doc__
    assert text is not None, f"{type(schema).__name__} has no docstring"
    return " ".join(text.split()).replace("``", "`")


# The words and the meaning of each enumeration, by its name.
ENUMERATIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "AccessLevel": (
        LEVEL_NAMES,
        "A level of access: `write` (events too), `read`, or `free-busy` (no contents of events). "
        "`edit` is the old name of `write`.",
    ),
    "ChangeType": (CHANGE_TYPES, "How an event has changed."),
    "AccessRole": (ROLES, "What an account may do with a calendar, from the least to the most."),
    "AccessType": (ACCESS_TYPES, "Whether access lasts while the person is away (`offline`)."),
    "ConsentProvider": (registry.with_consent(), "A provider with consents and grants of organizations."),
    "ConnectionType": (CONNECTION_TYPES, "How an account is connected."),
    "DeliveryStatus": (STATUSES, "The state of a delivery."),
    "ErrorCode": (tuple(Code), "What is wrong, for programs. A code is never renamed."),
    "EventStatus": (tuple(EventStatus), "Whether an event takes place."),
    "FailureReason": (tuple(Reason), "Why a provider failed; the set is closed."),
    "DirectoryKind": (KINDS, "A person or a room of a directory."),
    "GrantType": (GRANT_TYPES, "What the administrator of an organization has authorized."),
    "GroupVerdict": (
        GROUP_REASONS,
        "Why a moment is, or is not, in a slot that groups share; the set is closed.",
    ),
    "OnFailure": (
        ON_FAILURE,
        "What to answer when some calendars could not be read: an error, or what was read.",
    ),
    "ProfileUse": ((APPLY, IGNORE), "Whether the stored availability of the users counts."),
    "Provider": (registry.names(), "A calendar provider."),
    "Quota": (REFUSED_QUOTAS, "What one organization may use only a share of at once."),
    "InvitationResponse": (RESPONSES, "An answer to an invitation."),
    "SeriesScope": (tuple(Scope), "The part of a series that a change of an occurrence concerns."),
    "Relation": (tuple(RELATIONS), "A relation of a user."),
    "ReleaseReason": (RELEASES, "Why a hold was released."),
    "ResponseStatus": (tuple(ResponseStatus), "What an attendee has answered."),
    "SentEventType": (
        SENT_EVENTS,
        "An event that an endpoint may receive; `webhook.test` is sent on request only.",
    ),
    "ShowAs": (tuple(ShowAs), "How a calendar shows its owner during an event."),
    "SlotAlignment": (
        ALIGNMENTS,
        "Where slots start: at the start of each free stretch, or at multiples of `slotStep` on the "
        "local clock.",
    ),
    "TokenConnectionType": (TOKEN_TYPES, "How an account is connected by tokens or a grant."),
    "UserOrder": ((REQUEST, LEAST_BUSY), "The order of the users of a slot."),
    "Verdict": (tuple(REASONS), "Why a moment is, or is not, offered; the set is closed."),
    "Visibility": (
        tuple(Visibility),
        "The readers of a shared calendar who see the content of an event.",
    ),
    "WebhookEventType": (EVENTS, "What has happened."),
    "Weekday": (WEEKDAYS, "A day of the week."),
}
_NAMES = {frozenset(map(str, words)): name for name, (words, _) in ENUMERATIONS.items()}


def named(document: dict[str, Any]) -> dict[str, Any]:
    """The document with each inline enumeration replaced by a reference to its name."""
    replaced: dict[str, Any] = _replaced(document)
    schemas = {
        name: {"type": "string", "description": meaning, "enum": [*map(str, words)]}
        for name, (words, meaning) in ENUMERATIONS.items()
    }
    replaced["components"]["schemas"] |= schemas
    return replaced


def _replaced(node: Any) -> Any:
    if isinstance(node, list):
        return [_replaced(child) for child in node]
    if not isinstance(node, dict):
        return node
    name = _NAMES.get(frozenset(node["enum"])) if isinstance(node.get("enum"), list) else None
    if name is None:
        return {key: _replaced(child) for key, child in node.items()}
    rest = {key: child for key, child in node.items() if key not in ("type", "enum")}
    return {"$ref": f"#/components/schemas/{name}", **rest}
