"""Every scheduling route with random profiles, compared with an oracle that checks every minute.

The oracle knows profiles by their words alone: which minute of which local day is in the hours of a person,
which calendars count, and what the request states itself. Only a cache is shared, filled beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import holidays
import pytest

from app.availability.parameters import now_ms
from scheduling.intervals import Intervals
from scheduling.windows import MINUTE
from store.cache.busy_cache import BusyRead, CalendarKey
from store.sql.models import AvailabilityProfile
from store.stores import Stores
from tests.app.cached_people import MONDAYS, SEED, Person, milliseconds
from tests.scheduling import oracle

# Questions in the default run and in the long one, over all parts.
PARTS, FEW, ALL = 8, 12, 625
TODAY = datetime.fromisoformat("2026-10-01T12:00")
NOW = milliseconds("2026-10-01") + 12 * 60 * MINUTE + 7_001
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "Asia/Tokyo")
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
COUNTRIES = (("DE", None), ("DE", "BY"), ("US", None), ("JP", None), ("GB", "SCT"))
EDGES = ("00:00", "06:00", "09:00", "12:30", "17:00", "22:00", "23:30")

Json = dict[str, Any]


def random_window(random: Random) -> Json:
    start, end = random.sample(EDGES, 2)
    return {"start": start, "end": end}


def random_schedules(random: Random) -> list[Json]:
    return [
        {"days": random.sample(DAYS, random.randrange(8)), **random_window(random)}
        for _ in range(random.randrange(3))
    ]


def random_overrides(random: Random, around: date) -> list[Json]:
    days = sorted({around + timedelta(days=random.randrange(-2, 5)) for _ in range(random.randrange(1, 4))})
    return [
        {"date": f"{day}", "windows": [random_window(random) for _ in range(random.randrange(3))]}
        for day in days
    ]


def random_profile(random: Random, person: Person, around: date) -> Json:
    """A profile; every field is stated in about half of them."""
    profile: Json = {}
    if random.random() < 0.8:
        profile["timeZone"] = random.choice(ZONES)
    if random.random() < 0.6:
        profile["schedules"] = random_schedules(random)
    if random.random() < 0.4:
        profile["overrides"] = random_overrides(random, around)
    if random.random() < 0.4:
        country, subdivision = random.choice(COUNTRIES)
        profile["holidays"] = {"country": country, **({"subdivision": subdivision} if subdivision else {})}
    for name in ("paddingBefore", "paddingAfter"):
        if random.random() < 0.4:
            profile[name] = random.choice((0, 10, 45))
    if random.random() < 0.2:
        start = datetime.combine(around, datetime.min.time())
        profile["minimumNotice"] = (start - TODAY) // timedelta(minutes=1) + random.randrange(-300, 900)
    if random.random() < 0.4:
        some = random.sample(("primary", *SECOND), random.randrange(1, 3))
        profile["calendars"] = [{"connectionId": person.connection, "calendarId": each} for each in some]
    return profile


# Two calendars besides the main one.
SECOND = ("second@group.calendar.google.com", "third@group.calendar.google.com")


@cache
def holidays_of(country: str, subdivision: str | None, year: int):
    return holidays.country_holidays(country, subdiv=subdivision, years=year)


class Truth:
    """Single minutes by a person's profile and a request."""

    def __init__(
        self, person: Person, other: dict[str, list], profile: Json, request: Json, zone: str
    ) -> None:
        self.person, self.other, self.profile, self.request, self.zone = person, other, profile, request, zone
        self.own_zone = profile.get("timeZone", "UTC")

    def busy(self) -> list[list[tuple[int, int]]]:
        counting = [each["calendarId"] for each in self.profile.get("calendars") or ()] or ["primary"]
        of = {"primary": self.person.busy, **self.other}
        return [of[each] for each in counting]

    def margin(self, name: str) -> int:
        for stated in (self.request.get(name), self.request.get("padding"), self.profile.get(name)):
            if stated is not None:
                return int(stated) * MINUTE
        return 0

    def earliest(self) -> int | None:
        notice = self.request.get("minimumNotice", self.profile.get("minimumNotice"))
        return None if notice is None else -(-NOW // MINUTE) * MINUTE + int(notice) * MINUTE

    def holiday(self, day: date) -> bool:
        if (of := self.profile.get("holidays")) is None:
            return False
        return day in holidays_of(of["country"], of.get("subdivision"), day.year)

    def windows(self, day: date, weekly: list[Json] | None, dated: dict[str, list[Json]], closed: bool):
        """The windows that start on a day, of one source: ``closed`` if holidays close it."""
        if f"{day}" in dated:
            return [minutes(each) for each in dated[f"{day}"]]
        if closed and self.holiday(day):
            return []
        if weekly is None:
            return [(0, 1440)]
        return [minutes(each) for each in weekly if DAYS[day.weekday()] in each["days"]]

    def starts_in(self, at: int, zone: str, of_day) -> bool:
        wall = oracle.local(at, zone)
        into = wall.hour * 60 + wall.minute
        today, before = of_day(wall.date()), of_day(wall.date() - timedelta(days=1))
        return any(first <= into < last or last < first <= into for first, last in today) or any(
            into < last < first for first, last in before
        )

    def is_open(self, at: int) -> bool:
        """Whether the hours have the minute: of the request where it states them, else of the profile."""
        weekly, dated = self.request.get("schedules"), self.request.get("overrides")
        asked_zone = self.request.get("timeZone", self.zone)
        requested = None if dated is None else by_date(dated)
        own, mine = by_date(self.profile.get("overrides") or ()), self.profile.get("schedules")
        if weekly is None and requested is None:
            return self.starts_in(at, self.own_zone, lambda day: self.windows(day, mine, own, True))
        if weekly is None:
            return self.on_days_of(at, asked_zone, requested) or self.but_days_of(
                at,
                asked_zone,
                lambda day: f"{day}" in requested,
                self.own_zone,
                lambda day: self.windows(day, mine, {}, True),
            )
        if requested is None:
            closed = lambda day: f"{day}" in own or self.holiday(day)  # noqa: E731
            opened = own
        else:
            closed = lambda day: self.holiday(day) and f"{day}" not in requested  # noqa: E731
            opened = {}
        return self.on_days_of(at, self.own_zone, opened) or self.but_days_of(
            at,
            self.own_zone,
            closed,
            asked_zone,
            lambda day: self.windows(day, weekly, requested or {}, False),
        )

    def on_days_of(self, at: int, zone: str, dated: dict[str, list[Json]]) -> bool:
        """Whether the windows of replaced days have the minute."""
        return self.starts_in(at, zone, lambda day: [minutes(each) for each in dated.get(f"{day}", ())])

    def but_days_of(self, at: int, zone: str, replaced, other_zone: str, of_day) -> bool:
        """Whether other windows have the minute, which is on no replaced day."""
        return not replaced(oracle.local(at, zone).date()) and self.starts_in(at, other_zone, of_day)


def by_date(overrides) -> dict[str, list[Json]]:
    return {each["date"]: each["windows"] for each in overrides}


def minutes(window: Json) -> tuple[int, int]:
    start, end = (int(window[edge][:2]) * 60 + int(window[edge][3:]) for edge in ("start", "end"))
    return start, end or 1440


@pytest.fixture
def same_time(monkeypatch):
    for module in ("parameters", "profiles", "groups"):
        monkeypatch.setattr(f"app.availability.{module}.now_ms", lambda: NOW)


def slots_of(truth: Truth, query: Json) -> list[int]:
    """The starts of a person's slots, from the minutes of the range."""
    start, end = milliseconds_of(query["start"], truth.zone), milliseconds_of(query["end"], truth.zone)
    before, after = truth.margin("paddingBefore"), truth.margin("paddingAfter")
    earliest = truth.earliest()
    taken: set[int] = set()
    for calendar in truth.busy():
        for first, last in calendar:
            taken.update(range(max(start, first - before), min(end, last + after), MINUTE))
    edges = query.get("earliestTimeEachDay"), query.get("latestTimeEachDay")
    daily = (
        None if edges == (None, None) else minutes({"start": edges[0] or "00:00", "end": edges[1] or "00:00"})
    )
    free = [
        at
        for at in range(start, end, MINUTE)
        if at not in taken
        and (earliest is None or at >= earliest)
        and (daily is None or truth.starts_in(at, truth.zone, lambda _: [daily]))
        and truth.is_open(at)
    ]
    duration = int(query["slotDuration"]) * MINUTE
    starts = []
    for first, last in oracle.runs(free, MINUTE):
        if query.get("align") == "clock":
            starts += [
                at
                for at in range(first, last - duration + 1, MINUTE)
                if oracle.into_local_day(at, truth.zone) % duration == 0
            ]
        else:
            starts += range(first, last - duration + 1, duration)
    return starts


def milliseconds_of(text: str, zone: str) -> int:
    local = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return int(local.timestamp()) * 1000


def stamp(at: int) -> str:
    return f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%dT%H:%M:%S}.000Z"


