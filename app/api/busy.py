"""Busy periods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from flask import Response
from flask.views import MethodView

from app import accounts, asked
from app.availability import Ask, Picture, look
from app.envelope import Blueprint, json_object, whole
from app.errors import NotFound
from app.failures import Failures
from app.schemas.availability import (
    OrganizationBusyAnswer,
    OrganizationBusyQuery,
    UserBusyAnswer,
    UserBusyQuery,
    ZoneHeader,
)
from scheduling.query import busy_union
from scheduling.written import busy_json

blp = Blueprint("busy", __name__, description="When somebody is busy")


@blp.route("/users/<user_id:userId>/calendar/busy")
class UserBusy(MethodView):
    @blp.arguments(UserBusyQuery, location="query")
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UserBusyAnswer)
    def get(self, query: dict[str, Any], header: dict[str, ZoneInfo], userId: str) -> Response:
        """Busy periods of a user, over all calendars

        Merged and clipped to the range. Calendars that could not be read are in `failedCalendars`; when
        none could be read, the request fails.
        """
        start, end = asked.time_range(query, header["zone"])
        refs = accounts.of_user(userId, query)
        if not refs:
            raise NotFound(accounts.NO_CALENDARS)
        wanted = asked.wanted(query, primary_only=query["primaryOnly"])
        picture = look([Ask(refs, wanted)], start, end, asked.freshness())
        failures = Failures.of(picture)
        if failures and not failures.something_read:
            raise failures.error()
        return _answer(picture, start, end, failedCalendars=failures.calendars())


@blp.route("/organizations/<org_slug:orgSlug>/calendar/busy")
class OrganizationBusy(MethodView):
    @blp.arguments(OrganizationBusyQuery, location="query")
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, OrganizationBusyAnswer)
    def get(self, query: dict[str, Any], header: dict[str, ZoneInfo], orgSlug: str) -> Response:
        """Busy periods of all members of an organization

        A member of whom any calendar could not be read is in `failedUsers`; what was read counts.
        """
        start, end = asked.time_range(query, header["zone"])
        members = accounts.of_members(orgSlug)
        wanted = asked.wanted(query, primary_only=query["primaryOnly"])
        asks = {user: Ask(asked.of_provider(refs, query), wanted) for user, refs in members.items()}
        picture = look(list(asks.values()), start, end, asked.freshness())
        users = list(asks)
        failed = [Failures.of(picture, n).user(users[n]) for n in sorted(picture.failing())]
        return _answer(picture, start, end, failedUsers=failed)


def _answer(picture: Picture, start: int, end: int, **beside: Sequence[dict[str, Any]]) -> Response:
    data = busy_json(busy_union(picture.busy, start, end))
    return whole(json_object({"data": data, **beside}), headers=asked.age(picture))
