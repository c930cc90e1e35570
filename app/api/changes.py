"""The route for the changes in a user's calendars."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from flask import Response
from flask.views import MethodView

from app.availability import connections, parameters
from app.availability.selection import Target
from app.events import changes
from app.events.change_cursor import Cursor, Owner, seal, unseal
from app.http.authentication import authentication
from app.http.errors import Invalid, NotFound
from app.http.parsing import freshness
from app.http.responses import json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.changes import DELETED, UPDATED, ChangesAnswer, ChangesQuery
from app.schemas.error_codes import Code
from app.schemas.events import OptionalZoneHeader
from app.services import services
from providers.changes import ChangePage
from providers.event_views import event_view
from providers.timestamps import DAY

blp = Blueprint(
    "changes",
    __name__,
    metric_group="events",
    description="The changes in the calendars of a user since an earlier request.",
)

UTC = ZoneInfo("UTC")


@blp.route("/users/<user_id:userId>/calendar/changes")
class Changes(MethodView):
    @route_facts(
        "listChanges",
        fails_with_provider=True,
        accepts_cache_control=True,
        codes=(Code.NO_CONNECTED_CALENDARS, Code.RANGE_TOO_LARGE, Code.CURSOR_EXPIRED),
    )
    @blp.arguments(ChangesQuery, location="query")
    @blp.arguments(OptionalZoneHeader, location="headers")
    @blp.response(200, ChangesAnswer)
    def get(self, params: dict[str, Any], header: dict[str, ZoneInfo], userId: str) -> Response:
        """List the changes in a user's calendars

        The first request has a `start` and no `cursor`, and gets all events of the range; each later one
        has the `cursor` of the answer before. Series are expanded, as in the list of events. Every entry
        replaces what you have by its id: the event, and all events whose `recurringEventId` it is. Calendars
        that could not be read are in `failedCalendars`, and keep their place in the cursor. When a provider
        no longer knows what has changed, the status is 410.
        """
        chosen = None if params.get("cursor") else _first(params, header.get("zone") or UTC)
        refs = connections.of_user(authentication(), userId, {"provider": [], "connection": []})
        if not refs:
            raise NotFound(connections.NO_CALENDARS, Code.NO_CONNECTED_CALENDARS)
        owner = Owner(refs[0].user_id, authentication().organization_id)
        keyring = services().stores.keyring
        cursor = chosen or unseal(params["cursor"], owner, keyring)
        if chosen is None:
            _require_same(params, cursor, header.get("zone") or UTC)
        selected = {"provider": cursor.providers, "connection": cursor.connections}
        connections.require_chosen(selected, refs)
        found = changes.find(parameters.chosen(refs, selected), cursor, freshness())
        if found.failures and not found.failures.something_read:
            raise found.failures.error()
        answer = {
            "data": [entry for target, page in found.pages for entry in _entries(target, page)],
            "cursor": seal(found.cursor, owner, keyring),
            "more": found.more,
            "failedCalendars": found.failures.calendars(),
        }
        return json_response(answer)


def _first(params: dict[str, Any], zone: ZoneInfo) -> Cursor:
    """The cursor before the first page.

    :raise ApiError: for a range that is missing, empty or too long
    """
    if "start" not in params:
        raise Invalid("start is required without a cursor", param="start")
    if "end" in params:
        start, end = parameters.time_range(params, zone)
    else:
        start = params["start"].milliseconds(zone)
        end = start + services().settings.max_range_days * DAY
    return Cursor(
        start, end, tuple(params["provider"]), tuple(params["connection"]), tuple(params["calendarIds"])
    )


def _require_same(params: dict[str, Any], cursor: Cursor, zone: ZoneInfo) -> None:
    """Check that parameters beside a cursor are those with which it was begun.

    :raise Invalid: otherwise
    """
    edges = [name for name in ("start", "end") if name in params]
    given: dict[str, Any] = {name: params[name].milliseconds(zone) for name in edges}
    given |= {name: tuple(params[name]) for name in ("provider", "connection", "calendarIds") if params[name]}
    begun = {
        "start": cursor.start,
        "end": cursor.end,
        "provider": cursor.providers,
        "connection": cursor.connections,
        "calendarIds": cursor.calendar_ids,
    }
    for name, value in given.items():
        if value != begun[name]:
            message = f"{name} is not that of the cursor: leave it out, or begin again without the cursor"
            raise Invalid(message, param=name)


def _entries(target: Target, page: ChangePage) -> list[dict[str, Any]]:
    """The entries of a calendar: an id that is gone comes before the events that follow it."""
    place = {"calendarId": target.shown, "connectionId": target.connection.public_id}
    gone = [{"type": DELETED, "id": each, **place} for each in page.deleted]
    return [
        *gone,
        *({"type": UPDATED, "event": event_view(each, target.shown), **place} for each in page.updated),
    ]
