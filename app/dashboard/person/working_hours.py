"""The page of what counts for a user: hours of the week, dates, calendars and margins.

The form is sent as the body of the API's route, which validates and stores it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from flask import request
from flask.typing import ResponseReturnValue
from marshmallow import ValidationError
from werkzeug.datastructures import MultiDict

from app.accounts import availability_profiles
from app.availability import connections
from app.dashboard import forms
from app.dashboard.blueprint import blp, done, page
from app.dashboard.explorer.pages import zone_names
from app.dashboard.person.calendars import account_names, advice_for, failed_calendars
from app.dashboard.users import get_user
from app.events import lists
from app.http.authentication import authentication, caller
from app.http.error_handlers import Path, field_errors
from app.http.errors import ApiError, Invalid, NotFound, PreconditionFailed
from app.http.routes import route_facts
from app.schemas.availability import WEEKDAYS
from app.schemas.availability_profiles import ProfileBody, profile_view
from app.services import services
from providers.base import PRIMARY
from store.sql.models import Role, User
from store.sql.queries.availability_profiles import StoredProfile
from workers.fanout.admission import Overloaded

log = logging.getLogger(__name__)

CHANGED = (
    "Nothing is saved yet: another person has changed these hours since you opened the page. Your values are "
    "below. Open the page again to see theirs, or save again to replace theirs."
)
MARGINS = ("paddingBefore", "paddingAfter", "minimumNotice")
# The names of the fields in the body of the API, where they differ from those of the form.
_IN_FORM = {"overrides": "dates", "schedules": "week"}
Values = MultiDict[str, str]
Span = tuple[str, str]


@dataclass(slots=True)
class Entered:
    """The form as the body of the API; ``fields`` has the field of the form for each path in the body."""

    body: dict[str, Any] = field(default_factory=dict)
    fields: dict[Path, str] = field(default_factory=dict)

    @classmethod
    def of(cls, values: Values) -> Entered:
        """The body that the values of a form stand for."""
        entered = cls({**_texts(values, "timeZone", *MARGINS)})
        if values.get("hours") == "these":
            entered._read_week(values)
        entered._read_dates(values)
        if of_country := _texts(values, "country", "subdivision"):
            entered.body["holidays"] = of_country
        if values.get("counting") == "these":
            chosen = [each.partition("/") for each in values.getlist("calendar")]
            entered.body["calendars"] = [
                {"connectionId": connection, "calendarId": calendar} for connection, _, calendar in chosen
            ]
        return entered

    def field_of(self, path: Path) -> str:
        """The field of the form that an error of the body is shown at."""
        first = str(path[0]) if path else ""
        if first == "holidays":
            return str(path[-1]) if len(path) > 1 else "country"
        return self.fields.get(path[:2], _IN_FORM.get(first, first))

    def _read_week(self, values: Values) -> None:
        """One window for all days with the same hours."""
        days_of: dict[Span, list[str]] = {}
        for day in WEEKDAYS:
            for span in dict.fromkeys(spans(values, day)):
                days_of.setdefault(span, []).append(day)
        self.body["schedules"] = [
            {"days": days, "start": start, "end": end} for (start, end), days in days_of.items()
        ]
        self.fields |= {("schedules", n): days[0] for n, days in enumerate(days_of.values())}

    def _read_dates(self, values: Values) -> None:
        """Rows with one date are its windows; a row without times adds none."""
        rows_of: dict[str, list[int]] = {}
        rows = date_rows(values)
        for n, (day, _, _) in enumerate(rows):
            rows_of.setdefault(day, []).append(n)
        for day, numbers in rows_of.items():
            times = [rows[n][1:] for n in numbers if any(rows[n][1:])]
            self.fields["overrides", len(self.body.setdefault("overrides", []))] = f"date-{numbers[0]}"
            self.body["overrides"].append(
                {"date": day, "windows": [{"start": start, "end": end} for start, end in times]}
            )


def _texts(values: Values, *names: str) -> dict[str, str]:
    """The fields that are not empty."""
    return {name: text for name in names if (text := values.get(name, "").strip())}


def spans(values: Values, name: str) -> Sequence[Span]:
    """The rows of times that are not empty: of a day, by its name."""
    pairs = zip(values.getlist(f"{name}From"), values.getlist(f"{name}To"), strict=False)
    return [(start, end) for start, end in pairs if start or end]


def date_rows(values: Values) -> Sequence[tuple[str, str, str]]:
    """The rows of dates that are not empty: the date, and a start and an end or neither."""
    columns = (values.getlist(name) for name in ("date", "dateFrom", "dateTo"))
    return [row for row in zip(*columns, strict=False) if any(row)]


@blp.get("/users/<custom_id>/availability")
def working_hours(custom_id: str) -> ResponseReturnValue:
    """What counts for a user; ``from`` fills the form with the hours of another one."""
    user = get_user(custom_id)
    form = forms.blank()
    with services().stores.database.reading() as session:
        profile = availability_profiles.find(session, caller(), custom_id)
        version = availability_profiles.etag(profile)
        if source := request.args.get("from", "").strip():
            form.values["from"] = source
            try:
                get_user(source)
                profile = _copied(profile, availability_profiles.find(session, caller(), source))
            except NotFound:
                form.refuse("from", "is not the identifier of a user")
    copied = source if form else ""
    values = Values([("version", version), *_filled(profile)])
    return _page(user, form, values, copied=copied)


@blp.post("/users/<custom_id>/availability")
@route_facts(role=Role.OPERATOR)
def change_working_hours(custom_id: str) -> ResponseReturnValue:
    """Store what counts for a user, in the place of what counted before."""
    user = get_user(custom_id)
    form = forms.blank()
    entered = Entered.of(request.form)
    try:
        availability_profiles.replace_profile(
            caller(), custom_id, ProfileBody().load(entered.body), required=request.form.get("version")
        )
    except ValidationError as error:
        for path, message in field_errors(error.messages):
            form.errors.setdefault(entered.field_of(path), _worded(path, message))
    except Invalid as error:
        path = tuple(int(each) if each.isdigit() else each for each in (error.param or "").split("."))
        form.refuse(entered.field_of(path), error.error.partition(" ")[2])
    except PreconditionFailed:
        form.refuse("", CHANGED)
        with services().stores.database.reading() as session:
            form.values["version"] = availability_profiles.etag(
                availability_profiles.find(session, caller(), custom_id)
            )
        return _page(user, form, request.form, 412)
    if not form:
        return _page(user, form, request.form, 400)
    return done(f"The working hours of {custom_id} are saved.", "user", custom_id=custom_id)


def _copied(own: StoredProfile, other: StoredProfile) -> StoredProfile:
    """The hours of another user. Zone, holidays and calendars belong to the person."""
    return replace(
        other,
        time_zone=own.time_zone,
        calendars=own.calendars,
        holiday_country=own.holiday_country,
        holiday_subdivision=own.holiday_subdivision,
    )


def _worded(path: Path, message: str) -> str:
    """The message for a group of fields, with the name of the one that it is about."""
    if path == ("calendars",):
        return "must be chosen, at least one"
    return f"{path[-1]} {message}" if path[-1] in ("start", "end", "date") else message


def _filled(profile: StoredProfile) -> Iterator[tuple[str, str]]:
    """The values of the form for a stored profile."""
    view = profile_view(profile)
    for name in ("timeZone", *MARGINS):
        if view[name] is not None:
            yield name, f"{view[name]}"
    yield "hours", "any" if view["schedules"] is None else "these"
    for day in WEEKDAYS:
        windows = [each for each in view["schedules"] or () if day in each["days"]]
        for each in sorted(windows, key=lambda window: str(window["start"])):
            yield f"{day}From", each["start"]
            yield f"{day}To", each["end"]
    for each in sorted(view["overrides"] or (), key=lambda override: str(override["date"])):
        for window in each["windows"] or ({"start": "", "end": ""},):
            yield "date", each["date"]
            yield "dateFrom", window["start"]
            yield "dateTo", window["end"]
    yield from (view["holidays"] or {}).items()
    yield "counting", "main" if view["calendars"] is None else "these"
    for each in view["calendars"] or ():
        yield "calendar", f"{each['connectionId']}/{each['calendarId']}"


class Choice(NamedTuple):
    """A calendar that may count; ``value`` names it in the form, ``main``: it counts unless others do."""

    value: str
    name: str
    account: str
    main: bool


def _page(
    user: User, form: forms.Form, values: Values, status: int = 200, *, copied: str = ""
) -> ResponseReturnValue:
    refs = connections.of_user(authentication(), user.custom_id, {"provider": ()})
    try:
        found = lists.find_calendars(refs)
        listed_calendars, failed = list(found.calendars), failed_calendars(found.failures)
        are_listed = True
    except (ApiError, Overloaded) as error:
        # The hours are stored here: they can be changed while no worker lists calendars.
        log.warning("calendars not listed on the page of working hours: %s", type(error).__name__)
        listed_calendars, failed, are_listed = [], [], False
    names = account_names(user)
    chosen = dict.fromkeys(values.getlist("calendar"))
    choices = []
    for ref, each in listed_calendars:
        # The stored name of a main calendar may be either.
        main = f"{ref.public_id}/{PRIMARY}"
        value = main if each.primary and main in chosen else f"{ref.public_id}/{each.id}"
        choices.append(Choice(value, each.subject or each.id, names[ref.public_id], each.primary))
    listed = {each.value for each in choices}
    for value in chosen:
        connection, _, calendar = value.partition("/")
        if value not in listed:
            choices.append(Choice(value, calendar, names.get(connection, "a removed account"), False))
    form.values = {**values.to_dict(), **form.values}
    return page(
        "working_hours.html",
        status,
        user=user,
        form=form,
        copied=copied,
        weekdays=WEEKDAYS,
        spans={day: spans(values, day) for day in WEEKDAYS},
        dates=date_rows(values),
        choices=choices,
        chosen=chosen,
        failed=failed,
        are_listed=are_listed,
        account=names,
        what_to_do=advice_for(user),
        zones=zone_names(),
    )