class Question:
    """One question: the profiles of people, and a request about them."""

    def __init__(self, random: Random, people: list[Person], others: dict[str, dict[str, list]]) -> None:
        day = date.fromisoformat(random.choice(MONDAYS)) + timedelta(days=random.randrange(9))
        self.zone = random.choice(ZONES)
        length = random.choice((600, 1440, 2880))
        begin = datetime.combine(day, datetime.min.time()) + timedelta(minutes=random.choice((0, 0, 345)))
        self.query: Json = {
            "start": f"{begin:%Y-%m-%dT%H:%M:%S}",
            "end": f"{begin + timedelta(minutes=length):%Y-%m-%dT%H:%M:%S}",
            "slotDuration": str(random.choice((15, 30, 60))),
        }
        for name in ("padding", "paddingBefore", "paddingAfter"):
            if random.random() < 0.2:
                self.query[name] = str(random.choice((0, 15)))
        for name in ("earliestTimeEachDay", "latestTimeEachDay"):
            if random.random() < 0.2:
                self.query[name] = "08:00" if name.startswith("e") else "19:00"
        self.body: Json = {}
        if random.random() < 0.35:
            self.body["schedules"] = random_schedules(random)
        if random.random() < 0.35:
            self.body["overrides"] = random_overrides(random, day)
        self.ignore = random.random() < 0.1
        if self.ignore:
            self.query["profile"] = "ignore"
        self.people = people
        self.profiles = {
            each.id: random_profile(random, each, day) if random.random() < 0.8 else {} for each in people
        }
        self.others = others

    def starts(self, person: Person, **own: Any) -> list[int]:
        profile = {} if self.ignore else self.profiles[person.id]
        request = {**self.query, **self.body, **own}
        return slots_of(Truth(person, self.others[person.id], profile, request, self.zone), self.query)

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Timezone": self.zone}


