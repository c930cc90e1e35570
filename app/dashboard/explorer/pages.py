"""The explorer: busy time and slots of several users as a picture, and explanations of single moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlencode
from zoneinfo import available_timezones

from flask import request, url_for
from flask.typing import ResponseReturnValue

from app.availability.freshness import now_ms
from app.dashboard.blueprint import blp, page
from app.dashboard.explorer import columns, data, explanation, form, svg, zones
from app.dashboard.explorer.data import ExplorerData
from app.dashboard.explorer.fields import DEFAULTS, WINDOWS
from app.dashboard.explorer.form import ExplorerQuery
from app.dashboard.explorer.steps import steps
from app.dashboard.explorer.svg import Day
from app.dashboard.explorer.together import together
from app.http.errors import ApiError
from app.schemas.availability import WEEKDAYS
from app.services import services
from scheduling.intervals import Groups
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
        today=form.today(request.args),
        zones=_zones(),
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
        query = form.read(request.args, form.today(request.args))
        if query.is_empty:
            return {"is_empty": True}
        explorer_data = data.load(query, fresh="fresh" in request.args)
        shared = together(query, explorer_data)
    except ApiError as error:
        return {"complaint": error.error}
    return {
        "query": query,
        "shown": explorer_data,
        "together": shared,
        "curl": query.curl(explanation.base_url(), [lane.user for lane in explorer_data.lanes]),
        **_drawing(query, explorer_data),
        **_explanation(query, explorer_data),
    }


def _explanation(query: ExplorerQuery, explorer_data: ExplorerData) -> dict[str, Any]:
    try:
        return explanation.reasons(query, explorer_data, request.args)
    except ApiError as error:
        return {"why_complaint": error.error}


def _drawing(query: ExplorerQuery, explorer_data: ExplorerData) -> dict[str, Any]:
    whole = "whole" in request.args
    cut, every = svg.days(query, whole=False), svg.days(query, whole=True)
    days = every if whole else cut
    # While members are filtered, the picture stays as it is, even if few are found.
    in_days = len(explorer_data.lanes) <= svg.MAX_IN_DAYS and not query.find
    shapes = _columns(query, explorer_data, days) if in_days else _lanes(query, explorer_data, days)
    return {
        "days": days,
        "whole": whole,
        "is_cut": cut != every,
        "no_calendar": data.NOTHING_CONNECTED,
        "has_held": explorer_data.held.starts.size > 0,
        "zones_of": zones.of_users(explorer_data.people, query.zone, days, now_ms()),
        "sorts": SORT_LABELS,
        "steps": steps(query, form.today(request.args)),
        **shapes,
    }


def _columns(query: ExplorerQuery, explorer_data: ExplorerData, days: Sequence[Day]) -> dict[str, Any]:
    return {
        # On a day when clocks change, the hours have other positions than on the other days.
        "usual": next((n for n, day in enumerate(days) if not day.odd), 0),
        "hours_of": [svg.hour_labels(day, query.zone) for day in days],
        "columns": [columns.columns(query, explorer_data, day) for day in days],
        "outside": [columns.outside_blocks(explorer_data, day) for day in days],
        "now": (lines := [columns.position(day, now_ms()) for day in days]),
        "shows_now": any(line is not None for line in lines),
    }


def _lanes(query: ExplorerQuery, explorer_data: ExplorerData, days: Sequence[Day]) -> dict[str, Any]:
    ruler = svg.Ruler.of(days)
    return {
        "ruler": ruler,
        "starts": " ".join(f"{day.start}-{day.end}" for day in days),
        "heads": ruler.heads(query.zone),
        "rows": svg.rows(query, explorer_data, ruler),
        "dashes": svg.dashes(query, ruler),
        "outside": ruler.paths(Groups.pack([explorer_data.outside]))[0],
        "now": (line := ruler.position(now_ms())),
        "shows_now": line is not None,
    }


@cache
def _zones() -> Sequence[str]:
    """The names of all time zones, cached because reading them takes longer than rendering the page."""
    return sorted(available_timezones())
