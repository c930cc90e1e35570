"""Routes for calendars."""

from __future__ import annotations

from typing import Any

from flask import Response
from flask.views import MethodView

from app.availability import connections
from app.events import lists
from app.http import paging
from app.http.authentication import authentication
from app.http.responses import json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.calendars import CalendarsAnswer, CalendarsQuery, calendar_view

blp = Blueprint(
    "calendars",
    __name__,
    metric_group="calendars",
    description="The calendars of a user, over all accounts.",
)


@blp.route("/users/<user_id:userId>/calendar")
class Calendars(MethodView):
    @route_facts("listCalendars", fails_with_provider=True)
    @blp.arguments(CalendarsQuery, location="query")
    @blp.response(200, CalendarsAnswer)
    def get(self, params: dict[str, Any], userId: str) -> Response:
        """List a user's calendars

        Over all accounts. An account that could not be read is named in `failedCalendars`; when none could
        be read, the request fails.
        """
        calendar_list = lists.find_calendars(connections.of_user(authentication(), userId, params))
        failures = calendar_list.failures
        if failures and not failures.something_read:
            raise failures.error()
        page, extra_fields = paging.cut_by_sort_key(params, calendar_list.calendars, lists.calendar_sort_key)
        data = [calendar_view(calendar, ref.public_id) for ref, calendar in page]
        return json_response({"data": data, "failedCalendars": failures.calendars(), **extra_fields})
