"""Busy periods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from flask import Response
from flask.views import MethodView

from app import asked
from app.auth import within
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
from app.services import services
from scheduling.intervals import Groups
from scheduling.query import busy_union
from scheduling.written import busy_json
from store.queries import connections, organizations

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
        with services().stores.database.reading() as session:
            refs = connections.of_user(session, userId, within=within())
        if refs is None:
            raise NotFound("User not found")
        refs = asked.of_provider(refs, query)
        if not refs:
            raise NotFound("User has no connected calendars")
        wanted = asked.wanted(query, primary_only=query["primaryOnly"])
        pictures = look([Ask(refs, wanted)], start, end, asked.freshness())
        failures = Failures.of(pictures[0])
        if failures and not failures.something_read:
            raise failures.error()
        return _answer(pictures, start, end, failedCalendars=failures.calendars())


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
        with services().stores.database.reading() as session:
            found = organizations.ids(session, [orgSlug], within=within())
            if not found:
                raise NotFound("Organization not found")
            members = connections.of_members(session, found[orgSlug])
        wanted = asked.wanted(query, primary_only=query["primaryOnly"])
        asks = {user: Ask(asked.of_provider(refs, query), wanted) for user, refs in sorted(members.items())}
        pictures = look(list(asks.values()), start, end, asked.freshness())
        failures = {user: Failures.of(picture) for user, picture in zip(asks, pictures, strict=True)}
        failed = [each.user(user) for user, each in failures.items() if each]
        return _answer(pictures, start, end, failedUsers=failed)


def _answer(
    pictures: Sequence[Picture], start: int, end: int, **beside: Sequence[dict[str, Any]]
) -> Response:
    busy = Groups.pack([each for picture in pictures for each in picture.read()])
    data = busy_json(busy_union(busy, start, end))
    return whole(json_object({"data": data, **beside}), headers=asked.age(pictures))
