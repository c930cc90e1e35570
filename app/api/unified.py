"""Routes for unified events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from flask import Response
from flask.views import MethodView

from app.api import replay_access
from app.availability import connections
from app.availability.selection import distinct_accounts
from app.events import conditions, unified
from app.events.bodies import changes, new_meta_id, unified_view
from app.http import idempotency, parsing
from app.http.authentication import authentication
from app.http.responses import json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.error_codes import Code
from app.schemas.event_answers import UnifiedAnswer
from app.schemas.events import OptionalZoneHeader, UnifiedBody, UnifiedChangeBody, UnifiedDeleteQuery
from app.schemas.holds import UnifiedCreateQuery
from app.schemas.parameters import ProviderQuery
from app.schemas.records import SuccessSchema
from providers.base import PRIMARY
from providers.scopes import Operation
from store.sql.queries.connection_rows import ConnectionRef

blp = Blueprint(
    "unified",
    __name__,
    metric_group="events",
    description="Unified events: one event in the main calendar of each account. `metaId` ties the copies "
    "together; the providers keep it.",
)


COPIES = "a unified event: change the occurrences of its copies"


@blp.route("/users/<user_id:userId>/calendar/events/meta")
class UnifiedEvents(MethodView):
    @route_facts(
        "createUnifiedEvent",
        replay_check=replay_access.unified_event,
        fails_with_provider=True,
        codes=(
            Code.NO_CONNECTED_CALENDARS,
            Code.EVENT_COPIES_DIFFER,
            Code.META_ID_IN_USE,
            Code.SLOT_TAKEN,
            Code.RANGE_TOO_LARGE,
        ),
    )
    @blp.arguments(UnifiedCreateQuery, location="query")
    @blp.arguments(UnifiedBody)
    @blp.arguments(OptionalZoneHeader, location="headers")
    @blp.response(201, UnifiedAnswer)
    def post(
        self, params: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo], userId: str
    ) -> Response:
        """Create a unified event

        In every account, or in none: when one fails, the copies that were created are deleted again. A
        repeated request with the same `metaId` creates no second copy. If an existing copy has other content,
        missing copies are not created and the status is 409. With `ifFree=true` or `hold`, only in time that
        is free or held: otherwise 409 `slotTaken`, and nothing is written.
        """
        key = idempotency.key()
        refs = _accounts(params, userId, Operation.INSERT_EVENT)
        everything = _accounts({"provider": []}, userId, Operation.LIST_EVENTS)
        others = [ref for ref in everything if ref not in refs]
        content = changes({"metaId": new_meta_id(key), **body}, header.get("zone"))
        by_chance = "metaId" not in body and key is None
        conditions.require_single(params, content)
        calendars = [(ref, PRIMARY) for ref in refs]
        condition = conditions.condition(
            params,
            userId,
            content,
            header.get("zone"),
            calendars,
            repeatable=not by_chance,
            deadlines=conditions.UNIFIED,
            chosen=params["connection"],
        )
        with conditions.leased(authentication(), condition):
            # From here on, even a request that fails may have had an effect.
            idempotency.note_work()
            copies = unified.create(
                refs, content, body.get("sendNotificationsFor"), meta_id_is_new=by_chance, others=others
            )
        return _answer(str(content.meta_id), copies, status=201)


@blp.route("/users/<user_id:userId>/calendar/events/meta/<meta_id:metaId>")
class UnifiedEvent(MethodView):
    @route_facts("getUnifiedEvent", fails_with_provider=True, codes=(Code.NO_CONNECTED_CALENDARS,))
    @blp.arguments(ProviderQuery, location="query")
    @blp.response(200, UnifiedAnswer)
    def get(self, params: dict[str, Any], userId: str, metaId: str) -> Response:
        """Read a unified event

        An account whose copy could not be read is named in `failedCalendars`.
        """
        copies, failures = unified.get(_accounts(params, userId, Operation.LIST_EVENTS), metaId)
        return _answer(metaId, copies, failures.calendars())

    @route_facts("updateUnifiedEvent", fails_with_provider=True, codes=(Code.NO_CONNECTED_CALENDARS,))
    @blp.arguments(ProviderQuery, location="query")
    @blp.arguments(UnifiedChangeBody)
    @blp.arguments(OptionalZoneHeader, location="headers")
    @blp.response(200, UnifiedAnswer)
    def put(
        self,
        params: dict[str, Any],
        body: dict[str, Any],
        header: dict[str, ZoneInfo],
        userId: str,
        metaId: str,
    ) -> Response:
        """Change every copy of a unified event

        Only what is sent is written. When some accounts fail, the error names them in `failedCalendars`,
        and the request can be repeated.
        """
        for name in ("ifFree", "hold"):
            parsing.refuse(name, "a unified event: move its copies")
        parsing.refuse("scope", COPIES, "occurrence")
        refs = _accounts(params, userId, Operation.UPDATE_EVENT)
        content = changes(body, header.get("zone"))
        copies = unified.update(refs, metaId, content, body.get("sendNotificationsFor"))
        return _answer(content.meta_id or metaId, copies)

    @route_facts("deleteUnifiedEvent", fails_with_provider=True, codes=(Code.NO_CONNECTED_CALENDARS,))
    @blp.arguments(UnifiedDeleteQuery, location="query")
    @blp.response(200, SuccessSchema)
    def delete(self, params: dict[str, Any], userId: str, metaId: str) -> dict[str, bool]:
        """Delete every copy of a unified event

        When some accounts fail, the error names them in `failedCalendars`, and the request can be repeated.
        """
        parsing.refuse("scope", COPIES, "occurrence")
        refs = _accounts(params, userId, Operation.DELETE_EVENT)
        unified.delete(refs, metaId, params.get("sendNotificationsFor"))
        return {"success": True}


def _accounts(params: Mapping[str, Any], user: str, operation: Operation) -> list[ConnectionRef]:
    """The user's connections, one for each main calendar: of several, one that allows the operation."""
    return distinct_accounts(connections.of_user(authentication(), user, params), operation)


def _answer(
    meta_id: str,
    copies: unified.Copies,
    failed_calendars: Sequence[dict[str, Any]] = (),
    *,
    status: int = 200,
) -> Response:
    data = unified_view(meta_id, copies)
    return json_response({"data": data, "failedCalendars": list(failed_calendars)}, status)
