"""Routes for what counts for a user on every route of scheduling."""

from __future__ import annotations

from typing import Any

from flask import Response
from flask.views import MethodView

from app.accounts import availability_profiles
from app.http.authentication import caller
from app.http.responses import json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.availability_profiles import ProfileBody, ProfileSchema, profile_view
from app.schemas.error_codes import Code
from app.schemas.events import ConditionHeader
from app.schemas.records import SuccessSchema
from app.services import services
from store.sql.queries.availability_profiles import StoredProfile

blp = Blueprint(
    "availability",
    __name__,
    metric_group="users",
    description="What counts for a user on every route of scheduling, by holds and by `ifFree`: hours in a "
    "zone of their own, dates, calendars, paddings, notice and holidays. What a request states itself wins, "
    "and `profile=ignore` leaves it all out.",
)


@blp.route("/users/<user_id:userId>/availability")
class UserAvailability(MethodView):
    @route_facts("getAvailability")
    @blp.response(200, ProfileSchema)
    def get(self, userId: str) -> Response:
        """Read what counts for a user

        A field that is not stated is null. The header `ETag` changes with every change.
        """
        with services().stores.database.reading() as session:
            return _answer(availability_profiles.find(session, caller(), userId))

    @route_facts("storeAvailability", codes=(Code.AVAILABILITY_CHANGED,))
    @blp.arguments(ProfileBody)
    @blp.arguments(ConditionHeader, location="headers")
    @blp.response(200, ProfileSchema)
    def put(self, body: dict[str, Any], condition: dict[str, str | None], userId: str) -> Response:
        """State what counts for a user

        Replaces the whole profile. A field that is null or absent is not stated. With `If-Match`, only a
        profile that no other client has changed since you read it.
        """
        required = condition["etag"]
        return _answer(availability_profiles.replace_profile(caller(), userId, body, required=required))

    @route_facts("updateAvailability", codes=(Code.AVAILABILITY_CHANGED,))
    @blp.arguments(ProfileBody)
    @blp.arguments(ConditionHeader, location="headers")
    @blp.response(200, ProfileSchema)
    def patch(self, body: dict[str, Any], condition: dict[str, str | None], userId: str) -> Response:
        """Change a part of what counts for a user

        Fields that are not in the body stay unchanged; null makes a field not stated any more. `If-Match` as
        for PUT.
        """
        required = condition["etag"]
        return _answer(availability_profiles.change(caller(), userId, body, required=required))

    @route_facts("deleteAvailability", codes=(Code.AVAILABILITY_CHANGED,))
    @blp.arguments(ConditionHeader, location="headers")
    @blp.response(200, SuccessSchema)
    def delete(self, condition: dict[str, str | None], userId: str) -> dict[str, bool]:
        """Forget what counts for a user

        Then the main calendar of each account counts, at any time of the week. `If-Match` as for PUT.
        """
        availability_profiles.remove(caller(), userId, required=condition["etag"])
        return {"success": True}


def _answer(profile: StoredProfile) -> Response:
    return json_response({"data": profile_view(profile)}, 200, {"ETag": availability_profiles.etag(profile)})
