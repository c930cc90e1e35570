"""Schemas of calendars and their lists."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from app.http.responses import WholeBody
from app.schemas.errors import FailedCalendarSchema
from app.schemas.fields import Several, Text, Word
from app.schemas.records import PageQuery
from providers.base import Calendar
from providers.names import ProviderName

ROLES = ("freeBusyReader", "reader", "writer", "owner")
ORIGINAL = {
    "description": "The provider's own record, untouched.",
    "anyOf": [{"$ref": "#/components/schemas/Original"}, {"type": "null"}],
}


class ProviderQuery(Schema):
    """A filter for connections by provider."""

    provider = Several(
        Word(tuple(ProviderName)), load_default=list, metadata={"description": "Only accounts of these."}
    )


class LongCursorQuery(PageQuery):
    """Paging of a list whose cursors contain the long ids of providers."""

    cursor = Text(longest=16_384, metadata={"description": "`nextCursor` of the page before."})


class CalendarsQuery(ProviderQuery, LongCursorQuery):
    """A filter for connections, and paging."""


class CalendarSchema(Schema):
    """A calendar of one of the user's accounts."""

    id = fields.String(required=True)
    provider = Word(tuple(ProviderName), required=True)
    subject = fields.String(required=True)
    accessRole = Word(ROLES, required=True)
    primary = fields.Boolean(required=True, metadata={"description": "The main one of its account."})
    selected = fields.Boolean(required=True)
    backgroundColor = fields.String(required=True, metadata={"examples": ["#9fe1e7"]})
    foregroundColor = fields.String(required=True, metadata={"examples": ["#000000"]})
    timeZone = fields.String(required=True, metadata={"examples": ["Europe/Berlin"]})
    original = fields.Raw(required=True, metadata=ORIGINAL)


class CalendarsAnswer(WholeBody):
    """The calendars that could be read, and the accounts that could not."""

    data = fields.List(fields.Nested(CalendarSchema), required=True)
    failedCalendars = fields.List(
        fields.Nested(FailedCalendarSchema),
        metadata={"description": "Only when an account could not be read; named by its main calendar."},
    )
    nextCursor = fields.String(
        allow_none=True, metadata={"description": "Only with `limit`; null at the end."}
    )


def calendar_view(calendar: Calendar) -> dict[str, Any]:
    """A calendar for ``CalendarSchema``."""
    return {
        "id": calendar.id,
        "provider": calendar.provider,
        "subject": calendar.subject,
        "accessRole": calendar.access_role,
        "primary": calendar.primary,
        "selected": calendar.selected,
        "backgroundColor": calendar.background_color,
        "foregroundColor": calendar.foreground_color,
        "timeZone": calendar.time_zone,
        "original": calendar.original,
    }
