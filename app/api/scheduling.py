"""Routes for available slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from flask import Response
from flask.views import MethodView

from app.availability import parameters, slot_search
from app.availability.failures import Failures, missing_entry
from app.availability.parameters import ANY_HOURS, RequestedHours
from app.availability.result import BusyResult
from app.availability.slot_search import Search
from app.http.authentication import authentication
from app.http.parsing import freshness
from app.http.responses import json_array, json_object, json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.availability import (
    OrganizationSlotsQuery,
    RequiredSchedulesBody,
    UsersBody,
    UserSlotsQuery,
    UsersSlotsQuery,
    ZoneHeader,
)
from app.schemas.availability_answers import OrganizationSlotsAnswer, UserSlotsAnswer, UsersSlotsAnswer
from app.schemas.error_codes import Code
from app.schemas.parameters import LEAST_BUSY
from scheduling.json_render import slots_json
from scheduling.query import Query, least_busy_first, slots

blp = Blueprint(
    "scheduling",
    __name__,
    metric_group="scheduling",
    description="Available slots of one user, of several users, and of the members of an organization.",
)


@blp.route("/users/<user_id:userId>/scheduling")
class UserScheduling(MethodView):
    @route_facts("listUserSlots", sends_age=True, fails_with_provider=True)
    @blp.arguments(UserSlotsQuery, location="query")
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UserSlotsAnswer)
    def get(self, params: dict[str, Any], header: dict[str, ZoneInfo], userId: str) -> Response:
        """Slots of a user

        Read from the main calendar of each connected account, unless `calendarIds` names others. A
        calendar that cannot be read fails the request, unless `onFailure=partial`.
        """
        return _one_user(params, header["zone"], ANY_HOURS, userId)

    @route_facts("listUserSlotsInSchedules", writes=False, sends_age=True, fails_with_provider=True)
    @blp.arguments(UserSlotsQuery, location="query")
    @blp.arguments(RequiredSchedulesBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UserSlotsAnswer)
    def post(
        self, params: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo], userId: str
    ) -> Response:
        """Slots of a user inside weekly schedules

        As by GET. A slot lies inside the union of the windows in `schedules`; `earliestTimeEachDay` and
        `latestTimeEachDay` narrow it further. `overrides` replaces the windows of single dates.
        """
        return _one_user(params, header["zone"], RequestedHours.of(body), userId)


@blp.route("/users/scheduling")
class UsersScheduling(MethodView):
    @route_facts("listSlotsOfUsers", writes=False, sends_age=True)
    @blp.arguments(UsersSlotsQuery, location="query")
    @blp.arguments(UsersBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UsersSlotsAnswer)
    def post(self, params: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo]) -> Response:
        """Slots of several users

        One entry for each user, in the order of the request. An entry without an answer says why and
        never carries slots.
        """
        return _several_users(params, header["zone"], body)


@blp.route("/organizations/<org_slug:orgSlug>/scheduling")
class OrganizationScheduling(MethodView):
    @route_facts("listOrganizationSlots", sends_age=True, codes=(Code.ORGANIZATION_HAS_NO_MEMBERS,))
    @blp.arguments(OrganizationSlotsQuery, location="query")
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, OrganizationSlotsAnswer)
    def get(self, params: dict[str, Any], header: dict[str, ZoneInfo], orgSlug: str) -> Response:
        """Slots of every member of an organization

        A member with a calendar that could not be read has no slots and is in `failedUsers`.
        """
        return _members(params, header["zone"], ANY_HOURS, orgSlug)

    @route_facts(
        "listOrganizationSlotsInSchedules",
        writes=False,
        sends_age=True,
        codes=(Code.ORGANIZATION_HAS_NO_MEMBERS,),
    )
    @blp.arguments(OrganizationSlotsQuery, location="query")
    @blp.arguments(RequiredSchedulesBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, OrganizationSlotsAnswer)
    def post(
        self, params: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo], orgSlug: str
    ) -> Response:
        """Slots of an organization's members inside weekly schedules

        As by GET, with the `schedules` and the `overrides` of the request for one user.
        """
        return _members(params, header["zone"], RequestedHours.of(body), orgSlug)


def _members(params: dict[str, Any], zone: ZoneInfo, hours: RequestedHours, slug: str) -> Response:
    members = slot_search.of_members(authentication(), params, zone, hours, slug, freshness())
    query, users, result = members.query, members.connected, members.result
    failing = sorted(result.failing())
    readable = np.delete(np.arange(len(users)), failing)
    busy = result.of_users(readable)
    free = slots(query, *busy, members.own_of(readable.tolist()))
    if params["order"] == LEAST_BUSY:
        free = least_busy_first(free, *busy, parameters.AROUND)
    data = {
        "availableSlots": slots_json(free, [users[n] for n in readable.tolist()]),
        "options": members.options,
    }
    failed = [Failures.of(result, n).as_failed_user(users[n]) for n in failing]
    return _answer(json_object(data), result, failedUsers=failed)


def _one_user(params: dict[str, Any], zone: ZoneInfo, hours: RequestedHours, user: str) -> Response:
    search, result = slot_search.of_user(authentication(), params, zone, hours, user, freshness())
    failures = Failures.of(result)
    partial = params["onFailure"] == "partial"
    if failures and not (partial and failures.something_read):
        raise failures.error()
    return json_response(
        slots_of_user(search.query, result, failures, search.options), headers=parameters.age_header(result)
    )


def slots_of_user(
    query: Query, result: BusyResult, failures: Failures, options: Mapping[str, Any]
) -> Iterator[bytes]:
    """The body of the answer for one user, in pieces."""
    data = {"availableSlots": slots_json(slots(query, *result.of_user(0))), "options": options}
    return json_object({"data": json_object(data), "failedCalendars": failures.calendars()})


def _several_users(params: dict[str, Any], zone: ZoneInfo, body: dict[str, Any]) -> Response:
    users = slot_search.of_users(authentication(), params, zone, body, freshness())
    # Streamed: the entries are made after the request context has ended and must not use it.
    entries = (
        _entry(search, users.result, n, exists=search.user in users.existing)
        for n, search in enumerate(users.searches)
    )
    return _answer(json_array(entries), users.result)


def _entry(search: Search, result: BusyResult, index: int, *, exists: bool) -> Iterator[bytes]:
    """One user's entry, as JSON."""
    failures = Failures.of(result, index)
    if failures:
        return json_object(failures.as_error_entry(search.user))
    indexes = result.target_indexes(index)
    if not indexes:
        return json_object(missing_entry(search.user, exists=exists))
    free = slots(search.query, *result.of_user(index))
    return json_object(
        {
            "userId": search.user,
            "status": "ok",
            "availableSlots": slots_json(free),
            "options": search.options,
            "calendarIds": [result.targets[n].shown for n in indexes],
            "schedules": parameters.echoed_schedules(search.hours.schedules or ()),
            "failedCalendars": [],
        }
    )


def _answer(data: Iterator[bytes], result: BusyResult, **extra_fields: Sequence[dict[str, Any]]) -> Response:
    return json_response(json_object({"data": data, **extra_fields}), headers=parameters.age_header(result))
