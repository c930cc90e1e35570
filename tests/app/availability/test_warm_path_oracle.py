"""The warm path compared with a plain one, over random queries.

The plain path has no shortcuts: marshmallow parses the query and dumps the answer, an oracle that checks
every minute finds the free time, and busy periods are lists in plain Python. The two paths share only a
cache that is filled beforehand. The fast path of the server's event loop has to agree too.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest
from marshmallow import EXCLUDE, RAISE, ValidationError
from werkzeug.datastructures import MultiDict

from app.http import parsing
from app.schemas.availability import OrganizationSlotsQuery, UserSlotsQuery, UsersSlotsQuery, ZoneHeader
from app.schemas.availability_answers import OrganizationSlotsAnswer, UserSlotsAnswer, UsersSlotsAnswer
from app.schemas.timestamps import EPOCH, MILLISECOND
from scheduling.query import Query
from scheduling.windows import MINUTE, Window
from tests.app.cached_people import MONDAYS, SEED, Person
from tests.scheduling import oracle

pytestmark = pytest.mark.slow

# Parts, which the processes of the test run share, and queries in each part: 2 000 take half a minute.
PARTS = 8
FEW, ALL = 12, 250
# The time of every request; a few seconds after a full minute.
TODAY = datetime.fromisoformat("2026-10-01T12:00")
NOW = (TODAY.replace(tzinfo=EPOCH.tzinfo) - EPOCH) // MILLISECOND + 7_001
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe")


def random_query(random: Random) -> tuple[dict[str, str], dict[str, str]]:
    """A random query, in one of the notations that the API accepts."""
    day = datetime.fromisoformat(random.choice(MONDAYS)) + timedelta(days=random.randrange(9))
    start = day + timedelta(minutes=random.choice((0, 0, 540, random.randrange(1440))))
    end = start + timedelta(minutes=random.choice((60, 480, 1440, random.randrange(1, 2500))))
    suffix = random.choice(("", "", "Z", "+02:00"))
    query = {"start": f"{start:%Y-%m-%dT%H:%M:%S}{suffix}", "end": f"{end:%Y-%m-%dT%H:%M:%S}{suffix}"}
    if random.random() < 0.8:
        query["slotDuration"] = str(random.choice((5, 15, 30, 45, 60, 90)))
    if random.random() < 0.6:
        query["padding"] = str(random.choice((0, 5, 10, 30, 240)))
    if random.random() < 0.3:
        query["maxOverlaps"] = str(random.choice((0, 1, 2)))
    for name in ("paddingBefore", "paddingAfter"):
        if random.random() < 0.2:
            query[name] = str(random.choice((0, 10, 90)))
    if random.random() < 0.2:
        notice = (start - TODAY) // timedelta(minutes=1) + random.randrange(-300, 200)
        query["minimumNotice"] = str(notice)
    if random.random() < 0.2:
        query["limit"] = str(random.choice((1, 2, 5, 50)))
    if random.random() < 0.3:
        query["slotStep"] = str(random.choice((5, 15, 20, 60)))
    if random.random() < 0.2:
        query["align"] = random.choice(("clock", "start"))
    if random.random() < 0.6:
        query["earliestTimeEachDay"] = random.choice(("09:00", "9:30", "22:00"))
    if random.random() < 0.6:
        query["latestTimeEachDay"] = random.choice(("17:00", "12:15", "06:00"))
    if random.random() < 0.3:
        query[random.choice(("provider", "provider[]"))] = "google,microsoft"
    return query, {} if random.random() < 0.2 else {"X-Timezone": random.choice(ZONES)}


def plain_question(loaded: dict, zone: ZoneInfo) -> Query:
    """The engine's query for the parameters, built by hand."""
    earliest, latest = loaded.get("earliestTimeEachDay"), loaded.get("latestTimeEachDay")
    windows = None
    if earliest is not None or latest is not None:
        windows = (Window.daily(earliest or 0, 1440 if latest is None else latest),)
    return Query(
        start=loaded["start"].milliseconds(zone),
        end=loaded["end"].milliseconds(zone),
        duration=loaded["slotDuration"] * MINUTE,
        padding_before=loaded.get("paddingBefore", loaded["padding"]) * MINUTE,
        padding_after=loaded.get("paddingAfter", loaded["padding"]) * MINUTE,
        max_overlaps=loaded["maxOverlaps"],
        zone=str(zone),
        windows=windows,
        step=loaded["slotStep"] * MINUTE if "slotStep" in loaded else None,
        align_clock=loaded["align"] == "clock",
        not_before=earliest_start(loaded.get("minimumNotice")),
        limit=loaded.get("limit"),
    )


def earliest_start(notice: int | None) -> int | None:
    """The first whole minute that is not too soon."""
    if notice is None:
        return None
    return next(at for at in range(NOW, NOW + MINUTE) if at % MINUTE == 0) + notice * MINUTE


def plain_slots(query: Query, person: Person) -> list[dict]:
    """A member's slots, as the schema of the answer dumps them."""
    low, high = query.start - query.padding_after, query.end + query.padding_before
    near = [(start, end) for start, end in person.busy if end > low and start < high]
    starts = oracle.slots_of(query, [near])
    return [{"start": moment(at), "end": moment(at + query.duration)} for at in starts]


def moment(time: int) -> datetime:
    return EPOCH + time * MILLISECOND


