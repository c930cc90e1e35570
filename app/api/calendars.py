"""Calendars."""

from __future__ import annotations

from typing import Any

from flask import Response
from flask.views import MethodView

from app import accounts, paging
from app.envelope import Blueprint, whole
from app.failures import Failures, of_account
from app.schemas.calendars import CalendarsAnswer, CalendarsQuery, calendar_view
from app.targets import refusal
from providers.base import Calendar
from providers.scopes import Operation
from workers.jobs import Reply, ShowCalendars
from workers.queues import Queue

blp = Blueprint("calendars", __name__, description="The calendars of a user")


@blp.route("/users/<user_id:userId>/calendar")
class Calendars(MethodView):
    @blp.arguments(CalendarsQuery, location="query")
    @blp.response(200, CalendarsAnswer)
    def get(self, query: dict[str, Any], userId: str) -> Response:
        """List a user's calendars

        Over all accounts. An account that could not be read is named in `failedCalendars`; when none could
        be read, the request fails.
        """
        refs = accounts.of_user(userId, query)
        refused = {ref.id: failed for ref in refs if (failed := refusal(ref, Operation.LIST_CALENDARS))}
        jobs = {ref.id: ShowCalendars(ref.id) for ref in refs if ref.id not in refused}
        replies = {each: Reply(failed=failed) for each, failed in refused.items()}
        replies |= accounts.gather(jobs, Queue.READS, deadline=accounts.deadline())
        failures = Failures(
            [of_account(ref, failed) for ref in refs if (failed := replies[ref.id].failed)],
            something_read=any(reply.failed is None for reply in replies.values()),
        )
        if failures and not failures.something_read:
            raise failures.error()
        calendars = sorted((each for ref in refs for each in replies[ref.id].calendars), key=_place)
        page, beside = paging.cut_by_place(query, calendars, _place)
        named = {"failedCalendars": failures.calendars()} if failures else {}
        return whole({"data": [calendar_view(each) for each in page], **named, **beside})


def _place(calendar: Calendar) -> paging.Place:
    """Google's calendars first, of each account the main one, then by name."""
    return calendar.provider, not calendar.primary, calendar.subject, calendar.id
