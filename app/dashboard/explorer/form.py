"""The explorer's form, parsed by the API's schemas, and the equivalent API call as a curl command."""

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

from app.availability import parameters
from app.dashboard.forms import Body
from app.http.errors import Invalid
from app.schemas.availability import WEEKDAYS, OrganizationSlotsQuery, WindowSchema
from app.schemas.fields import SLUG, USER_ID, Clock, Identifier, IntegerText, Parsed, Text, Word, Zone
from app.schemas.timestamps import FIRST_YEAR, LAST_YEAR, OUT_OF_YEARS
from scheduling.json_render import timestamp
from scheduling.query import Query

# The most users in one picture: more do not fit a screen, and each costs a read.
MAX_SHOWN = 100
DAYS = ("1", "3", "5", "7", "14")
WORKDAYS = WEEKDAYS[:5]
# Which days and hours are offered; "workdays" are Monday to Friday.
WINDOWS = ("workdays", "none", "daily", "weekly")
EDGES = ("earliestTimeEachDay", "latestTimeEachDay")
# The order of the lanes.
SORTS = ("listed", "most", "fewest", "unread")
# All people have to be free.
ALL = "all"

# The fields that are arguments of the API unless they have its default.
DEFAULTS = {
    "padding": "0",
    "paddingBefore": "",
    "paddingAfter": "",
    "maxOverlaps": "0",
    "slotStep": "",
    "align": "start",
    "minimumNotice": "",
    "limit": "",
}
LABELS = {
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
    "paddingBefore": "Padding before",
    "paddingAfter": "Padding after",
    "maxOverlaps": "Overlaps",
    "slotStep": "Step",
    "align": "Start",
    "minimumNotice": "Notice",
    "limit": "Limit",
    "together": "Free together",
    "find": "Filter",
    "sort": "Order",
    "skip": "People before these",
}


class Names(Parsed[tuple[str, ...]]):
    """User ids in one text field, separated by commas, semicolons or spaces."""

    def __init__(self, **options: Any) -> None:
        super().__init__(shape={}, **options)

    def parse(self, text: str) -> tuple[str, ...]:
        """The distinct ids, in order."""
        names = tuple(dict.fromkeys(name for name in re.split(r"[\s,;]+", text) if name))
        for name in names:
            if not USER_ID.fullmatch(name):
                raise ValidationError(f"holds {name[:160]!r}, which is no user's identifier")
        if len(names) > MAX_SHOWN:
            raise ValidationError(f"must name at most {MAX_SHOWN} users")
        return names


class Together(Parsed[str]):
    """How many people have to be free together: ``all``, or a number."""

    def __init__(self, **options: Any) -> None:
        super().__init__(shape={}, **options)

    def parse(self, text: str) -> str:
        """``all``, or the digits of the number."""
        if text.lower() == ALL:
            return ALL
        if not (text.isascii() and text.isdecimal() and 1 <= int(text[:4]) <= MAX_SHOWN):
            raise ValidationError(f"must be all, or a number from 1 to {MAX_SHOWN}")
        return str(int(text))


def _within_years(day: date) -> None:
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise ValidationError(OUT_OF_YEARS)


class ExplorerForm(Body):
    """The explorer's own fields. The API's schema parses the fields that describe slots."""

    organization = Identifier(SLUG)
    users = Names(load_default=())
    zone = Zone(load_default=ZoneInfo("UTC"))
    day = fields.Date(validate=_within_years, error_messages={"invalid": "must be a date"})
    days = Word(DAYS, load_default="7")
    window = Word(WINDOWS)
    earliestTimeEachDay = Clock(load_default=9 * 60)
    latestTimeEachDay = Clock(load_default=17 * 60)
    slotDuration = IntegerText(least=1, most=10_080, load_default=30)
    together = Together()
    find = Text(longest=128, load_default="")
    sort = Word(SORTS, load_default=SORTS[0])
    skip = IntegerText(least=0, most=1_000_000, load_default=0)


# The API call for several users. It has no explanations.
SEVERAL = "/v1/users/scheduling"
GROUPS = "/v1/scheduling"


