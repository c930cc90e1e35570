"""Why the explorer offers, or does not offer, a user at a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from flask import request, url_for
from flask.typing import ResponseReturnValue

from app.availability import connections, explanation, explanation_text, groups, profiles
from app.availability.explanation import UserVerdict
from app.availability.parameters import Freshness, RequestedHours
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
from scheduling.explain import Pair, Verdict

# The value of ``person`` for all users of the query.
ALL_USERS = ""


class PersonExplanation(NamedTuple):
    """The explanation for one user, or for all users together, whose ``user`` is ``ALL_USERS``.

    The picture marks ``causes``, the time that the reason is about, and ``next_slot``.
    """

    user: str
    explained: UserVerdict
    causes: Sequence[Pair]
    next_slot: Pair | None


@blp.get("/explorer/why")
def explorer_why() -> ResponseReturnValue:
    """The explanation without the rest of the page, for the user and the moment of the query."""
    try:
        query = form.read(request.args)
        person = request.args.get("person", ALL_USERS)
        only = replace(query, organization=None, users=(person,)) if person else query
        context = reasons(query, data.load(only), request.args)
    except ApiError as error:
        return page("explorer_why.html", complaint=error.error)
    # Fill the field only after a click in the picture: while a user types in it, its text stays.
    response = page("explorer_why.html", pressed=not request.args.get("moment"), **context)
    if context:
        response.headers["HX-Replace-Url"] = _address(query, context["at"], context["person"])
    return response


@blp.get("/explorer/events")
def explorer_events() -> ResponseReturnValue:
    """The events behind a busy moment, as far as the grant allows reading them."""
    try:
        query = form.read(request.args)
        at = _moment(query, request.args)
        person = request.args.get("person", "")
        refs = connections.of_user(authentication(), person, {"provider": []})
        selector = CalendarSelector(ids=tuple(request.args.getlist("calendar")))
        profile = profiles.of_user(authentication(), query.params, person)
        own = profiles.query_of_user(query.params, query.slot_query, RequestedHours(query.schedules), profile)
        first, last = at - own.padding_after, at + own.padding_before
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
    person = form_values["person"] if form_values.get("person") in users else ALL_USERS
    return {
        "at": at,
        "person": person,
        "moment": _minute(query, at),
        "explanations": _explanations(query, explorer_data, at, person),
        "span": lambda pair: explanation_text.span(pair, at, query.slot_query.zone),
        "query": query,
        "why_curl": query.explain_curl(browser_url(), person, at),
        "address_of": lambda slot: _address(query, slot[0], person, show=1),
    }


def _explanations(
    query: ExplorerQuery, explorer_data: ExplorerData, at: int, person: str
) -> Sequence[PersonExplanation]:
    persons = [explorer_data.persons.get(user) for user in explorer_data.indexes]
    every = explanation.explain_all_users(
        explorer_data.result, query.slot_query, at, explorer_data.own, persons
    )
    by_user = {user: every[index] for user, index in explorer_data.indexes.items()}
    no_calendars, no_user = (
        each(query.slot_query, at)
        for each in (explanation.explain_no_calendars, explanation.explain_missing_user)
    )
    verdicts = {
        lane.user: no_user if lane.note == NOT_KNOWN else by_user.get(lane.user, no_calendars)
        for lane in explorer_data.lanes
        if person in (ALL_USERS, lane.user)
    }
    of_users = [
        PersonExplanation(
            user, each, _causes(query, each), None if each.facts is None else each.facts.next_slot
        )
        for user, each in verdicts.items()
    ]
    if person != ALL_USERS or (shared := data.together(query, explorer_data)) is None:
        return of_users
    following = next((slot for slot in shared.slots.pairs() if slot[0] > at), None)
    return [_together(query, explorer_data, at, following), *of_users]


def _causes(query: ExplorerQuery, verdict: UserVerdict) -> Sequence[Pair]:
    """The time that a reason is about: busy periods, closed hours, or a free stretch without a slot."""
    facts, asked = verdict.facts, query.slot_query
    if facts is None:
        return ()
    covering = facts.covering
    match verdict.reason:
        case Verdict.BUSY:
            return [(each.start, each.end) for each in covering if each.unpadded(facts.at)]
        case Verdict.PADDING | Verdict.TOO_MANY_OVERLAPS:
            return [(each.padded_start, each.padded_end) for each in covering]
        case Verdict.OUTSIDE_WINDOW:
            return [(facts.window_before or asked.start, facts.window_after or asked.end)]
        case Verdict.TOO_SOON if asked.not_before is not None:
            return [(asked.start, asked.not_before)]
    span = facts.slot or facts.free
    return [] if span is None else [span]


def _together(
    query: ExplorerQuery, explorer_data: ExplorerData, at: int, next_slot: Pair | None
) -> PersonExplanation:
    group = explorer_data.group(query)
    explained = groups.explain_groups(group, replace(query.slot_query, align_clock=True), at)
    causes = [] if explained.slot is None else [explained.slot]
    return PersonExplanation(ALL_USERS, UserVerdict(explained.reason, explained.sentence), causes, next_slot)


def _address(query: ExplorerQuery, at: int, person: str, **changed: int) -> str:
    """The address of the explorer's answer about a moment, for the settings of this request."""
    kept = {name: each for name, each in request.args.items() if each and name not in ("at", "fresh", "show")}
    asked = {"moment": _minute(query, at), "person": person}
    if _moment(query, asked) != at:
        # A clock that is set back shows the time twice.
        asked["at"] = str(at)
    address = urlencode({name: each for name, each in {**kept, **asked, **changed}.items() if each})
    return f"{url_for('dashboard.explorer')}?{address}"


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
