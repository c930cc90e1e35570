"""Available slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
from flask import Response
from flask.views import MethodView

from app import asked
from app.auth import within
from app.availability import Ask, Picture, look
from app.envelope import Blueprint, json_object, whole
from app.errors import NotFound
from app.failures import Failures
from app.schemas.availability import (
    OrganizationSlotsAnswer,
    OrganizationSlotsQuery,
    RequiredSchedulesBody,
    SlotsQuery,
    UserDailySlotsQuery,
    UsersBody,
    UserSlotsAnswer,
    UserSlotsQuery,
    UsersSlotsAnswer,
    ZoneHeader,
)
from app.services import services
from scheduling.intervals import Groups
from scheduling.query import Query, slots
from scheduling.windows import Window
from scheduling.written import slots_json
from store.queries import connections, organizations
from store.queries.connections import ConnectionRef

blp = Blueprint("scheduling", __name__, description="When somebody is free for a slot")


@blp.route("/users/<user_id:userId>/scheduling")
class UserScheduling(MethodView):
    @blp.arguments(UserDailySlotsQuery, location="query")
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UserSlotsAnswer)
    def get(self, query: dict[str, Any], header: dict[str, ZoneInfo], userId: str) -> Response:
        """Slots of a user

        Read from the main calendar of each connected account, unless `calendarIds` names others. A
        calendar that cannot be read fails the request, unless `onFailure=partial`.
        """
        return _one_user(query, header["zone"], asked.daily_window(query), userId)

    @blp.arguments(UserSlotsQuery, location="query")
    @blp.arguments(RequiredSchedulesBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UserSlotsAnswer)
    def post(
        self, query: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo], userId: str
    ) -> Response:
        """Slots of a user inside weekly schedules"""
        return _one_user(query, header["zone"], asked.weekly_windows(body["schedules"]), userId)


@blp.route("/users/scheduling")
class UsersScheduling(MethodView):
    @blp.arguments(SlotsQuery, location="query")
    @blp.arguments(UsersBody)
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, UsersSlotsAnswer)
    def post(self, query: dict[str, Any], body: dict[str, Any], header: dict[str, ZoneInfo]) -> Response:
        """Slots of several users

        One entry for each user, in the order of the request. An entry without an answer says why and
        never carries slots.
        """
        return _several_users(query, header["zone"], body)


@blp.route("/organizations/<org_slug:orgSlug>/scheduling")
class OrganizationScheduling(MethodView):
    @blp.arguments(OrganizationSlotsQuery, location="query")
    @blp.arguments(ZoneHeader, location="headers")
    @blp.response(200, OrganizationSlotsAnswer)
    def get(self, query: dict[str, Any], header: dict[str, ZoneInfo], orgSlug: str) -> Response:
        """Slots of every member of an organization

        A member of whom any calendar could not be read has no slots and is in `failedUsers`.
        """
        question = asked.slot_query(query, header["zone"], asked.daily_window(query))
        wanted = asked.wanted(query, primary_only=True)
        asks = {
            user: Ask(refs, wanted)
            for user, connected in _members(orgSlug).items()
            if (refs := asked.of_provider(connected, query))
        }
        asked.check_size({question: len(asks)})
        pictures = look(list(asks.values()), *question.busy_range(), asked.freshness())
        failures = {user: Failures.of(picture) for user, picture in zip(asks, pictures, strict=True)}
        readable = [user for user, each in failures.items() if not each]
        free = slots(
            question,
            *_calendars([p for p, each in zip(pictures, failures.values(), strict=True) if not each]),
        )
        data = {"availableSlots": slots_json(free, readable), "options": asked.options(query, question)}
        failed = [each.user(user) for user, each in failures.items() if each]
        return _answer(json_object(data), pictures, failedUsers=failed)


def _members(slug: str) -> dict[str, list[ConnectionRef]]:
    """The connections of every member, by user, in the order of the answer."""
    with services().stores.database.reading() as session:
        found = organizations.ids(session, [slug], within=within())
        if not found:
            raise NotFound("Organization not found")
        members = connections.of_members(session, found[slug])
    if not members:
        raise NotFound("Organization has no members")
    return dict(sorted(members.items()))


def _one_user(
    query: dict[str, Any], zone: ZoneInfo, windows: tuple[Window, ...] | None, user: str
) -> Response:
    question = asked.slot_query(query, zone, windows)
    asked.check_size({question: 1})
    with services().stores.database.reading() as session:
        refs = connections.of_user(session, user, within=within())
    if refs is None:
        raise NotFound("User not found")
    refs = asked.of_provider(refs, query)
    if not refs:
        raise NotFound("User has no connected calendars")
    ask = Ask(refs, asked.wanted(query, primary_only=True))
    pictures = look([ask], *question.busy_range(), asked.freshness())
    failures = Failures.of(pictures[0])
    partial = query["onFailure"] == "partial"
    if failures and not (partial and failures.something_read):
        raise failures.error()
    beside = {"failedCalendars": failures.calendars()} if partial else {}
    free = slots(question, *_calendars(pictures))
    data = {"availableSlots": slots_json(free), "options": asked.options(query, question)}
    return _answer(json_object(data), pictures, **beside)


def _several_users(query: dict[str, Any], zone: ZoneInfo, body: dict[str, Any]) -> Response:
    wanted_users = body["users"]
    schedules = [_first_given(user["schedules"], body["schedules"]) for user in wanted_users]
    questions = [asked.slot_query(query, zone, _windows(each)) for each in schedules]
    asked.check_size(Counter(questions))
    with services().stores.database.reading() as session:
        known = connections.of_users(session, {user["id"] for user in wanted_users}, within=within())
    asks = [
        Ask(asked.of_provider(known.get(user["id"], []), query), asked.wanted(user, primary_only=True))
        for user in wanted_users
    ]
    pictures = look(asks, *questions[0].busy_range(), asked.freshness()) if questions else []
    entries = [
        _entry(user["id"], user["id"] in known, picture, query, question, windows)
        for user, picture, question, windows in zip(wanted_users, pictures, questions, schedules, strict=True)
    ]
    return _answer(b"[" + b",".join(entries) + b"]", pictures)


def _entry(
    user: str,
    exists: bool,
    picture: Picture,
    query: dict[str, Any],
    question: Query,
    schedules: Sequence[Mapping[str, Any]] | None,
) -> bytes:
    """One user's entry, as JSON."""
    failures = Failures.of(picture)
    if failures:
        return json_object({"userId": user, "status": "error", **failures.entry()})
    if not picture.calendars:
        error = "User has no connected calendars" if exists else "User not found"
        return json_object({"userId": user, "status": "error", "error": error, "failedCalendars": []})
    free = slots(question, *_calendars([picture]))
    return json_object(
        {
            "userId": user,
            "status": "ok",
            "availableSlots": slots_json(free),
            "options": asked.options(query, question),
            "calendarIds": [target.shown for target, *_ in picture.calendars],
            "schedules": asked.echoed_schedules(schedules or ()),
            "failedCalendars": [],
        }
    )


def _windows(schedules: Sequence[Mapping[str, Any]] | None) -> tuple[Window, ...] | None:
    return None if schedules is None else asked.weekly_windows(schedules)


def _first_given(*values: Sequence[Mapping[str, Any]] | None) -> Sequence[Mapping[str, Any]] | None:
    return next((value for value in values if value is not None), None)


def _calendars(pictures: Sequence[Picture]) -> tuple[Groups, npt.NDArray[np.int64], int]:
    """The engine's arguments: everything busy, the member of each calendar, the number of members."""
    read = [picture.read() for picture in pictures]
    member_of = np.repeat(np.arange(len(read)), [len(calendars) for calendars in read])
    return Groups.pack([busy for calendars in read for busy in calendars]), member_of, len(read)


def _answer(data: bytes, pictures: Sequence[Picture], **beside: Sequence[dict[str, Any]]) -> Response:
    return whole(json_object({"data": data, **beside}), headers=asked.age(pictures))