@dataclass(frozen=True, slots=True)
class ExplorerQuery:
    """The form, parsed: ``arguments`` is the query string of the API, and ``params`` is the same, loaded.

    ``slot_query`` is the query for the scheduling engine, which includes ``schedules``. ``together`` is
    ``ALL`` or the number of people who have to be free together; None: slots of each person. ``find`` limits
    an organization to members whose id or address has this text; ``sort`` is the order of the lanes,
    ``skip`` the number of members before the first one shown.
    """

    organization: str | None
    users: tuple[str, ...]
    zone: ZoneInfo
    first: date
    days: int
    arguments: Mapping[str, str]
    params: Mapping[str, Any]
    schedules: Sequence[Mapping[str, Any]] | None
    slot_query: Query = field(repr=False)
    together: str | None = None
    find: str = ""
    sort: str = SORTS[0]
    skip: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether neither an organization nor users are chosen."""
        return self.organization is None and not self.users

    def hours(self) -> tuple[int, int]:
        """The first and last hour of a day to show: all windows, and an hour on either side."""
        slot_query = self.slot_query
        windows = slot_query.windows if slot_query.each_day is None else (slot_query.each_day,)
        if not windows or any(each.earliest > each.latest for each in windows):
            return 0, 24
        first = min(each.earliest for each in windows) // 60
        last = -(-max(each.latest for each in windows) // 60)
        return max(0, first - 1), min(24, last + 1)

    def curl(self, base: str, people: Sequence[str], *, partial: bool = False) -> str:
        """A curl command for the same query about ``people``, the users shown, with the key in ``$KEY``.

        The API's call for an organization takes no weekly hours, and no part of its members: then the command
        names them.
        """
        by_name = partial or bool(self.find) or (self.schedules is not None and self.together is None)
        named = replace(self, organization=None, users=tuple(people)) if by_name else self
        path, body = named._call()
        return self._line(f"{base}{path}", self.arguments, body)

    def explain_curl(self, base: str, person: str, at: int) -> str | None:
        """A curl command for the explanation of a moment; None where the API has no single call for it."""
        if not person and (self.find or self.skip):
            return None
        one = replace(self, organization=None, users=(person,), together=None) if person else self
        path, body = one._call()
        if path == SEVERAL:
            return None
        return self._line(f"{base}{path}/explain", {**self.arguments, "at": timestamp(at)}, body)

    def _line(self, url: str, params: Mapping[str, str], body: Mapping[str, Any] | None) -> str:
        lines = ['curl -s -H "Authorization: Bearer $KEY"', f"-H 'x-timezone: {self.zone}'"]
        if body is not None:
            lines += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(orjson.dumps(body).decode())}"]
        lines.append(shlex.quote(f"{url}?{urlencode(params, safe=':')}"))
        return " \\\n  ".join(lines)

    def _call(self) -> tuple[str, dict[str, Any] | None]:
        schedules = None if self.schedules is None else parameters.echoed_schedules(self.schedules)
        if self.together is not None:
            return GROUPS, self._group() | ({} if schedules is None else {"schedules": schedules})
        if self.organization is not None and schedules is None:
            return f"/v1/organizations/{quote(self.organization)}/scheduling", None
        if len(self.users) == 1:
            body = None if schedules is None else {"schedules": schedules}
            return f"/v1/users/{quote(self.users[0], safe='')}/scheduling", body
        body = {"users": [{"id": user} for user in self.users]}
        return SEVERAL, body if schedules is None else body | {"schedules": schedules}

    def _group(self) -> dict[str, Any]:
        named = {"users": self.users} if self.organization is None else {"organization": self.organization}
        required = ALL if self.together == ALL else int(self.together or 0)
        return {"participants": [{**named, "required": required}]}


def moment(day: date, zone: ZoneInfo, hour: int) -> int:
    """When a day's clock first shows a full hour, in milliseconds; hour 24 is the next day's midnight."""
    local = datetime(day.year, day.month, day.day, tzinfo=zone) + timedelta(hours=hour)
    return round(local.timestamp() * 1000)


def today(form_values: Mapping[str, str]) -> date:
    """Today's date in the time zone of a query string."""
    name = form_values.get("zone", "")
    try:
        zone = Zone().parse(name) if name else ZoneInfo("UTC")
    except ValidationError:
        # ``read`` reports the error.
        zone = ZoneInfo("UTC")
    return datetime.now(zone).date()


