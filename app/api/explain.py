"""Routes that explain why a moment is, or is not, offered."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from flask import Response
from flask.views import MethodView

from app.availability import explanation, parameters, slot_search
from app.availability.explanation import Blocking, HeldBlocking, UserVerdict
from app.availability.failures import Failures, missing_entry
from app.availability.parameters import ANY_HOURS, RequestedHours
from app.http.authentication import authentication
from app.http.parsing import freshness
from app.http.responses import json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.availability import RequiredSchedulesBody, UsersBody, ZoneHeader
from app.schemas.error_codes import Code
from app.schemas.explain import (
    OrganizationExplainedAnswer,
    OrganizationMomentQuery,
    UserExplainedAnswer,
    UserMomentQuery,
    UsersExplainedAnswer,
    UsersMomentQuery,
)
from scheduling.explain import Covering, Explanation, Pair
from scheduling.json_render import timestamp

blp = Blueprint(
    "explain",
    __name__,
    metric_group="scheduling",
    description="Why a moment is, or is not, offered: the routes of scheduling with `/explain` behind them, "
    "and `at`.",
)


@blp.route("/users/<user_id:userId>/scheduling/explain")
class UserExplanation(MethodView):
    @route_facts("explainUserMoment", sends_age=True)
    @blp.arguments(UserMomentQuery, location="query")
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UserExplainedAnswer)
    def get(self, params: dict[str, Any], header: dict[str, ZoneInfo], userId: str) -> Response:
        """Why a moment of a user is, or is not, offered

        Takes the parameters of the user's slots, and `at`. A calendar that cannot be read does not fail the
        request: the reason is `calendarUnread`. With `onFailure=partial` the calendars that were read count.
        """
        return _one_user(params, header["zone"], ANY_HOURS, userId)

    @route_facts("explainUserMomentInSchedules", writes=False, sends_age=True)
    @blp.arguments(UserMomentQuery, location="query")
    @blp.arguments(RequiredSchedulesBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UserExplainedAnswer)
    def post(
        self, params: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo], userId: str
    ) -> Response:
        """Why a moment is, or is not, inside weekly schedules

        As by GET, with the `schedules` and the `overrides` of the request for slots.
        """
        return _one_user(params, header["zone"], RequestedHours.of(body), userId)


@blp.route("/users/scheduling/explain")
class UsersExplanation(MethodView):
    @route_facts("explainMomentOfUsers", writes=False, sends_age=True)
    @blp.arguments(UsersMomentQuery, location="query")
    @blp.arguments(UsersBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UsersExplainedAnswer)
    def post(self, params: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo]) -> Response:
        """Why a moment of several users is, or is not, offered

        Takes the body and the parameters of the slots of several users, and `at`. One entry for each user, in
        the order of the request. A calendar that cannot be read gives the reason `calendarUnread`; an unknown
        user, or one without connected calendars, has an entry with an error.
        """
        at = params["at"].milliseconds(header["zone"])
        users = slot_search.of_users(authentication(), params, header["zone"], body, freshness())
        result = users.result
        entries = []
        for n, search in enumerate(users.searches):
            failures = Failures.of(result, n)
            if not failures and not result.target_indexes(n):
                entries.append(missing_entry(search.user, exists=search.user in users.existing))
                continue
            explained = explanation.explain_user(result, search.query, at, n, person=search.person)
            entries.append(
                {
                    "userId": search.user,
                    "status": "ok",
                    "at": timestamp(at),
                    **explained_fields(explained),
                    "options": search.options,
                    "failedCalendars": failures.calendars(),
                }
            )
        return json_response({"data": entries}, headers=parameters.age_header(result))


@blp.route("/organizations/<org_slug:orgSlug>/scheduling/explain")
class OrganizationExplanation(MethodView):
    @route_facts("explainOrganizationMoment", sends_age=True, codes=(Code.ORGANIZATION_HAS_NO_MEMBERS,))
    @blp.arguments(OrganizationMomentQuery, location="query")
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, OrganizationExplainedAnswer)
    def get(self, params: dict[str, Any], header: dict[str, ZoneInfo], orgSlug: str) -> Response:
        """Why a moment of each member is, or is not, offered

        There is an entry for every member, by user id; a member without connected calendars has the reason
        `noCalendars`.
        """
        at, zone = params["at"].milliseconds(header["zone"]), header["zone"]
        members = slot_search.of_members(authentication(), params, zone, ANY_HOURS, orgSlug, freshness())
        query, users, result = members.query, members.connected, members.result
        explained_users = explanation.explain_all_users(result, query, at, members.own, members.people)
        by_user = dict(zip(users, explained_users, strict=True))
        no_calendars = explanation.explain_no_calendars(query, at)
        verdicts = {user: by_user.get(user, no_calendars) for user in members.all_users}
        data = {
            "at": timestamp(at),
            "offeredBy": [user for user, explained in verdicts.items() if explained.offered],
            "members": [
                {"userId": user, **explained_fields(explained)} for user, explained in verdicts.items()
            ],
            "options": members.options,
        }
        failed = [Failures.of(result, n).as_failed_user(users[n]) for n in sorted(result.failing())]
        return json_response({"data": data, "failedUsers": failed}, headers=parameters.age_header(result))


def _one_user(params: dict[str, Any], zone: ZoneInfo, hours: RequestedHours, user: str) -> Response:
    at, partial = params["at"].milliseconds(zone), params["onFailure"] == "partial"
    search, result = slot_search.of_user(authentication(), params, zone, hours, user, freshness())
    explained = explanation.explain_user(result, search.query, at, partial=partial, person=search.person)
    data = {"at": timestamp(at), **explained_fields(explained), "options": search.options}
    body = {"data": data, "failedCalendars": Failures.of(result).calendars()}
    return json_response(body, headers=parameters.age_header(result))


def explained_fields(explained: UserVerdict) -> dict[str, Any]:
    """The part of the response about one user."""
    return {
        "offered": explained.offered,
        "reason": explained.reason,
        "sentence": explained.sentence,
        **(_UNKNOWN if explained.facts is None else _facts(explained.facts)),
        "blockedBy": [_blocking(each) for each in explained.blocking],
        **({"heldBy": [_held(each) for each in explained.held]} if explained.held else {}),
    }


_UNKNOWN = {
    "slot": None,
    "startsSlot": False,
    "free": None,
    "window": None,
    "nextSlot": None,
    "previousSlot": None,
}


def _facts(facts: Explanation) -> dict[str, Any]:
    return {
        "slot": span_fields(facts.slot),
        "startsSlot": facts.starts_slot,
        "free": span_fields(facts.free),
        "window": span_fields(facts.window),
        "nextSlot": span_fields(facts.next_slot),
        "previousSlot": span_fields(facts.previous_slot),
    }


def span_fields(pair: Pair | None) -> dict[str, str] | None:
    return None if pair is None else {"start": timestamp(pair[0]), "end": timestamp(pair[1])}


def _blocking(blocking: Blocking) -> dict[str, Any]:
    target, period = blocking
    return {
        "calendarId": target.shown,
        "provider": target.connection.provider,
        "connectionId": target.connection.public_id,
        "email": target.connection.email,
        **_period(period),
    }


def _held(held: HeldBlocking) -> dict[str, Any]:
    return {**_period(held.period), "expiresAt": timestamp(held.expires_at)}


def _period(period: Covering) -> dict[str, str]:
    return {
        "start": timestamp(period.start),
        "end": timestamp(period.end),
        "paddedStart": timestamp(period.padded_start),
        "paddedEnd": timestamp(period.padded_end),
    }
