"""What the explorer asks: its form read as the API reads a query, and the API call that asks the same."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

import orjson
from marshmallow import Schema, ValidationError, fields
from werkzeug.datastructures import MultiDict

from app.availability import request as asked
from app.dashboard.forms import Body
from app.http.errors import Invalid
from app.schemas.availability import WEEKDAYS, OrganizationSlotsQuery, WindowSchema
from app.schemas.fields import SLUG, USER_ID, Clock, Identifier, IntegerText, Parsed, Word, Zone
from app.schemas.timestamps import FIRST_YEAR, LAST_YEAR, OUT_OF_YEARS
from scheduling.json_render import timestamp
from scheduling.query import Query

# People whom one picture shows; more do not fit a screen, and each costs a read.
MOST_SHOWN = 100
# The call for several users, which has no explanations.
SEVERAL = "/v1/users/scheduling"
DAYS = ("1", "3", "5", "7", "14")


class Names(Parsed[tuple[str, ...]]):
    """Identifiers of users, as people write lists: with commas, spaces or both."""

    def __init__(self, **options: Any) -> None:
        super().__init__(shape={}, **options)

    def parse(self, text: str) -> tuple[str, ...]:
        """Each once, in order."""
        names = tuple(dict.fromkeys(name for name in re.split(r"[\s,;]+", text) if name))
        for name in names:
            if not USER_ID.fullmatch(name):
                raise ValidationError(f"holds {name[:40]!r}, which is no user's identifier")
        if len(names) > MOST_SHOWN:
            raise ValidationError(f"must name at most {MOST_SHOWN} users")
        return names


def _within_years(day: date) -> None:
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise ValidationError(OUT_OF_YEARS)


class ExplorerForm(Body):
    """The explorer's own fields; those of a slot are the API's."""

    organization = Identifier(SLUG)
    users = Names(load_default=())
    zone = Zone(load_default=ZoneInfo("UTC"))
    day = fields.Date(validate=_within_years, error_messages={"invalid": "must be a date"})
    days = Word(DAYS, load_default="7")
    window = Word(("none", "daily", "weekly"), load_default="daily")
    earliestTimeEachDay = Clock(load_default=9 * 60)
    latestTimeEachDay = Clock(load_default=17 * 60)
    slotDuration = IntegerText(least=1, most=10_080, load_default=30)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of whom; ``query`` is as the API's schema reads it, ``asked`` as its caller writes it."""

    organization: str | None
    users: tuple[str, ...]
    zone: ZoneInfo
    first: date
    days: int
    asked: Mapping[str, str]
    query: Mapping[str, Any]
    schedules: Sequence[Mapping[str, Any]] | None
    engine: Query = field(repr=False)

    @property
    def nobody(self) -> bool:
        """Whether nobody has been chosen yet."""
        return self.organization is None and not self.users

    def hours(self) -> tuple[int, int]:
        """The hours of a day that hold every window, and one on either side."""
        engine = self.engine
        windows = engine.windows if engine.each_day is None else (engine.each_day,)
        if not windows or any(each.earliest > each.latest for each in windows):
            return 0, 24
        first = min(each.earliest for each in windows) // 60
        last = -(-max(each.latest for each in windows) // 60)
        return max(0, first - 1), min(24, last + 1)

    def curl(self, base: str, people: Sequence[str]) -> str:
        """A line that asks the API the same of ``people``, who are shown, the key being in ``$KEY``.

        The API takes weekly hours of users alone: those of an organization are named.
        """
        named = self if self.schedules is None else replace(self, organization=None, users=tuple(people))
        path, body = named._call()
        return self._line(f"{base}{path}", self.asked, body)

    def explain_curl(self, base: str, person: str, at: int) -> str | None:
        """A line that asks why at a moment; None where the API cannot be asked in one call."""
        one = replace(self, organization=None, users=(person,)) if person else self
        path, body = one._call()
        if path == SEVERAL:
            return None
        return self._line(f"{base}{path}/explain", {**self.asked, "at": timestamp(at)}, body)

    def _line(self, url: str, query: Mapping[str, str], body: Mapping[str, Any] | None) -> str:
        lines = ['curl -s -H "Authorization: Bearer $KEY"', f"-H 'x-timezone: {self.zone}'"]
        if body is not None:
            lines += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(orjson.dumps(body).decode())}"]
        lines.append(shlex.quote(f"{url}?{urlencode(query, safe=':')}"))
        return " \\\n  ".join(lines)

    def _call(self) -> tuple[str, dict[str, Any] | None]:
        schedules = None if self.schedules is None else asked.echoed_schedules(self.schedules)
        if self.organization is not None and schedules is None:
            return f"/v1/organizations/{quote(self.organization)}/scheduling", None
        if len(self.users) == 1:
            body = None if schedules is None else {"schedules": schedules}
            return f"/v1/users/{quote(self.users[0], safe='')}/scheduling", body
        body = {"users": [{"id": user} for user in self.users]}
        return SEVERAL, body if schedules is None else body | {"schedules": schedules}


