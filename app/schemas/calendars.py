"""Schemas of calendars and their lists."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from app.schemas.errors import CONNECTION_ID, FailedCalendarSchema
from app.schemas.fields import WholeBody, Word, about, given, list_of
from app.schemas.parameters import NEXT_CURSOR, LongCursorQuery, ProviderQuery
from providers import registry
from providers.base import Calendar

ROLES = ("freeBusyReader", "reader", "writer", "owner")
ORIGINAL = about(
    "The provider's own record, untouched.",
    anyOf=[{"$ref": "#/components/schemas/Original"}, {"type": "null"}],
)
CALENDAR_ID = about(
    "The id at the provider: Google's main calendar has the account's address.", "ada@example.com"
)
PROVIDER = about("The provider of the account.")


class CalendarsQuery(ProviderQuery, LongCursorQuery):
    """A filter for connections, and paging."""


class CalendarSchema(Schema):
    """A calendar of one of the user's accounts."""

    id = fields.String(required=True, metadata=CALENDAR_ID)
    provider = Word(registry.names(), required=True, metadata=PROVIDER)
    connectionId = fields.String(required=True, metadata=CONNECTION_ID)
    subject = given(fields.String, "The title.", "Team")
    accessRole = Word(ROLES, required=True, metadata=about("What the account may do with it."))
    primary = given(fields.Boolean, "Whether it is the main one of its account.")
    selected = given(fields.Boolean, "Whether the provider's own pages show it.")
    backgroundColor = given(fields.String, "Its colour.", "#9fe1e7")
    foregroundColor = given(fields.String, "A colour for text on `backgroundColor`.", "#000000")
    timeZone = given(fields.String, "An IANA name.", "Europe/Berlin")
    original = fields.Raw(required=True, metadata=ORIGINAL)


class CalendarsAnswer(WholeBody):
    """The calendars that could be read, and the accounts that could not be read."""

    data = list_of(CalendarSchema, about("The calendars."))
    failedCalendars = list_of(
        FailedCalendarSchema, about("Accounts that could not be read, each named by its main calendar.")
    )
    nextCursor = fields.String(allow_none=True, metadata=NEXT_CURSOR)


def calendar_view(calendar: Calendar, connection_id: str) -> dict[str, Any]:
    """A calendar for ``CalendarSchema``; ``connection_id`` is the public one."""
    return {
        "id": calendar.id,
        "provider": calendar.provider,
        "connectionId": connection_id,
        "subject": calendar.subject,
        "accessRole": calendar.access_role,
        "primary": calendar.primary,
        "selected": calendar.selected,
        "backgroundColor": calendar.background_color,
        "foregroundColor": calendar.foreground_color,
        "timeZone": calendar.time_zone,
        "original": calendar.original,
    }
