"""Why the explorer offers, or does not offer, a user at a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from flask import request
from flask.typing import ResponseReturnValue

from app.availability import connections, explanation, explanation_text
from app.availability.explanation import UserVerdict
from app.availability.parameters import Freshness
from app.availability.selection import CalendarSelector
from app.dashboard.blueprint import blp, page
from app.dashboard.explorer import data, form
from app.dashboard.explorer.data import NOT_KNOWN, ExplorerData
from app.dashboard.explorer.form import ExplorerQuery
from app.events import lists
from app.http.authentication import authentication
from app.http.errors import ApiError, Invalid
from app.http.hosts import browser_url
from app.schemas import timestamps
from providers.events import Event

# The value of ``person`` for all users of the query.
EVERYBODY = ""


class UserExplanation(NamedTuple):
    """The explanation for one user."""

    user: str
    explained: UserVerdict


@blp.get("/explorer/why")
def explorer_why() -> ResponseReturnValue:
    """The explanation without the rest of the page, for the user and the moment of the query."""
    try:
        query = form.read(request.args, form.today(request.args))
        person = request.args.get("person", EVERYBODY)
        only = replace(query, organization=None, users=(person,)) if person else query
        context = reasons(query, data.load(only), request.args)
    except ApiError as error:
        return page("explorer_why.html", complaint=error.error)
    # Fill the field only after a click in the picture: while a user types in it, its text stays.
    return page("explorer_why.html", pressed=not request.args.get("moment"), **context)


@blp.get("/explorer/events")
def explorer_events() -> ResponseReturnValue:
    """The events behind a busy moment, as far as the grant allows reading them."""
    try:
        query = form.read(request.args, form.today(request.args))
        at = _moment(query, request.args)
        refs = connections.of_user(authentication(), request.args.get("person", ""), {"provider": []})
        selector = CalendarSelector(ids=tuple(request.args.getlist("calendar")))
        first, last = at - query.slot_query.padding_after, at + query.slot_query.padding_before
        event_list = lists.find_events(refs, selector, first, last + 1, Freshness())
    except ApiError as error:
        return page("explorer_events.html", complaint=error.error)
    events = [(calendar, event, _span(query, event)) for calendar, event in event_list.events]
    return page("explorer_events.html", events=events, failed=event_list.failures.calendars())


def reasons(
    query: ExplorerQuery, explorer_data: ExplorerData, form_values: Mapping[str, str]
) -> dict[str, Any]:
    """The context of the template; empty when no moment was chosen.

    :raise Invalid: for text that is no moment
    """
    if not form_values.get("at") and not form_values.get("moment"):
        return {}
    at = _moment(query, form_values)
    users = [lane.user for lane in explorer_data.lanes]
    # The chosen user may have been in an earlier picture and not be in this one.
    person = form_values["person"] if form_values.get("person") in users else EVERYBODY
    return {
        "at": at,
        "person": person,
        "moment": _minute(query, at),
        "explanations": _explanations(query, explorer_data, at, person),
        "span": lambda pair: explanation_text.span(pair, at, query.slot_query.zone),
        "query": query,
        "why_curl": query.explain_curl(browser_url(), person, at),
    }


def _explanations(
    query: ExplorerQuery, explorer_data: ExplorerData, at: int, person: str
) -> Sequence[UserExplanation]:
    every = explanation.explain_all_users(explorer_data.result, query.slot_query, at)
    by_user = {user: every[index] for user, index in explorer_data.indexes.items()}
    no_calendars, no_user = (
        each(query.slot_query, at)
        for each in (explanation.explain_no_calendars, explanation.explain_missing_user)
    )
    return [
        UserExplanation(
            lane.user, no_user if lane.note == NOT_KNOWN else by_user.get(lane.user, no_calendars)
        )
        for lane in explorer_data.lanes
        if person in (EVERYBODY, lane.user)
    ]


def _moment(query: ExplorerQuery, form_values: Mapping[str, str]) -> int:
    """The chosen moment: ``moment`` in the query's time zone, or ``at`` in milliseconds.

    When a clock is set back, it shows the same time twice: then ``at`` decides between the two.
    """
    try:
        at = _milliseconds(form_values["at"], query.zone) if form_values.get("at") else None
        typed = form_values.get("moment")
        if typed and (at is None or _minute(query, at) != typed):
            return timestamps.parse(typed).milliseconds(query.zone)
    except (timestamps.NotATimestamp, ValueError) as error:
        raise Invalid("The moment must be a date and a time", param="moment") from error
    if at is None:
        raise Invalid("The moment must be a date and a time", param="moment")
    return at


def _milliseconds(text: str, zone: ZoneInfo) -> int:
    return timestamps.from_milliseconds(int(text[:20])).milliseconds(zone)


def _minute(query: ExplorerQuery, at: int) -> str:
    """A moment as the value of a ``datetime-local`` field."""
    return f"{_local(query, at):%Y-%m-%dT%H:%M}"


def _local(query: ExplorerQuery, at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, UTC).astimezone(query.zone)


def _span(query: ExplorerQuery, event: Event) -> str:
    start, end = _local(query, event.start), _local(query, event.end)
    if event.all_day:
        return "all day"
    if start.date() == end.date():
        return f"{start:%H:%M} to {end:%H:%M}"
    return f"{_day(start)} {start:%H:%M} to {_day(end)} {end:%H:%M}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%b}"
