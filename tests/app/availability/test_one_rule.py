"""A parameter is honoured or refused on every route, and ignored only where it means nothing.

Run with ``pytest -s`` to see the table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.app.availability.test_parameters import WEEK

RANGE = {"start": "2027-12-03", "end": "2027-12-04"}
MOMENT = {"at": "2027-12-03T09:00:00Z"}
EVENT = {"start": "2027-12-03T09:00:00Z", "end": "2027-12-03T10:00:00Z"}
GROUPS = {"participants": [{"users": ["nobody"]}]}
USERS = {"users": [{"id": "nobody"}]}

# A value that changes the answer of a route that honours the parameter.
TELLING = {
    "calendarIds": "team@example.com",
    "provider": "google",
    "primaryOnly": "false",
    "padding": "10",
    "paddingBefore": "10",
    "paddingAfter": "10",
    "maxOverlaps": "1",
    "minimumNotice": "10",
    "onFailure": "partial",
    "slotDuration": "45",
    "slotStep": "15",
    "align": "clock",
    "limit": "3",
    "earliestTimeEachDay": "09:00",
    "latestTimeEachDay": "17:00",
}
MARGINS = {"padding", "paddingBefore", "paddingAfter", "maxOverlaps", "minimumNotice"}
SHAPE = {"slotDuration", "slotStep", "align", "limit", "earliestTimeEachDay", "latestTimeEachDay"}
READ = {"provider", "primaryOnly"}
SLOTS = READ | MARGINS | SHAPE
ONE_USER = SLOTS | {"calendarIds", "onFailure"}
OF_SLOTS = MARGINS | SHAPE | {"onFailure"}

# The request with the parameters that it honours, and the names of ignored ones. It refuses all others.
ROUTES: dict[str, tuple[str, str, Any, set[str], set[str]]] = {
    "user busy": ("GET", "/users/nobody/calendar/busy", None, READ | {"calendarIds"}, OF_SLOTS),
    "organization busy": ("GET", "/organizations/nowhere/calendar/busy", None, READ, OF_SLOTS),
    "user": ("GET", "/users/nobody/scheduling", None, ONE_USER, set()),
    "user in schedules": ("POST", "/users/nobody/scheduling", {"schedules": WEEK}, ONE_USER, set()),
    "user explained": ("GET", "/users/nobody/scheduling/explain", None, ONE_USER, set()),
    "user in schedules explained": (
        "POST",
        "/users/nobody/scheduling/explain",
        {"schedules": WEEK},
        ONE_USER,
        set(),
    ),
    "users": ("POST", "/users/scheduling", USERS, SLOTS, set()),
    "organization": ("GET", "/organizations/nowhere/scheduling", None, SLOTS, set()),
    "organization explained": ("GET", "/organizations/nowhere/scheduling/explain", None, SLOTS, set()),
    "groups": ("POST", "/scheduling", GROUPS, SLOTS | {"onFailure"}, set()),
    "groups explained": ("POST", "/scheduling/explain", GROUPS, SLOTS | {"onFailure"}, set()),
    "hold": ("POST", "/holds", EVENT | {"users": ["nobody"]}, MARGINS | {"provider"}, set()),
    "create": (
        "POST",
        "/users/nobody/calendar/events/google/primary?ifFree=true",
        EVENT,
        MARGINS | {"calendarIds", "provider"},
        set(),
    ),
    "unified create": (
        "POST",
        "/users/nobody/calendar/events/meta?ifFree=true",
        EVENT,
        MARGINS | {"calendarIds", "provider"},
        set(),
    ),
    "move": ("PUT", "/users/nobody/calendar/events/google/primary/x?ifFree=true", EVENT, MARGINS, set()),
}

Ask = Callable[..., Any]


@pytest.fixture
def ask(api) -> Ask:
    """Send a request to a route, with more parameters."""

    def ask(route: str, body: Any = None, **more: str) -> Any:
        method, path, usual, _, _ = ROUTES[route]
        path, _, condition = path.partition("?")
        query = dict(each.split("=") for each in condition.split("&") if each)
        if not condition and route != "hold":
            query |= RANGE | MOMENT
        sent = {} if usual is None else {"json": body or usual}
        return api.call(method, path, query_string=query | more, **sent)

    return ask


def outcome(ask: Ask, route: str, name: str) -> str:
    """A route that honours a parameter refuses a value that is not possible."""
    answer = ask(route, **{name: TELLING[name]})
    if answer.status_code == 400:
        assert answer.json["code"] == "validationFailed"
        assert answer.json["param"] == name, answer.text
        return "400"
    return "honoured" if ask(route, **{name: "."}).status_code == 400 else "ignored"


def test_a_parameter_is_honoured_or_refused(ask):
    table = {route: {name: outcome(ask, route, name) for name in TELLING} for route in ROUTES}

    rows = [" | ".join(["route", *TELLING]), " | ".join(["---"] * (len(TELLING) + 1))]
    rows += [" | ".join([route, *found.values()]) for route, found in table.items()]
    sys.stdout.write("\n" + "\n".join(f"| {row} |" for row in rows) + "\n")
    for route, (_, _, _, honoured, ignored) in ROUTES.items():
        expected = {
            name: "honoured" if name in honoured else "ignored" if name in ignored else "400"
            for name in TELLING
        }
        # Groups have one grid.
        assert table[route] == expected, route


@pytest.mark.parametrize("route", [name for name, each in ROUTES.items() if each[2] is not None])
@pytest.mark.parametrize("name", ["calendarIds", "primaryOnly", "slotDuration", "onFailure"])
def test_a_parameter_in_the_body_is_refused_where_it_would_have_no_effect(ask, route, name):
    if route in ("create", "unified create", "move"):
        return
    answer = ask(route, ROUTES[route][2] | {name: TELLING[name]})

    assert (answer.status_code, answer.json["param"]) == (400, name)


@pytest.mark.parametrize("route", ROUTES)
def test_unknown_names_and_values_that_change_nothing_are_accepted(ask, route):
    answer = ask(route, flavour="vanilla", primaryOnly="true", calendarIds="")

    assert answer.status_code in (200, 404), answer.text
