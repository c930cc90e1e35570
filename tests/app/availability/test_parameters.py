"""The parameters of the busy and scheduling routes.

Requests name a user that does not exist, so 404 means that the parameters were accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from werkzeug.test import TestResponse

import scheduling.query as engine
from app.schemas.fields import Zone

Ask = Callable[..., TestResponse]

RANGE = {"start": "2026-12-03", "end": "2026-12-04"}
# The other routes do not know it.
MOMENT = {"at": "2026-12-03T09:00:00Z"}
WEEK = [{"days": ["monday"], "start": "09:00", "end": "17:00"}]

BUSY = {
    "user busy": ("GET", "/users/nobody/calendar/busy", None),
    "organization busy": ("GET", "/organizations/nowhere/calendar/busy", None),
}
SLOTS = {
    "user scheduling": ("GET", "/users/nobody/scheduling", None),
    "user schedules": ("POST", "/users/nobody/scheduling", {"schedules": WEEK}),
    "users scheduling": ("POST", "/users/scheduling", {"users": [{"id": "nobody"}]}),
    "organization scheduling": ("GET", "/organizations/nowhere/scheduling", None),
    "user explanation": ("GET", "/users/nobody/scheduling/explain", None),
    "user explanation in schedules": ("POST", "/users/nobody/scheduling/explain", {"schedules": WEEK}),
    "organization explanation": ("GET", "/organizations/nowhere/scheduling/explain", None),
}
# All routes share the fields of these parameters, so two routes show how they are parsed.
TWO = ["user busy", "users scheduling"]
ROUTES = BUSY | SLOTS


@pytest.fixture
def ask(api) -> Ask:
    """Send a valid request to a route, with some parameters changed; None leaves a parameter out."""

    def ask(route: str, headers: dict[str, str] | None = None, **changed: Any) -> TestResponse:
        method, path, body = ROUTES[route]
        query = {name: value for name, value in (RANGE | MOMENT | changed).items() if value is not None}
        more = {} if body is None else {"json": body}
        return api.call(method, path, headers=headers, query_string=query, **more)

    return ask


def refused(answer: TestResponse) -> str:
    """The error message of a 400; it begins with the parameter unless several parameters are too much."""
    assert answer.status_code == 400, answer.text
    assert answer.json["data"] is None
    message = str(answer.json["error"])
    if answer.json["code"] == "validationFailed":
        assert message.startswith(re.sub(r"\.(\d+)", r"[\1]", answer.json["param"]))
    else:
        assert (answer.json["code"], answer.json["param"]) == ("rangeTooLarge", "end")
    return message


def accepted(answer: TestResponse) -> None:
    """The parameters were accepted, and the user does not exist."""
    if answer.status_code == 200:
        assert [entry["error"] for entry in answer.json["data"]] == ["User not found"]
    else:
        assert answer.status_code == 404, answer.text
        assert answer.json["error"] in ("User not found", "Organization not found")


@pytest.mark.parametrize("route", ROUTES)
def test_a_plain_request_is_accepted(ask, route):
    accepted(ask(route))


# --- the range


@pytest.mark.parametrize("route", TWO)
@pytest.mark.parametrize("edge", ["start", "end"])
def test_both_edges_of_the_range_are_required_timestamps(ask, route, edge):
    assert refused(ask(route, **{edge: None})) == f"{edge} is required"
    assert refused(ask(route, **{edge: "tomorrow"})).startswith(f"{edge} must be an ISO 8601 date")


def test_start_must_be_before_end(ask):
    for end in ("2026-12-03", "2026-12-02", "2026-12-03T09:00+10:00"):
        assert refused(ask("user busy", end=end)) == "start must be before end"
    # The same wall time in two offsets.
    accepted(ask("user busy", start="2026-12-03T09:00+01:00", end="2026-12-03T09:00Z"))


@pytest.mark.parametrize("route", ROUTES)
def test_a_range_of_366_days_is_the_longest(ask, route):
    day = {"slotDuration": "1440"} if route in SLOTS else {}
    accepted(ask(route, start="2027-01-01", end="2028-01-02", **day))
    sentence = refused(ask(route, start="2027-01-01", end="2028-01-02T00:00:00.001Z", **day))
    assert sentence == "The range from start to end must not be longer than 366 days"


@pytest.mark.parametrize(
    ("zone", "start", "end"),
    [
        # The range starts in summer time and ends in winter time: one hour more than 366 * 24.
        ("Europe/Berlin", "2025-10-25", "2026-10-26"),
        # The same range for Berlin, in UTC.
        ("Europe/Berlin", "2025-10-24T22:00:00.000Z", "2026-10-25T23:00:00.000Z"),
        ("America/New_York", "2025-11-01", "2026-11-02"),
        ("Australia/Lord_Howe", "2026-04-04", "2027-04-05"),
        ("UTC", "2027-01-01", "2028-01-02"),
    ],
)
def test_a_range_of_366_local_days_is_taken_in_every_zone(ask, zone, start, end):
    zoned = {"X-Timezone": zone}
    accepted(ask("user busy", headers=zoned, start=start, end=end))
    later = end.replace(".000Z", ".001Z") if end.endswith("Z") else f"{end}T00:00:00.001"
    assert "366 days" in refused(ask("user busy", headers=zoned, start=start, end=later))


def test_limit_of_a_million_slots_covers_all_users(api):
    year = {"start": "2027-01-01", "end": "2028-01-02", "slotDuration": "1"}
    users = [{"id": "nobody"}, {"id": "nobody"}]

    accepted(api.post("/users/scheduling", {"users": users[:1]}, query_string=year))
    sentence = refused(api.post("/users/scheduling", {"users": users}, query_string=year))

    assert sentence.startswith("The answer could hold more than 1000000 slots; narrow the range")


@pytest.mark.parametrize("route", ["user scheduling", "users scheduling"])
def test_too_many_slots_are_refused_before_anything_is_read(ask, api, new_app, route):
    api.client = new_app(max_slots=47).test_client()

    accepted(ask(route, slotDuration="31"))
    assert "narrow the range" in refused(ask(route, slotDuration="30"))
    assert "narrow the range" in refused(ask(route, slotDuration="60", slotStep="15"))


def test_windows_that_leave_few_slots_make_room_for_a_long_range(ask, api, new_app):
    api.client = new_app(max_slots=47).test_client()

    accepted(ask("user scheduling", earliestTimeEachDay="09:00", latestTimeEachDay="10:00"))


@pytest.fixture
def resolved(monkeypatch) -> list[int]:
    """The number of windows of each call to ``resolve``."""
    windows: list[int] = []
    resolve = engine.resolve

    def count(some, *args):
        windows.append(len(some))
        return resolve(some, *args)

    monkeypatch.setattr(engine, "resolve", count)
    return windows


def a_thousand_users(windows: int) -> dict[str, Any]:
    """A body with 1 000 users, each with different windows."""
    week = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

    def window(user: int, number: int) -> dict[str, Any]:
        first = number * 79 + user % 60
        start, end = (f"{minute // 60:02d}:{minute % 60:02d}" for minute in (first, first + 60 + user // 60))
        return {"days": [week[number % 7]], "start": start, "end": end}

    return {
        "users": [
            {"id": "nobody", "schedules": [window(user, each) for each in range(windows)]}
            for user in range(1000)
        ]
    }


YEAR_OF_MINUTES = {"start": "2027-01-01", "end": "2028-01-02", "align": "clock", "slotDuration": "1"}


@pytest.mark.slow
def test_too_many_windows_are_refused_before_any_is_resolved(api, resolved):
    sentence = refused(api.post("/users/scheduling", a_thousand_users(17), query_string=YEAR_OF_MINUTES))
    assert sentence.startswith("schedules have 17000 windows over 366 days")
    assert resolved == []


@pytest.mark.slow
def test_counting_slots_stops_at_the_first_too_many(api, resolved):
    sentence = refused(api.post("/users/scheduling", a_thousand_users(5), query_string=YEAR_OF_MINUTES))
    assert sentence.startswith("The answer could hold more than 1000000 slots")
    # Five windows of at least an hour per week make about 16 000 slots for each user.
    assert 0 < len(resolved) < 75


def test_windows_are_not_resolved_when_the_range_limits_the_slots(api, resolved):
    body = {"users": a_thousand_users(5)["users"][:100]}
    answer = api.post("/users/scheduling", body, query_string=RANGE | {"align": "clock"})
    assert (answer.status_code, len(answer.json["data"])) == (200, 100)
    # The users have no calendars, so no slots are computed either.
    assert resolved == []


# --- the moment


@pytest.mark.parametrize(
    ("at", "sentence"),
    [
        (None, "at is required"),
        ("", "at must be an ISO 8601 date"),
        ("soon", "at must be an ISO 8601 date"),
        ("1764752400000", "at must be an ISO 8601 date"),
        ("2026-13-01", "at names a date or time that does not exist"),
        ("2026-12-03T25:00", "at names a date or time that does not exist"),
        ("1969-12-31", "at must lie in the years 1970 to 2199"),
    ],
)
def test_an_invalid_moment_is_refused(ask, at, sentence):
    assert refused(ask("user explanation", at=at)).startswith(sentence)


@pytest.mark.parametrize("at", ["2026-W49-4T09", "20261203T0930", "2026-12-03T09:00:00 02:00", "2199-12-31"])
def test_a_moment_is_written_like_an_edge_of_the_range(ask, at):
    accepted(ask("user explanation", at=at))


# --- integers

INTEGERS = {
    "slotDuration": (1, 10_080),
    "padding": (0, 10_080),
    "maxOverlaps": (0, 1000),
    "slotStep": (1, 10_080),
}
NOT_INTEGERS = [
    *("", " ", "007", "00", "-0", "+1", "1.0", "1e3", " 1", "1 ", "1\n", "1_0", "0x10", "\u0661\u0665"),
    *("\uff11\uff15", "fifteen", "--1", "-", "-01", "NaN", "null", "true", "1,2"),
]


@pytest.mark.parametrize("text", NOT_INTEGERS)
def test_a_value_that_is_no_plain_integer_is_refused(ask, text):
    assert refused(ask("user scheduling", padding=text)) == "padding must be an integer"


@pytest.mark.parametrize(("name", "bounds"), INTEGERS.items())
def test_integers_have_bounds(ask, name, bounds):
    least, most = bounds
    accepted(ask("user scheduling", **{name: str(least)}))
    accepted(ask("user scheduling", **{name: str(most)}))
    for text in (str(least - 1), "-1", "-30", str(most + 1), "9" * 30, "1" + "0" * 5000):
        assert refused(ask("user scheduling", **{name: text})) == f"{name} must be between {least} and {most}"


# --- times of day

NOT_CLOCKS = [
    *("", "9", "24:00", "09:60", "9:5", "09:00:00", "09.00", "0900", "-1:00", "09:00 ", " 9:00", "9am"),
    "\u0660\u0669:\u0660\u0660",
]


@pytest.mark.parametrize("text", NOT_CLOCKS)
def test_a_value_that_is_no_time_of_day_is_refused(ask, text):
    sentence = refused(ask("user scheduling", latestTimeEachDay=text))
    assert sentence.startswith("latestTimeEachDay must be a time of day as HH:MM")


@pytest.mark.parametrize(
    ("earliest", "latest"),
    [
        ("9:00", "17:00"),
        ("09:00", "17:30"),
        ("22:00", "6:00"),
        ("00:00", "00:00"),
        ("0:00", "00:00"),
        ("9:00", "00:00"),
    ],
)
def test_daily_windows_may_pass_midnight(ask, earliest, latest):
    accepted(ask("user scheduling", earliestTimeEachDay=earliest, latestTimeEachDay=latest))


def test_equal_times_other_than_midnight_are_refused(ask):
    sentence = refused(ask("user scheduling", earliestTimeEachDay="9:00", latestTimeEachDay="09:00"))
    assert sentence == "latestTimeEachDay must differ from earliestTimeEachDay"


# --- enumerations


@pytest.mark.parametrize("text", ["", "True", "1", "0", "yes", " true"])
def test_a_boolean_is_true_or_false_exactly(ask, text):
    accepted(ask("user busy", primaryOnly="true"))
    accepted(ask("user busy", primaryOnly="false"))
    assert refused(ask("user busy", primaryOnly=text)) == "primaryOnly must be true or false"


@pytest.mark.parametrize(("name", "words"), [("onFailure", "fail, partial"), ("align", "start, clock")])
def test_words_outside_their_set_are_refused(ask, name, words):
    for word in words.split(", "):
        accepted(ask("user scheduling", **{name: word}))
    assert refused(ask("user scheduling", **{name: "other"})) == f"{name} must be one of {words}"


# --- arrays


@pytest.mark.parametrize("route", TWO)
@pytest.mark.parametrize(
    "spelling",
    [
        "provider=google&provider=microsoft",
        "provider=google",
        "provider[]=google&provider[]=microsoft",
        "provider%5B%5D=google",
        "provider=google,microsoft",
        "provider=google,google&provider[]=google",
        "provider=",
    ],
)
def test_an_array_may_be_spelled_in_any_way(api, route, spelling):
    method, path, body = ROUTES[route]
    more = {} if body is None else {"json": body}
    query = f"{urlencode(RANGE | MOMENT)}&{spelling}"
    accepted(api.call(method, path, query_string=query, **more))


@pytest.mark.parametrize("route", TWO)
@pytest.mark.parametrize(
    "provider", ["yahoo", "Google", "google microsoft", "google,yahoo", ["google", "yahoo"]]
)
def test_a_provider_that_does_not_exist_is_named_as_such(ask, route, provider):
    assert refused(ask(route, provider=provider)).endswith("must be one of google, microsoft, caldav, ics")


@pytest.mark.parametrize("text", ["\x00", "a" * 1025, "a\nb"])
def test_calendar_ids_have_a_length_and_no_control_characters(ask, text):
    assert refused(ask("user busy", calendarIds=text)).startswith("calendarIds")


# --- the zone

ZONES = [
    *(
        "UTC",
        "Europe/Berlin",
        "America/Port-au-Prince",
        "Etc/GMT+5",
        "Etc/GMT-14",
        "EST5EDT",
        "GMT",
        "UTC+12",
    ),
    *("America/Argentina/Buenos_Aires", "W. Europe Standard Time", "Pacific Standard Time"),
    # Names are case-insensitive.
    *("utc", "america/new_york", "EUROPE/BERLIN", "etc/gmt+5", "pacific standard time"),
]
NOT_ZONES = [
    *("Mars/Olympus", "europe", "+02:00", "UTC+2", "../../../etc/passwd", "/etc/localtime", "Europe/", "."),
    *("Europe/../Europe/Berlin", "Europe//Berlin", "localtime", "right/UTC", "posix/UTC", "zone.tab"),
    *("tzdata.zi", "A" * 5000, "Europe/Berl\xedn"),
]


@pytest.mark.parametrize("zone", ZONES)
def test_every_zone_of_the_database_and_windows_names_are_taken(ask, zone):
    accepted(ask("user scheduling", headers={"x-timezone": zone}))


def test_a_zone_in_another_case_is_the_same_zone():
    assert Zone().parse("aMERICA/new_YORK") is Zone().parse("America/New_York")


@pytest.mark.parametrize("zone", NOT_ZONES)
def test_an_unknown_zone_is_refused(ask, zone):
    sentence = refused(ask("user busy", headers={"x-timezone": zone}))
    assert sentence == "X-Timezone must be a time zone name, like Europe/Berlin"


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_takes_the_zone(ask, route):
    assert refused(ask(route, headers={"X-TIMEZONE": "Mars/Olympus"})).startswith("X-Timezone")


@pytest.mark.parametrize("route", TWO)
def test_time_zone_in_the_query_means_the_header_and_goes_before_it(ask, route):
    tokyo, offset = {"X-Timezone": "Asia/Tokyo"}, "2026-12-03T09:00+01:00"
    # 09:00 in Tokyo is before 09:00+01:00, 09:00 in New York is after it.
    accepted(ask(route, headers=tokyo, start="2026-12-03T09:00", end=offset))
    sentence = refused(ask(route, tokyo, start="2026-12-03T09:00", end=offset, timeZone="America/New_York"))
    assert sentence == "start must be before end"
    accepted(ask(route, timeZone="Asia/Tokyo", start="2026-12-03T09:00", end=offset))
    sentence = refused(ask(route, timeZone="Mars/Olympus"))
    assert sentence == "timeZone must be a time zone name, like Europe/Berlin"


# --- schedules


def schedules(value: Any) -> list[tuple[str, str, Any]]:
    """The places in request bodies that take schedules."""
    return [
        ("/users/nobody/scheduling", "schedules", {"schedules": value}),
        ("/users/nobody/scheduling/explain", "schedules", {"schedules": value}),
        ("/users/scheduling", "schedules", {"users": [{"id": "nobody"}], "schedules": value}),
        ("/users/scheduling", "users[0].schedules", {"users": [{"id": "nobody", "schedules": value}]}),
    ]


GOOD_SCHEDULES = {
    "one window": WEEK,
    "a single object": WEEK[0],
    "none": [],
    "no days": [{"days": [], "start": "09:00", "end": "17:00"}],
    "a day twice": [{"days": ["monday", "monday"], "start": "9:00", "end": "17:00"}],
    "overnight": [{"days": ["friday"], "start": "22:00", "end": "06:00"}],
    "the whole day": [{"days": ["sunday"], "start": "00:00", "end": "00:00"}],
    "until midnight": [{"days": ["sunday"], "start": "12:00", "end": "00:00"}],
    "overlapping": [*WEEK, {"days": ["monday"], "start": "12:00", "end": "20:00"}],
    "unknown fields": [{**WEEK[0], "timezone": "UTC", "id": 5}],
}
BAD_SCHEDULES = {
    "an upper-case day": ([{**WEEK[0], "days": ["Monday"]}], "[0].days[0] must be one of monday, tuesday,"),
    "a short day": ([{**WEEK[0], "days": ["mon"]}], "[0].days[0] must be one of monday"),
    "a day as a number": ([{**WEEK[0], "days": [1]}], "[0].days[0] must be a string"),
    "days as a word": ([{**WEEK[0], "days": "monday"}], "[0].days must be an array"),
    "no days field": ([{"start": "09:00", "end": "17:00"}], "[0].days is required"),
    "no start": ([{"days": ["monday"], "end": "17:00"}], "[0].start is required"),
    "no end": ([{"days": ["monday"], "start": "09:00"}], "[0].end is required"),
    "a null end": ([{**WEEK[0], "end": None}], "[0].end is required"),
    "a number for a time": ([{**WEEK[0], "start": 9}], "[0].start must be a string"),
    "a bad time": ([{**WEEK[0], "end": "24:00"}], "[0].end must be a time of day as HH:MM"),
    "equal times": ([{**WEEK[0], "end": "9:00"}], "[0].end must differ from start"),
    "the second one": ([*WEEK, {**WEEK[0], "end": "25:00"}], "[1].end must be a time of day"),
    "a bad single object": ({**WEEK[0], "end": "25:00"}, "[0].end must be a time of day"),
    "a word": ("monday", " must be an array"),
    "a list of words": (["monday"], "[0] must be an object"),
    "a list of lists": ([[]], "[0] must be an object"),
    "too many": (WEEK * 201, " must have at most 200 elements"),
}


@pytest.mark.parametrize("value", GOOD_SCHEDULES.values(), ids=GOOD_SCHEDULES)
def test_schedules_that_are_accepted(api, value):
    for path, _, body in schedules(value):
        accepted(api.post(path, body, query_string=RANGE | MOMENT))


@pytest.mark.parametrize(("value", "sentence"), BAD_SCHEDULES.values(), ids=BAD_SCHEDULES)
def test_the_error_of_a_bad_schedule_has_its_place(api, value, sentence):
    for path, place, body in schedules(value):
        assert refused(api.post(path, body, query_string=RANGE | MOMENT)).startswith(f"{place}{sentence}")


def test_one_user_needs_schedules_and_several_users_do_not(api):
    assert refused(api.post("/users/nobody/scheduling", {}, query_string=RANGE)) == "schedules is required"
    assert (
        refused(api.post("/users/nobody/scheduling", {"schedules": None}, query_string=RANGE))
        == "schedules is required"
    )
    accepted(api.post("/users/scheduling", {"users": [{"id": "nobody"}]}, query_string=RANGE))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "users is required"),
        ({"users": None}, "users is required"),
        ({"users": "ada"}, "users must be an array"),
        ({"users": ["ada"]}, "users[0] must be an object"),
        ({"users": [{}]}, "users[0].id is required"),
        ({"users": [{"id": 12345}]}, "users[0].id must be a string"),
        ({"users": [{"id": "ad\x00a"}]}, "users[0].id must not contain control characters"),
        ({"users": [{"id": "ada\n"}]}, "users[0].id must not contain control characters"),
        ({"users": [{"id": "ada", "calendarIds": "primary"}]}, "users[0].calendarIds must be an array"),
        ({"users": [{"id": "ada", "calendarIds": [""]}]}, "users[0].calendarIds[0] must have 1 to 1024"),
        ({"users": [{"id": "ada"}] * 1001}, "users must have at most 1000 elements"),
    ],
)
def test_a_bad_list_of_users_is_refused_with_the_place(api, body, sentence):
    assert refused(api.post("/users/scheduling", body, query_string=RANGE)).startswith(sentence)


def test_no_users_are_no_entries(api):
    answer = api.post("/users/scheduling", {"users": []}, query_string=RANGE)

    assert (answer.status_code, answer.json["data"]) == (200, [])


# --- unknown parameters and fields


@pytest.mark.parametrize("route", TWO)
def test_unknown_parameters_are_ignored(ask, route):
    accepted(ask(route, foo="bar", **{"$select": "x", "data": "1", "_schema": "2"}))


def test_unknown_fields_of_a_body_are_ignored_at_any_depth(api):
    body = {"users": [{"id": "nobody", "name": "N", "schedules": [{**WEEK[0], "x": {}}]}], "extra": [1]}

    accepted(api.post("/users/scheduling", body, query_string=RANGE))


# --- identifiers in paths


@pytest.mark.parametrize(
    "user", ["ab", "-ada", ".ada", "a b c", "ada@example.com", "a" * 129, "ad\x00a", "adä", "ada\n"]
)
def test_a_user_id_that_cannot_exist_is_not_found(api, user):
    for path in ("", "/oauth", "/scheduling", "/calendar/busy"):
        answer = api.get(f"/users/{quote(user)}{path}", **RANGE)
        assert (answer.status_code, answer.json["error"]) == (404, "User not found")


@pytest.mark.parametrize("slug", ["ab", "_org", "Org-one", "org.one", "a" * 129, "örg", "org\n"])
def test_a_slug_that_cannot_exist_is_not_found(api, slug):
    for path in ("", "/members", "/scheduling", "/calendar/busy"):
        answer = api.get(f"/organizations/{quote(slug)}{path}", **RANGE)
        assert (answer.status_code, answer.json["error"]) == (404, "Organization not found")


def test_a_provider_in_a_path_is_one_of_two(api):
    for provider in ("yahoo", "Google", "google%20"):
        sentence = refused(api.get(f"/users/nobody/oauth/{provider}"))
        assert sentence == "provider must be one of google, microsoft, caldav, ics"
