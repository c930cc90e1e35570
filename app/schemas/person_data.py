"""The export of a person's data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from marshmallow import Schema, fields

from app.schemas import timestamps
from app.schemas.fields import about
from scheduling.json_render import timestamp


def _rows(of: str) -> fields.List[Any]:
    # The columns are those of the database, and grow with it.
    row = fields.Raw(metadata={"$ref": "#/components/schemas/StoredRow"})
    return fields.List(row, required=True, metadata=about(f"{of}, as stored."))


class PersonDataSchema(Schema):
    """Everything that is stored about a user, by kind, without secrets.

    The fields of a row are the columns of its table, which later versions may add to.
    """

    users = _rows("The user")
    memberships = _rows("Memberships in organizations")
    availabilityProfiles = _rows("What counts for the user")
    oauthConnections = _rows("Connected accounts")
    channels = _rows("Notification channels of calendars")
    holds = _rows("Holds of the user's time")
    heldTimes = _rows("The time of these holds, in milliseconds since 1970")
    heldNames = _rows("The calendars that these holds take")
    webhookDeliveries = _rows("Webhook events about the user of the last 30 days")
    userInvitations = _rows("Invitations to connect an account")
    auditRecords = _rows("Records of the audit log about the user")


def person_data_view(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The rows of an export for ``PersonDataSchema``, with names and timestamps as everywhere in the API."""
    return {
        _camel(table): [{_camel(name): _value(value) for name, value in row.items()} for row in rows]
        for table, rows in tables.items()
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _value(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return timestamp((value - timestamps.EPOCH) // timestamps.MILLISECOND)
