"""Routes for the slots that groups of users share."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from flask import Response
from flask.views import MethodView

from app.api.explain import explained_fields, span_fields
from app.availability import groups, parameters
from app.availability.groups import ExplainedGroup, look_up_groups
from app.availability.parameters import RequestedHours
from app.http.authentication import authentication
from app.http.parsing import freshness
from app.http.responses import json_object, json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.availability import ZoneHeader
from app.schemas.error_codes import Code
from app.schemas.groups import (
    GroupExplainedAnswer,
    GroupMomentQuery,
    GroupsBody,
    GroupSlotsAnswer,
    GroupSlotsQuery,
)
from scheduling.json_render import shared_slots_json, timestamp

blp = Blueprint(
    "groups",
    __name__,
    metric_group="scheduling",
    description="When enough members of each group are free together.",
)


@blp.route("/scheduling")
class GroupScheduling(MethodView):
    @route_facts(
        "listSharedSlots",
        writes=False,
        sends_age=True,
        codes=(Code.ORGANIZATION_NOT_FOUND, Code.ORGANIZATION_HAS_NO_MEMBERS),
    )
    @blp.arguments(GroupSlotsQuery, location="query")
    @blp.arguments(GroupsBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, GroupSlotsAnswer)
    def post(self, params: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo]) -> Response:
        """Slots that groups share

        A slot is offered when in each group at least `required` users are free for the whole of it. A user
        who cannot be read is not free, and is in `failedUsers`: a group that requires all then has no slots,
        unless `onFailure=partial`.
        """
        hours = RequestedHours.of(body)
        query = parameters.slot_query(params, header["zone"], hours)
        availability = look_up_groups(authentication(), params, query, body, freshness())
        data = {
            "availableSlots": shared_slots_json(*availability.shared_slots(query)),
            "options": parameters.echoed_options(params, query, hours, profiled=bool(availability.people)),
        }
        answer = {"data": json_object(data), "failedUsers": availability.failed_users()}
        return json_response(json_object(answer), headers=parameters.age_header(availability.result))


@blp.route("/scheduling/explain")
class GroupExplanation(MethodView):
    @route_facts(
        "explainSharedMoment",
        writes=False,
        sends_age=True,
        codes=(Code.ORGANIZATION_NOT_FOUND, Code.ORGANIZATION_HAS_NO_MEMBERS),
    )
    @blp.arguments(GroupMomentQuery, location="query")
    @blp.arguments(GroupsBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, GroupExplainedAnswer)
    def post(self, params: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo]) -> Response:
        """Why a moment is, or is not, in a slot that groups share

        Takes the body and the parameters of the shared slots, and `at`. For the slot around the moment, each
        group has its free users, and its missing users with the reason.
        """
        hours = RequestedHours.of(body)
        query = parameters.slot_query(params, header["zone"], hours)
        at = params["at"].milliseconds(header["zone"])
        availability = look_up_groups(authentication(), params, query, body, freshness())
        explained = groups.explain_groups(availability, query, at)
        data = {
            "at": timestamp(at),
            "offered": explained.offered,
            "reason": explained.reason,
            "sentence": explained.sentence,
            "slot": span_fields(explained.slot),
            "groups": [_group(group) for group in explained.groups],
            "options": parameters.echoed_options(params, query, hours, profiled=bool(availability.people)),
        }
        answer = {"data": data, "failedUsers": availability.failed_users()}
        return json_response(answer, headers=parameters.age_header(availability.result))


def _group(group: ExplainedGroup) -> dict[str, Any]:
    return {
        "required": group.required,
        "free": list(group.free),
        "missing": [
            {"userId": user, "at": timestamp(at), **explained_fields(explained)}
            for user, at, explained in group.missing
        ],
    }
