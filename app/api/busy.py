"""Routes for busy periods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

from flask import Response
from flask.views import MethodView

from app.availability import connections, parameters
from app.availability.failures import Failures, missing_entry
from app.availability.lookup import look_up, look_up_users
from app.availability.result import BusyResult
from app.availability.selection import CalendarRequest
from app.http.authentication import authentication
from app.http.errors import NotFound
from app.http.parsing import freshness
from app.http.responses import json_array, json_object, json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.availability import (
    BusyUsersBody,
    OrganizationBusyQuery,
    UserBusyQuery,
    UsersBusyQuery,
    ZoneHeader,
)
from app.schemas.availability_answers import OrganizationBusyAnswer, UserBusyAnswer, UsersBusyAnswer
from app.schemas.error_codes import Code
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
    @route_facts("listUserBusyPeriods", sends_age=True, fails_with_provider=True)
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
            freshness(),
            with_held=False,
        )
        failures = Failures.of(result)
        if failures and not failures.something_read:
            raise failures.error()
        return _answer(result, start, end, failedCalendars=failures.calendars())


@blp.route("/users/calendar/busy")
class UsersBusy(MethodView):
    @route_facts("listBusyPeriodsOfUsers", writes=False, sends_age=True)
    @blp.arguments(UsersBusyQuery, location="query")
    @blp.arguments(BusyUsersBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UsersBusyAnswer)
    def post(self, params: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo]) -> Response:
        """Busy periods of several users

        One entry for each user, in the order of the request, over all calendars of the user or those of its
        `calendarIds`. Calendars that could not be read are in its `failedCalendars`; when none could be read,
        the entry says why and carries no busy periods.
        """
        span = parameters.time_range(params, header["zone"])
        wanted = body["users"]
        existing, result = look_up_users(authentication(), params, wanted, span, freshness(), with_held=False)
        entries = (
            _entry(user["id"], user["id"] in existing, result, n, span) for n, user in enumerate(wanted)
        )
        return json_response(
            json_object({"data": json_array(entries)}), headers=parameters.age_header(result)
        )


@blp.route("/organizations/<org_slug:orgSlug>/calendar/busy")
class OrganizationBusy(MethodView):
    @route_facts("listOrganizationBusyPeriods", sends_age=True)
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
        connections.require_chosen(params, chain.from_iterable(members.values()))
        selector = parameters.selector(params, primary_only=params["primaryOnly"])
        calendar_requests = {
            user: CalendarRequest(parameters.chosen(refs, params), selector) for user, refs in members.items()
        }
        result = look_up(
            authentication(),
            list(calendar_requests.values()),
            start,
            end,
            freshness(),
            with_held=False,
        )
        users = list(calendar_requests)
        failed = [Failures.of(result, n).as_failed_user(users[n]) for n in sorted(result.failing())]
        return _answer(result, start, end, failedUsers=failed)


def _entry(user: str, exists: bool, result: BusyResult, index: int, span: tuple[int, int]) -> Iterator[bytes]:
    """One user's entry, as JSON."""
    failures = Failures.of(result, index)
    if failures and not failures.something_read:
        return json_object(failures.as_error_entry(user))
    indexes = result.target_indexes(index)
    if not indexes:
        return json_object(missing_entry(user, exists=exists))
    calendars, _, _ = result.of_user(index)
    return json_object(
        {
            "userId": user,
            "status": "ok",
            "busy": busy_json(busy_union(calendars, *span)),
            "calendarIds": [result.targets[n].shown for n in indexes],
            "failedCalendars": failures.calendars(),
        }
    )


def _answer(result: BusyResult, start: int, end: int, **extra_fields: Sequence[dict[str, Any]]) -> Response:
    data = busy_json(busy_union(result.busy, start, end))
    return json_response(json_object({"data": data, **extra_fields}), headers=parameters.age_header(result))