def store(api, question: Question) -> None:
    """State the profiles of a question."""
    for person in question.people:
        profile = question.profiles[person.id]
        path = f"/users/{person.id}/availability"
        answer = api.put(path, profile)
        assert answer.status_code == 200, (profile, answer.json)


@pytest.fixture
def with_calendars(settings, cached_people) -> Iterator[dict[str, dict[str, list]]]:
    """The busy periods of two more calendars of each person, which are cached too."""
    random, found = Random(SEED), {}
    with Stores(replace(settings, busy_ttl_seconds=3600)) as stores:
        for person in (each for members in cached_people.values() for each in members):
            found[person.id] = {each: Person(random, person.id).busy for each in SECOND}
            keep(stores, person, found[person.id])
        yield found
        with stores.database.writing() as session:
            session.query(AvailabilityProfile).delete()


def keep(stores, person: Person, calendars: dict[str, list]) -> None:
    start, end = stores.busy.hull(milliseconds("2026-09-01"), milliseconds("2027-06-01"))
    generation = stores.busy.begin_reads([person.connection], {})[person.connection]
    with stores.redis.pipeline(transaction=False) as pipe:
        reads = [
            BusyRead(
                CalendarKey(person.connection, each),
                Intervals.of(oracle.merged(busy, MINUTE)),
                start,
                end,
                read_at=now_ms(),
                generation=generation,
            )
            for each, busy in calendars.items()
        ]
        stores.busy.store(pipe, reads)
        pipe.execute()


