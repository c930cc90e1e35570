"""Routes for holds."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from flask import Response, request
from flask.views import MethodView

from app.api import replay_access
from app.events import holds
from app.http import idempotency, paging
from app.http.authentication import authentication
from app.http.responses import json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.availability import ZoneHeader
from app.schemas.error_codes import Code
from app.schemas.holds import HoldBody, HoldQuery, HoldSchema, HoldsQuery, hold_view
from app.schemas.records import SuccessSchema
from store.sql.queries.webhook_events import HoldView

blp = Blueprint(
    "holds",
    __name__,
    metric_group="holds",
    description="Holds keep time of users free for a while: no other request can hold it, or create an event "
    "in it under a condition, and no route of scheduling offers it.",
)


@blp.route("/holds")
class Holds(MethodView):
    @route_facts("listHolds", codes=(Code.USER_NOT_FOUND,))
    @blp.arguments(HoldsQuery, location="query")
    @blp.response(200, HoldSchema(many=True))
    def get(self, params: dict[str, Any]) -> Response:
        """List holds

        By start. An API key that is bound to an organization sees the holds that keys of the organization
        took, with those of their users who are members.
        """
        hold_views = holds.listed(authentication(), _users(params))
        page, extra_fields = paging.cut_by_sort_key(params, hold_views, _sort_key)
        return json_response({"data": [hold_view(each) for each in page], **extra_fields})

    @route_facts(
        "createHold",
        replay_check=replay_access.hold,
        fails_with_provider=True,
        codes=(Code.USER_NOT_FOUND, Code.NO_CONNECTED_CALENDARS, Code.SLOT_TAKEN, Code.QUOTA_EXCEEDED),
    )
    @blp.arguments(HoldBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(201, HoldSchema)
    def post(self, body: dict[str, Any], header: dict[str, ZoneInfo]) -> Any:
        """Hold time of users

        For all users of the request, or for none. Their calendars are read past the cache; when one cannot
        be read, nothing is held. Of simultaneous requests for overlapping time of a user or of a mailbox, at
        most one succeeds. From the answer on, the time counts as one busy period on every route of
        scheduling, for everyone who books the same mailboxes, until the hold expires, is deleted, or an event
        is created by it.
        """
        # Not in the document: clients that have them in the query of slots may send them there here too.
        params = Blueprint.ARGUMENTS_PARSER.parse(HoldQuery(), request, location="query")
        key = idempotency.key()
        return hold_view(holds.take(authentication(), params | body, header["zone"], idempotency_key=key))


@blp.route("/holds/<hold_id:holdId>")
class Hold(MethodView):
    @route_facts("getHold")
    @blp.response(200, HoldSchema)
    def get(self, holdId: str) -> Any:
        """Read a hold

        An expired hold does not exist any more.
        """
        return hold_view(holds.find(authentication(), holdId))

    @route_facts("deleteHold", codes=(Code.HOLD_IN_USE,))
    @blp.response(200, SuccessSchema)
    def delete(self, holdId: str) -> dict[str, bool]:
        """Release a hold

        Its time can be taken by others at once.
        """
        holds.release(authentication(), holdId)
        return {"success": True}


def _users(params: dict[str, Any]) -> list[str]:
    user = params.get("user")
    return [*([] if user is None else [user]), *params.get("users", ())]


def _sort_key(hold: HoldView) -> paging.SortKey:
    return hold.starts, hold.id