def moment(day: date, zone: ZoneInfo, hour: int) -> int:
    """When a day's clock first shows a full hour, 24 being the next day's midnight; in milliseconds."""
    shown = datetime(day.year, day.month, day.day, tzinfo=zone) + timedelta(hours=hour)
    return round(shown.timestamp() * 1000)


def today(sent: Mapping[str, str]) -> date:
    """Today, in the zone of a query string."""
    name = sent.get("zone", "")
    try:
        zone = Zone().parse(name) if name else ZoneInfo("UTC")
    except ValidationError:
        # The question itself will complain of it.
        zone = ZoneInfo("UTC")
    return datetime.now(zone).date()


def read(sent: MultiDict[str, str], today: date) -> Question:
    """The question of a query string.

    :raise Invalid: naming the field
    """
    given = {name: value for name, value in sent.items() if value.strip()}
    form = _load(ExplorerForm, given)
    first = form.get("day") or today
    asks = _asked(given, form, first)
    query = _load(OrganizationSlotsQuery, asks)
    organization = None if form["users"] else form.get("organization")
    schedules = _schedules(given, form)
    if schedules is not None:
        # The form has the hours of one of the two.
        asks = {name: value for name, value in asks.items() if not name.endswith("TimeEachDay")}
        query = _load(OrganizationSlotsQuery, asks)
    _check_there(query, form["zone"])
    engine = asked.slot_query(query, form["zone"], schedules)
    asked.check_size({engine: len(form["users"]) or MOST_SHOWN})
    return Question(
        organization,
        form["users"],
        form["zone"],
        first,
        int(form["days"]),
        asks,
        query,
        schedules,
        engine,
    )


def _check_there(query: Mapping[str, Any], zone: ZoneInfo) -> None:
    if query["start"].milliseconds(zone) == query["end"].milliseconds(zone):
        raise Invalid(f"First day must be one that {zone} has: its clocks left this one out")


def _asked(given: Mapping[str, str], form: Mapping[str, Any], first: date) -> dict[str, str]:
    """The query of the API's call; what is the default there is left out."""
    asks = {"start": f"{first}", "end": f"{first + timedelta(days=int(form['days']))}"}
    asks["slotDuration"] = given.get("slotDuration", "30")
    for name, default in (("padding", "0"), ("maxOverlaps", "0"), ("slotStep", ""), ("align", "start")):
        if given.get(name, default) != default:
            asks[name] = given[name]
    if form["window"] == "daily":
        for name in ("earliestTimeEachDay", "latestTimeEachDay"):
            asks[name] = asked.clock(form[name])
    return asks


def _schedules(given: Mapping[str, str], form: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The weekly schedules; of several users, a daily window is asked for as one."""
    if form["window"] == "daily" and len(form["users"]) > 1:
        edges = {"start": form["earliestTimeEachDay"], "end": form["latestTimeEachDay"]}
        return [{"days": list(WEEKDAYS), **edges}]
    if form["window"] != "weekly":
        return None
    days_of: dict[tuple[str, str], list[str]] = {}
    for day in WEEKDAYS:
        edge = given.get(f"{day}From", ""), given.get(f"{day}To", "")
        if any(edge):
            days_of.setdefault(edge, []).append(day)
    return [
        _load(WindowSchema, {"days": days, "start": start, "end": end}, of=days[0].title())
        for (start, end), days in days_of.items()
    ]


def _load(schema: type[Schema], given: Mapping[str, Any], of: str = "") -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = _made(schema).load(given)
    except ValidationError as error:
        name, messages = next(iter(error.messages_dict.items()))
        while not isinstance(messages, str):
            messages = next(iter(messages.values() if isinstance(messages, dict) else messages))
        messages = messages.replace("earliestTimeEachDay", "its start")
        called = f"{of} {name}" if of else _LABELS.get(name, name)
        raise Invalid(f"{called} {messages}") from error
    return loaded


@cache
def _made(schema: type[Schema]) -> Schema:
    """One schema for all questions: making one takes longer than reading with it."""
    return schema()


_LABELS = {
    "organization": "Organization",
    "users": "Users",
    "zone": "Time zone",
    "day": "First day",
    "days": "Days",
    "window": "Hours",
    "end": "The last day",
    "earliestTimeEachDay": "The daily window's start",
    "latestTimeEachDay": "The daily window's end",
    "slotDuration": "Slot length",
    "padding": "Padding",
    "maxOverlaps": "Overlaps",
    "slotStep": "Step",
    "align": "Start",
}
