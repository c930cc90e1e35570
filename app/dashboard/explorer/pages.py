"""The explorer: busy time and slots of several users as a picture, with links to the weeks beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import urlencode
from zoneinfo import available_timezones

from flask import jsonify, request, url_for
from flask.typing import ResponseReturnValue

from app.availability.parameters import now_ms
from app.dashboard.blueprint import blp, page
from app.dashboard.explorer import columns, data, explanation, form, svg, zones
from app.dashboard.explorer.data import ExplorerData, Together, together
from app.dashboard.explorer.form import DEFAULTS, MAX_SHOWN, WINDOWS, ExplorerQuery
from app.dashboard.explorer.svg import ShownDay
from app.dashboard.explorer.working_time import CLOSED
from app.http.errors import ApiError
from app.http.hosts import browser_url
from app.schemas.availability import WEEKDAYS
from app.schemas.timestamps import FIRST_YEAR, LAST_YEAR
from app.services import services
from providers import registry
from scheduling.intervals import Groups, Intervals
from store.sql.queries import organizations

# The list of choices has at most this many organizations; others can be typed.
MAX_LISTED = 500

SORT_LABELS = {
    "listed": "by name",
    "most": "most slots first",
    "fewest": "fewest slots first",
    "unread": "not readable first",
}


@blp.get("/explorer")
def explorer() -> ResponseReturnValue:
    """The controls. A script then loads the picture; ``show`` includes it for browsers without scripts."""
    with services().stores.database.reading() as session:
        slugs = organizations.slugs(session, limit=MAX_LISTED)
    sent = request.args
    context = _picture() if "show" in sent else {}
    return page(
        "explorer.html",
        sent=sent,
        slugs=slugs,
        chosen=sent.get("organization", slugs[0] if slugs and not sent.get("users") else ""),
        first_day=form.first_day(sent),
        zones=zone_names(),
        window=form.window(sent),
        more=_more(sent),
        weekdays=WEEKDAYS,
        **context,
    )


@blp.get("/explorer/grid")
def explorer_grid() -> ResponseReturnValue:
    """The picture without the rest of the page, for the current controls."""
    response = page("explorer_grid.html", **_picture())
    url_params = urlencode({name: each for name, each in request.args.items() if each and name != "fresh"})
    response.headers["HX-Replace-Url"] = f"{url_for('dashboard.explorer')}?{url_params}"
    return response


def _more(args: Mapping[str, str]) -> int:
    """The number of settings below "More" that are not the default; the time zone does not count."""
    defaults = DEFAULTS | {"together": "", "earliestTimeEachDay": "09:00", "latestTimeEachDay": "17:00"}
    changed = [name for name, default in defaults.items() if args.get(name, default) != default]
    return len(changed) + (form.window(args) != WINDOWS[0])


def _picture() -> dict[str, Any]:
    """The context of the picture; only ``complaint`` for an invalid query."""
    try:
        query = form.read(request.args)
        if query.is_empty:
            return {"is_empty": True}
        explorer_data = data.load(query, fresh="fresh" in request.args)
        shared = together(query, explorer_data)
    except ApiError as error:
        return {"complaint": error.error}
    people = [lane.user for lane in explorer_data.lanes]
    explained = _explanation(query, explorer_data)
    return {
        "query": query,
        "shown": explorer_data,
        "together": shared,
        "curl": query.curl(browser_url(), people, partial=explorer_data.hidden > 0),
        "shared": "",
        **_drawing(query, explorer_data, shared, explained.get("at")),
        **explained,
    }


def _explanation(query: ExplorerQuery, explorer_data: ExplorerData) -> dict[str, Any]:
    try:
        return explanation.reasons(query, explorer_data, request.args)
    except ApiError as error:
        return {"why_complaint": error.error}


def _drawing(
    query: ExplorerQuery, explorer_data: ExplorerData, shared: Together | None, at: int | None
) -> dict[str, Any]:
    cut, every = svg.days(query, whole=False), svg.days(query, whole=True)
    # The picture shows the moment that is explained, also on a closed day.
    hidden = at is not None and not any(day.start <= at < day.end for day in cut)
    whole = "whole" in request.args or hidden
    days = every if whole else cut
    # While members are filtered, the picture stays as it is, even if few are found.
    in_days = len(explorer_data.lanes) <= svg.MAX_IN_DAYS and not query.find
    persons = explorer_data.persons.items()
    stated = {user: zone for user, each in persons if (zone := each.profile.stored.time_zone) is not None}
    shapes = _columns(query, explorer_data, days) if in_days else _lanes(query, explorer_data, shared, days)
    return {
        "days": days,
        "whole": whole,
        "is_cut": cut != every,
        "no_calendar": data.NOTHING_CONNECTED,
        "people_pages": _people_pages(query, explorer_data),
        "has_held": explorer_data.held.starts.size > 0,
        "has_away": explorer_data.away.starts.size > 0,
        "zones_of": zones.of_users(explorer_data.people, query.zone, days, now_ms(), stated),
        "sorts": SORT_LABELS,
        "steps": steps(query, form.today(request.args)),
        **shapes,
    }


def _columns(query: ExplorerQuery, explorer_data: ExplorerData, days: Sequence[ShownDay]) -> dict[str, Any]:
    return {
        # On a day when clocks change, the hours have other positions than on the other days.
        "usual": next((n for n, day in enumerate(days) if not day.odd), 0),
        "hours_of": [svg.hour_labels(day, query.zone) for day in days],
        "columns": [columns.columns(query, explorer_data, day) for day in days],
        "outside": [columns.outside_blocks(explorer_data, day) for day in days],
        "now": (lines := [columns.position(day, now_ms()) for day in days]),
        "shows_now": any(line is not None for line in lines),
    }


def _lanes(
    query: ExplorerQuery, explorer_data: ExplorerData, shared: Together | None, days: Sequence[ShownDay]
) -> dict[str, Any]:
    ruler = svg.Ruler.of(days)
    together = Groups.pack([shared.slots if shared is not None else data.NO_INTERVALS])
    every = svg.rows(query, explorer_data, ruler)
    return {
        "ruler": ruler,
        "starts": " ".join(f"{day.start}-{day.end}" for day in days),
        "heads": ruler.heads(query.zone),
        "rows": [row for row in every if row.lane.note != data.NOTHING_CONNECTED],
        "absent": [row.lane.user for row in every if row.lane.note == data.NOTHING_CONNECTED],
        "shared": ruler.paths(svg.rows_of_slots(together, query.slot_query.stride, ruler.runs))[0],
        "dashes": svg.dashes(query, ruler),
        "outside": ruler.paths(Groups.pack([explorer_data.outside]))[0],
        "now": (line := ruler.position(now_ms())),
        "shows_now": line is not None,
    }


@blp.app_template_filter()
def reason_of(failed: Mapping[str, Any]) -> str:
    """Which account was not read, why, and since when: a person may have several."""
    account = f" ({failed['account']})" if failed["account"] else ""
    since = f", since {failed['since']:%d %b, %H:%M} UTC" if failed["since"] else ""
    return f"{registry.title(failed['provider'])}{account}: {failed['message']}{since}"


def _people_pages(query: ExplorerQuery, explorer_data: ExplorerData) -> Sequence[tuple[str, str, str]]:
    """Links to the members before and after those shown: label, relation and address."""
    kept = {name: each for name, each in request.args.items() if each and name not in _OF_ONE_ANSWER}
    explorer, last = url_for("dashboard.explorer"), query.skip + len(explorer_data.lanes)
    back = [("Previous people", "prev", max(0, query.skip - MAX_SHOWN))] if query.skip else []
    further = [("Next people", "next", last)] if last < explorer_data.members else []
    return [
        (label, rel, f"{explorer}?{urlencode({**kept, 'skip': skip, 'show': 1})}")
        for label, rel, skip in (*back, *further)
    ]


@cache
def zone_names() -> Sequence[str]:
    """The names of all time zones, cached because reading them takes longer than rendering the page."""
    return sorted(available_timezones())


WEEK = timedelta(days=7)
# They belong to one picture.
_OF_ONE_ANSWER = frozenset({"show", "fresh", "at", "moment", "person"})
_LEFT_OUT = _OF_ONE_ANSWER | {"day"}


class Step(NamedTuple):
    """A link to another first day; ``short`` is its text if the label is for screen readers only."""

    name: str
    label: str
    short: str
    day: date
    url: str


def steps(query: ExplorerQuery, today: date) -> Sequence[Step]:
    """The links of a picture; a link to a year that the service does not know is left out."""
    kept = urlencode({name: each for name, each in request.args.items() if each and name not in _LEFT_OUT})
    page = f"{url_for('dashboard.explorer')}?{kept}"
    all_steps = [
        ("previous", "Previous week", "\N{LEFTWARDS ARROW}", query.first - WEEK),
        ("today", "Today", "", today),
        ("next", "Next week", "\N{RIGHTWARDS ARROW}", query.first + WEEK),
    ]
    return [
        Step(name, label, short, day, f"{page}&day={day}&show=1")
        for name, label, short, day in all_steps
        if FIRST_YEAR <= day.year <= LAST_YEAR
    ]


class Period(NamedTuple):
    """A period in milliseconds; ``name`` is the calendar of a busy one, or the holiday of a closed one."""

    start: int
    end: int
    kind: str
    name: str = ""


@blp.get("/explorer/periods")
def explorer_periods() -> ResponseReturnValue:
    """The busy periods, held time and slots of one person in the picture's range; none after an error."""
    try:
        query = form.read(request.args)
        person = request.args.get("person", "")
        explorer_data = data.load(replace(query, organization=None, users=(person,)))
    except ApiError:
        return jsonify([])
    start, end = query.slot_query.start, query.slot_query.end
    return jsonify([[*each] for each in _periods(explorer_data) if each.start < end and each.end > start])


def _periods(data: ExplorerData) -> Iterator[Period]:
    if not data.indexes:
        return
    result = data.result
    for index in result.target_indexes(0):
        target = result.targets[index]
        name = f"{target.shown} ({registry.title(target.connection.provider)})"
        yield from _of(result.busy.group(index), "busy", name)
    for closed in chain.from_iterable(data.closed.values()):
        yield Period(closed.start, closed.end, "closed", "" if closed.name == CLOSED else closed.name)
    if len(data.away):
        yield from _of(data.away.group(0), "away")
    for each in result.held.get(0, ()):
        yield Period(each.starts, each.ends, "held")
    if len(data.slots):
        yield from _of(data.slots.group(0), "slot")


def _of(intervals: Intervals, kind: str, name: str = "") -> Iterator[Period]:
    for start, end in intervals.pairs():
        yield Period(start, end, kind, name)