def first_day(form_values: Mapping[str, str]) -> date:
    """The first day if none is chosen: that of the moment to explain, else today."""
    try:
        day = date.fromisoformat(form_values.get("moment", "")[:10])
    except ValueError:
        return today(form_values)
    return day if FIRST_YEAR <= day.year <= LAST_YEAR else today(form_values)


def read(form_values: MultiDict[str, str]) -> ExplorerQuery:
    """Parse a query string.

    :raise ApiError: naming the field, or for a range with too many slots
    """
    values = {name: value for name, value in form_values.items() if value.strip()}
    form = _load(ExplorerForm, values)
    form["window"] = window(values)
    first = form.get("day") or first_day(form_values)
    arguments = _arguments(values, form, first)
    params = _load(OrganizationSlotsQuery, arguments)
    organization = None if form["users"] else form.get("organization")
    schedules = _schedules(values, form)
    if schedules is not None:
        # Schedules replace the daily window.
        arguments = {name: value for name, value in arguments.items() if not name.endswith("TimeEachDay")}
        params = _load(OrganizationSlotsQuery, arguments)
    _check_days_exist(params, form["zone"])
    slot_query = parameters.slot_query(params, form["zone"], parameters.RequestedHours(schedules))
    parameters.check_slot_count({slot_query: len(form["users"]) or MAX_SHOWN})
    return ExplorerQuery(
        organization,
        form["users"],
        form["zone"],
        first,
        int(form["days"]),
        arguments,
        params,
        schedules,
        slot_query,
        form.get("together"),
        form["find"].strip() if organization is not None else "",
        form["sort"],
        form["skip"] if organization is not None else 0,
    )


def window(form_values: Mapping[str, str]) -> str:
    """The chosen hours. Without a choice, working days; with only the edges of a day, every day."""
    return form_values.get("window") or (
        "daily" if any(form_values.get(name) for name in EDGES) else WINDOWS[0]
    )


def _check_days_exist(params: Mapping[str, Any], zone: ZoneInfo) -> None:
    if params["start"].milliseconds(zone) == params["end"].milliseconds(zone):
        sentence = f"First day must be one that {zone} has: its clocks left this one out"
        raise Invalid(sentence, param="day")


def _arguments(values: Mapping[str, str], form: Mapping[str, Any], first: date) -> dict[str, str]:
    """The query string of the API call, without arguments that have the API's default."""
    arguments = {"start": f"{first}", "end": f"{first + timedelta(days=int(form['days']))}"}
    arguments["slotDuration"] = values.get("slotDuration", "30")
    for name, default in DEFAULTS.items():
        if values.get(name, default) != default:
            arguments[name] = values[name]
    if "together" in form:
        # Shared slots are always on the clock.
        arguments.pop("align", None)
    if form["window"] == "daily":
        for name in EDGES:
            arguments[name] = parameters.clock(form[name])
    return arguments


def _schedules(values: Mapping[str, str], form: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The weekly schedules, or None. A daily window for several users becomes a schedule too."""
    if form["window"] == "workdays" or (form["window"] == "daily" and len(form["users"]) > 1):
        days = WORKDAYS if form["window"] == "workdays" else WEEKDAYS
        start, end = (parameters.clock(form[name]) for name in EDGES)
        hours = {"days": list(days), "start": start, "end": end}
        return [_load(WindowSchema, hours, of="The daily window's")]
    if form["window"] != "weekly":
        return None
    days_of: dict[tuple[str, str], list[str]] = {}
    for day in WEEKDAYS:
        edge = values.get(f"{day}From", ""), values.get(f"{day}To", "")
        if any(edge):
            days_of.setdefault(edge, []).append(day)
    return [
        _load(WindowSchema, {"days": days, "start": start, "end": end}, of=days[0].title())
        for (start, end), days in days_of.items()
    ]


def _load(schema: type[Schema], values: Mapping[str, Any], of: str = "") -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = _instance(schema).load(values)
    except ValidationError as error:
        name, messages = next(iter(error.messages_dict.items()))
        while not isinstance(messages, str):
            messages = next(iter(messages.values() if isinstance(messages, dict) else messages))
        messages = messages.replace("earliestTimeEachDay", "its start")
        label = f"{of} {name}" if of else LABELS.get(name, name)
        raise Invalid(f"{label} {messages}", param=name) from error
    return loaded


@cache
def _instance(schema: type[Schema]) -> Schema:
    """The shared instance of a schema: creating one takes longer than loading with it."""
    return schema()
