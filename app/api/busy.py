"""Routes for busy periods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from flask import Response
from flask.views import MethodView

from app.accounts import connections
from app.api import cache_control
from app.availability import parameters
from app.availability.failures import Failures
from app.availability.lookup import look_up
from app.availability.result import BusyResult
from app.availability.selection import CalendarRequest
from app.http.api_key_hook import authentication
from app.http.blueprint import Blueprint
from app.http.error_codes import Code
from app.http.errors import NotFound
from app.http.responses import json_object, json_response
from app.http.route_facts import route_facts
from app.schemas.availability import OrganizationBusyQuery, UserBusyQuery, ZoneHeader
from app.schemas.availability_answers import OrganizationBusyAnswer, UserBusyAnswer
from scheduling.json_render import busy_json
from scheduling.query import busy_union

blp = Blueprint(
    "busy",
    __name__,
    metric_group="busy",
    description="When a user, or at least one member of an organization, is busy. Calendars that could not "
    "be read are named beside the answer and never look free.",
)


@blp.route("/users/<user_id:userId>/calendar/busy")
class UserBusy(MethodView):
    @route_facts("listUserBusyPeriods", verifies_version=True, sends_age=True, fails_with_provider=True)
    @blp.arguments(UserBusyQuery, location="query")
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UserBusyAnswer)
    def get(self, params: dict[str, Any], header: dict[str, ZoneInfo], userId: str) -> Response:
        """Busy periods of a user, over all calendars

        Merged and clipped to the range. Calendars that could not be read are in `failedCalendars`; when
        none could be read, the request fails.
        """
        start, end = parameters.time_range(params, header["zone"])
        refs = connections.of_user(authentication(), userId, params)
        if not refs:
            raise NotFound(connections.NO_CALENDARS, Code.NO_CONNECTED_CALENDARS)
        selector = parameters.selector(params, primary_only=params["primaryOnly"])
        result = look_up(
            authentication(),
            [CalendarRequest(refs, selector)],
            start,
            end,
            cache_control.freshness(),
            with_held=False,
        )
        failures = Failures.of(result)
        if failures and not failures.something_read:
            raise failures.error()
        return _answer(result, start, end, failedCalendars=failures.calendars())


@blp.route("/organizations/<org_slug:orgSlug>/calendar/busy")
class OrganizationBusy(MethodView):
    @route_facts("listOrganizationBusyPeriods", verifies_version=True, sends_age=True)
    @blp.arguments(OrganizationBusyQuery, location="query")
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, OrganizationBusyAnswer)
    def get(self, params: dict[str, Any], header: dict[str, ZoneInfo], orgSlug: str) -> Response:
        """Busy periods of all members of an organization

        A member with a calendar that could not be read is in `failedUsers`; the calendars that were read
        count.
        """
        start, end = parameters.time_range(params, header["zone"])
        members = connections.of_members(authentication(), orgSlug)
        selector = parameters.selector(params, primary_only=params["primaryOnly"])
        calendar_requests = {
            user: CalendarRequest(parameters.of_provider(refs, params), selector)
            for user, refs in members.items()
        }
        result = look_up(
            authentication(),
            list(calendar_requests.values()),
            start,
            end,
            cache_control.freshness(),
            with_held=False,
        )
        users = list(calendar_requests)
        failed = [Failures.of(result, n).as_failed_user(users[n]) for n in sorted(result.failing())]
        return _answer(result, start, end, failedUsers=failed)


def _answer(result: BusyResult, start: int, end: int, **extra_fields: Sequence[dict[str, Any]]) -> Response:
    data = busy_json(busy_union(result.busy, start, end))
    return json_response(json_object({"data": data, **extra_fields}), headers=parameters.age_header(result))