def agree(api, fast, people, others, random: Random, count: int) -> None:
    found = by_fast_path = profiled = 0
    for _ in range(count):
        slug, members = random.choice(list(people.items()))
        question = Question(random, members, others)
        store(api, question)
        route = random.choice((one_user, several_users, organization, groups))
        answer, expected = route(api, slug, question, random)
        assert answer.status_code == 200, (answer.json, vars(question))
        assert shown(answer.json["data"]) == expected, (route.__name__, vars(question))
        found += bool(answer.text.count('"start"') > 3)
        profiled += '"profile":true' in answer.text
        if route is one_user and not question.body:
            # The second request finds the profile cached.
            quick = fast.get(f"/users/{members[0].id}/scheduling", question.headers, **question.query)
            if quick is not None:
                by_fast_path += 1
                assert quick.json == answer.json
    assert found > count // 4
    assert profiled > count // 4
    assert by_fast_path or count < 20


def shown(data: Any) -> Any:
    if isinstance(data, list):
        assert {entry["status"] for entry in data} == {"ok"}, data
        return [[each["start"] for each in entry["availableSlots"]] for entry in data]
    return [(each["start"], each.get("userId", each.get("users"))) for each in data["availableSlots"]]


def one_user(api, slug, question, random):
    person = question.people[0]
    expected = [(stamp(at), None) for at in question.starts(person)]
    path = f"/users/{person.id}/scheduling"
    if not question.body:
        return api.get(path, question.headers, **question.query), expected
    return api.post(path, question.body, headers=question.headers, query_string=question.query), expected


def several_users(api, slug, question, random):
    entries, expected = [], []
    for person in question.people:
        own: Json = {}
        if random.random() < 0.4:
            own["timeZone"] = random.choice(ZONES)
        if random.random() < 0.3:
            own["schedules"] = random_schedules(random)
        entries.append({"id": person.id, **own})
        expected.append([stamp(at) for at in question.starts(person, **own)])
    body = {"users": entries, **question.body}
    answer = api.post("/users/scheduling", body, headers=question.headers, query_string=question.query)
    return answer, expected


def organization(api, slug, question, random):
    expected = sorted((at, each.id) for each in question.people for at in question.starts(each))
    path = f"/organizations/{slug}/scheduling"
    if question.body:
        answer = api.post(path, question.body, headers=question.headers, query_string=question.query)
    else:
        answer = api.get(path, question.headers, **question.query)
    return answer, [(stamp(at), user) for at, user in expected]


def groups(api, slug, question, random):
    question.query["align"] = "clock"
    own: Json = {}
    if random.random() < 0.3:
        own = {"timeZone": random.choice(ZONES), "schedules": random_schedules(random)}
    required = random.choice((1, 2, "all"))
    group = random.choice(({"organization": slug}, {"users": [each.id for each in question.people]}))
    body = {"participants": [{**group, "required": required, **own}], **question.body}
    starts = {each.id: question.starts(each, **own) for each in question.people}
    least = len(question.people) if required == "all" else required
    users = sorted(starts) if "organization" in group else list(starts)
    expected = []
    for at in sorted({at for each in starts.values() for at in each}):
        free = [user for user in users if at in starts[user]]
        if len(free) >= least:
            expected.append((stamp(at), free))
    answer = api.post("/scheduling", body, headers=question.headers, query_string=question.query)
    return answer, expected


@pytest.mark.parametrize("part", range(PARTS))
def test_every_route_agrees_with_the_oracle(api, fast, cached_people, with_calendars, same_time, part):
    agree(api, fast, cached_people, with_calendars, Random(SEED + part), FEW)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
def test_it_does_over_5000_questions(api, fast, cached_people, with_calendars, same_time, part):
    agree(api, fast, cached_people, with_calendars, Random(SEED + 100 + part), ALL)