def plain_options(loaded: dict, query: Query) -> dict:
    options = {name: loaded[name] for name in ("padding", "maxOverlaps", "slotDuration")}
    options |= {"start": moment(query.start), "end": moment(query.end), "timeZone": query.zone}
    for name in ("earliestTimeEachDay", "latestTimeEachDay"):
        if name in loaded:
            options[name] = f"{loaded[name] // 60:02}:{loaded[name] % 60:02}"
    for name in ("slotStep", "paddingBefore", "paddingAfter", "minimumNotice", "limit"):
        if name in loaded:
            options[name] = loaded[name]
    return options | ({"align": "clock"} if query.align_clock else {})


def plain_parameters(schema: type[parsing.QuerySchema], query: dict, headers: dict) -> tuple[dict, Query]:
    """The query parsed by marshmallow, with which the fast path has to agree.

    :raise ValidationError, ValueError: if the answer is 400
    """
    flat = MultiDict([(name.removesuffix("[]"), value) for name, value in query.items()])
    lists = {name: flat.getlist(name) for name in flat if name == "provider"}
    try:
        loaded = schema().load({**flat, **lists}, unknown=EXCLUDE)
    except ValidationError:
        assert parsing.read(schema(), flat) is None
        raise
    assert parsing.read(schema(), flat) == loaded
    return loaded, plain_question(loaded, ZoneHeader().load(headers)["zone"])


def plain_answer(route: str, people: list[Person], query: dict, headers: dict) -> dict | None:
    """The answer of the plain path; None for 400."""
    schema = {"user": UserSlotsQuery, "users": UsersSlotsQuery, "organization": OrganizationSlotsQuery}[route]
    try:
        loaded, engine_query = plain_parameters(schema, query, headers)
    except (ValidationError, ValueError):
        return None
    options, slots = plain_options(loaded, engine_query), [plain_slots(engine_query, each) for each in people]
    if route == "user":
        return UserSlotsAnswer().dump(
            {"data": {"availableSlots": slots[0], "options": options}, "failedCalendars": []}
        )
    if route == "organization":
        found = [
            slot | {"userId": each.id} for each, mine in zip(people, slots, strict=True) for slot in mine
        ]
        found.sort(key=lambda slot: (slot["start"], slot["userId"]))
        return OrganizationSlotsAnswer().dump(
            {"data": {"availableSlots": found, "options": options}, "failedUsers": []}
        )
    entries = [
        {
            "userId": each.id,
            "status": "ok",
            "availableSlots": mine,
            "options": options,
            "calendarIds": [f"{each.id}@plain.example"],
            "schedules": [],
            "failedCalendars": [],
        }
        for each, mine in zip(people, slots, strict=True)
    ]
    return UsersSlotsAnswer().dump({"data": entries})


SCHEMAS = {"user": UserSlotsAnswer, "users": UsersSlotsAnswer, "organization": OrganizationSlotsAnswer}


def ask(api, route, slug, members, query, headers):
    if route == "user":
        return api.get(f"/users/{members[0].id}/scheduling", headers, **query)
    if route == "organization":
        return api.get(f"/organizations/{slug}/scheduling", headers, **query)
    body = {"users": [{"id": each.id} for each in members]}
    return api.call("POST", "/users/scheduling", headers=headers, json=body, query_string=query)


@pytest.fixture
def same_time(monkeypatch):
    monkeypatch.setattr("app.availability.parameters.now_ms", lambda: NOW)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_warm_path_answers_as_the_plain_one_does(api, fast, cached_people, same_time, part):
    agree(api, fast, cached_people, Random(SEED + part), FEW)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_it_does_over_2000_queries(api, fast, cached_people, same_time, part):
    agree(api, fast, cached_people, Random(SEED + part), ALL)


def agree(api, fast, people, random, queries):
    """Compare both paths over ``queries`` random queries."""
    refused = found = by_fast_path = 0
    for _ in range(queries):
        slug, members = random.choice(list(people.items()))
        route = random.choice(("user", "user", "user", "users", "organization"))
        users = [random.choice(members)] if route == "user" else members
        query, headers = random_query(random)

        answer = ask(api, route, slug, users, query, headers)
        expected = plain_answer(route, users, query, headers)

        quick = fast.get(f"/users/{users[0].id}/scheduling", headers, **query) if route == "user" else None

        if expected is None:
            assert quick is None
            assert answer.status_code == 400, (query, headers)
            refused += 1
            continue
        assert answer.status_code == 200, (query, headers, answer.text)
        # The schema in the OpenAPI document accepts every answer, without unknown fields.
        SCHEMAS[route]().load(answer.json, unknown=RAISE)
        assert answer.json == json.loads(json.dumps(expected)), (route, query, headers)
        if quick is not None:
            by_fast_path += 1
            assert quick.json == answer.json, (query, headers)
            assert without_moments(quick.headers) == without_moments(answer.headers)
        found += 'availableSlots":[{' in answer.text
    # Two requests of five are for one user and have no name that ends in brackets.
    assert by_fast_path > queries // 4
    # Most queries are valid, and most answers have slots.
    assert found > queries // 2 > 5 * refused


def without_moments(headers):
    """The headers that depend on the request alone."""
    return {
        name.title(): value for name, value in headers.items() if name.title() not in ("Age", "X-Request-Id")
    }
