"""Why a moment is, or is not, offered to somebody whom the explorer shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import connections
from app.availability import explanation, explanation_text
from app.availability.explanation import Explained
from app.availability.freshness import Freshness
from app.availability.selection import CalendarSelector
from app.dashboard.blueprint import blp, page
from app.dashboard.explorer import form
from app.dashboard.explorer.data import NOT_KNOWN, Shown, shown
from app.dashboard.explorer.form import Question
from app.events import lists
from app.http.errors import ApiError, Invalid
from app.schemas import timestamps
from app.services import services
from providers.events import Event

# Who is meant when nobody in particular is.
EVERYBODY = ""


class Told(NamedTuple):
    """What is said of one person."""

    user: str
    explained: Explained


@blp.get("/explorer/why")
def explorer_why() -> ResponseReturnValue:
    """The answer alone, for the person and the moment of the query."""
    try:
        question = form.read(request.args, form.today(request.args))
        person = request.args.get("person", EVERYBODY)
        asked_of = replace(question, organization=None, users=(person,)) if person else question
        context = reasons(question, shown(asked_of), request.args)
    except ApiError as error:
        return page("explorer_why.html", complaint=error.error)
    # Whoever writes the moment goes on writing: the field is told only of what was pressed.
    return page("explorer_why.html", pressed=not request.args.get("moment"), **context)


@blp.get("/explorer/events")
def explorer_events() -> ResponseReturnValue:
    """The events behind a busy moment, as far as they may be read."""
    try:
        question = form.read(request.args, form.today(request.args))
        at = _moment(question, request.args)
        refs = connections.of_user(request.args.get("person", ""), {"provider": []})
        wanted = CalendarSelector(ids=tuple(request.args.getlist("calendar")))
        padding = question.engine.padding
        found = lists.find(refs, wanted, at - padding, at + padding + 1, Freshness())
    except ApiError as error:
        return page("explorer_events.html", complaint=error.error)
    events = [(calendar, event, _span(question, event)) for calendar, event in found.events]
    return page("explorer_events.html", events=events, failed=found.failures.calendars())


def reasons(question: Question, found: Shown, sent: Mapping[str, str]) -> dict[str, Any]:
    """What the template says; nothing when no moment was chosen.

    :raise Invalid: for a moment that is none
    """
    if not sent.get("at") and not sent.get("moment"):
        return {}
    at = _moment(question, sent)
    users = [lane.user for lane in found.lanes]
    # One who was chosen in another picture is not in this one.
    person = sent["person"] if sent.get("person") in users else EVERYBODY
    told = _told(question, found, at, person)
    return {
        "at": at,
        "person": person,
        "moment": _minute(question, at),
        "told": told,
        "span": lambda pair: explanation_text.span(pair, at, question.engine.zone),
        "question": question,
        "why_curl": question.explain_curl(base_url(), person, at),
    }


def base_url() -> str:
    """Where callers of the API find it."""
    return services().settings.public_url or request.url_root.rstrip("/")


def _told(question: Question, found: Shown, at: int, person: str) -> Sequence[Told]:
    every = explanation.of_all_requests(found.picture, question.engine, at)
    known = {user: every[ask] for user, ask in found.asks.items()}
    nothing, nobody = (
        each(question.engine, at) for each in (explanation.of_no_calendars, explanation.of_no_user)
    )
    return [
        Told(lane.user, nobody if lane.note == NOT_KNOWN else known.get(lane.user, nothing))
        for lane in found.lanes
        if person in (EVERYBODY, lane.user)
    ]


def _moment(question: Question, sent: Mapping[str, str]) -> int:
    """The moment that is meant: by the clock of the question's zone, or in milliseconds.

    Of the two that a clock shows alike when it is set back, the milliseconds tell which.
    """
    try:
        at = _milliseconds(sent["at"], question.zone) if sent.get("at") else None
        written = sent.get("moment")
        if written and (at is None or _minute(question, at) != written):
            return timestamps.parse(written).milliseconds(question.zone)
    except (timestamps.NotATimestamp, ValueError) as error:
        raise Invalid("The moment must be a date and a time") from error
    if at is None:
        raise Invalid("The moment must be a date and a time")
    return at


def _milliseconds(text: str, zone: ZoneInfo) -> int:
    return timestamps.from_milliseconds(int(text[:20])).milliseconds(zone)


def _minute(question: Question, at: int) -> str:
    """A moment as a browser's field holds it."""
    return f"{_local(question, at):%Y-%m-%dT%H:%M}"


def _local(question: Question, at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC).astimezone(question.zone)


def _span(question: Question, event: Event) -> str:
    start, end = _local(question, event.start), _local(question, event.end)
    if event.all_day:
        return "all day"
    if start.date() == end.date():
        return f"{start:%H:%M} to {end:%H:%M}"
    return f"{_day(start)} {start:%H:%M} to {_day(end)} {end:%H:%M}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b}"
