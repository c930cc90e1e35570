"""Routes calls below ``/google`` to the operations of the calendar API and the OAuth server."""

from __future__ import annotations

from collections.abc import Callable

from providers.sandbox import wild
from providers.sandbox.accounts import Account
from providers.sandbox.calls import Call, place, replaces, spoilt
from providers.sandbox.exchange import Answer, Refused, Request
from providers.sandbox.faults import UNHARMED, Fault, Place
from providers.sandbox.google import (
    calendars,
    changes,
    channels,
    directory,
    errors,
    events,
    freebusy,
    oauth,
    scopes,
)
from providers.sandbox.google.mask import masked
from providers.sandbox.google.resources import unmade
from providers.sandbox.routes import Route, Routes, route
from providers.sandbox.world import World, bearer_token, is_live

API = ["calendar", "v3"]
EVENTS = "calendars/{}/events"
EVENT = "calendars/{}/events/{}"

ROUTES = Routes(
    route("POST", "freeBusy", freebusy.OPERATION, freebusy.query, scopes=scopes.READ_BUSY),
    route(
        "GET",
        "users/me/calendarList",
        "google.calendarList.list",
        calendars.list_calendars,
        scopes=scopes.READ_LIST,
    ),
    route(
        "GET",
        "users/me/calendarList/{}",
        "google.calendarList.get",
        calendars.get_entry,
        scopes=scopes.READ_ENTRY,
        calendar=0,
    ),
    route(
        "GET",
        "calendars/{}",
        "google.calendars.get",
        calendars.get_calendar,
        scopes=scopes.READ_CALENDAR,
        calendar=0,
    ),
    route("GET", EVENTS, "google.events.list", events.list_events, scopes=scopes.READ_EVENTS, calendar=0),
    route("GET", EVENT, "google.events.get", events.get_event, scopes=scopes.READ_EVENTS, calendar=0),
    route(
        "GET",
        EVENT + "/instances",
        "google.events.instances",
        events.list_instances,
        scopes=scopes.READ_EVENTS,
        calendar=0,
    ),
    route(
        "POST",
        EVENTS + "/watch",
        "google.events.watch",
        channels.watch,
        scopes=scopes.READ_EVENTS,
        calendar=0,
    ),
    route("POST", "channels/stop", "google.channels.stop", channels.stop, scopes=scopes.STOP_CHANNELS),
    route("POST", EVENTS, "google.events.insert", changes.insert, scopes=scopes.WRITE_EVENTS, calendar=0),
    route("PATCH", EVENT, "google.events.patch", changes.patch, scopes=scopes.WRITE_EVENTS, calendar=0),
    route("PUT", EVENT, "google.events.update", changes.update, scopes=scopes.WRITE_EVENTS, calendar=0),
    route("DELETE", EVENT, "google.events.delete", changes.delete, scopes=scopes.WRITE_EVENTS, calendar=0),
    route(
        "GET",
        "users/me/settings",
        "google.settings.list",
        calendars.list_settings,
        scopes=scopes.READ_SETTINGS,
    ),
    route(
        "GET",
        "users/me/settings/{}",
        "google.settings.get",
        calendars.get_setting,
        scopes=scopes.READ_SETTINGS,
    ),
)

DIRECTORY_API = ["admin", "directory", "v1"]
DIRECTORY = Routes(
    route("GET", "users", "google.users.list", directory.list_users, scopes=scopes.LIST_USERS),
    route(
        "GET",
        "customer/my_customer/resources/calendars",
        "google.resources.list",
        directory.list_rooms,
        scopes=scopes.LIST_ROOMS,
    ),
)

OAUTH: dict[tuple[str, ...], tuple[str, Callable[[World, Request], Answer]]] = {
    ("GET", "o", "oauth2", "v2", "auth"): ("google.authorize", oauth.authorize),
    ("POST", "o", "oauth2", "v2", "auth"): ("google.authorize", oauth.authorize),
    ("POST", "token"): ("google.token", oauth.token),
    ("POST", "revoke"): ("google.revoke", oauth.revoke),
    ("GET", "userinfo"): ("google.userinfo", oauth.userinfo),
}


def respond(world: World, request: Request) -> Answer:
    """Handle a call below ``/google``."""
    world.total += 1
    path = request.path[1:]
    if (found := OAUTH.get((request.method, *path))) is not None:
        return to_oauth(world, request, *found)
    if path[:2] == API and (known := ROUTES.find(request.method, path[2:])) is not None:
        return to_calendar(world, request, *known)
    if path[:3] == DIRECTORY_API and (known := DIRECTORY.find(request.method, path[3:])) is not None:
        return to_calendar(world, request, *known)
    return errors.error("notFound")


def to_oauth(
    world: World, request: Request, operation: str, handle: Callable[[World, Request], Answer]
) -> Answer:
    world.count(operation)
    hit = world.faults.strike(place(world, oauth.owner(world, request), "google", operation))
    if replaces(hit.fault):
        return spoilt(oauth_fault(hit.fault, operation), hit)
    return spoilt(handle(world, request), hit)


def oauth_fault(fault: Fault | None, operation: str) -> Answer:
    """The OAuth server's answer to a fault."""
    assert fault is not None
    status = fault.status or 400
    if operation == "google.userinfo":
        return errors.dead_token() if status == 401 else errors.error(fault.reason or "", status=status)
    word = fault.reason or {400: "invalid_grant", 401: "invalid_client"}.get(status, "internal_failure")
    return errors.oauth_error(word, oauth.GONE if word == "invalid_grant" else "Unauthorized", status)


def to_calendar(world: World, request: Request, known: Route, ids: list[str]) -> Answer:
    world.count(known.operation)
    access = world.bearer(request, "google")
    account = access.grant.account if access else None
    hit = UNHARMED
    if world.faults:
        hit = world.faults.strike(place_of(world, account, known, ids, request))
    if replaces(hit.fault):
        answer = fault_answer(hit.fault, known)
    elif access is None or not is_live(access):
        answer = errors.dead_token() if bearer_token(request) else errors.login_required()
    elif known.scopes.isdisjoint(access.scopes):
        answer = errors.scope_missing(method_name(known.operation), sorted(known.scopes))
    else:
        try:
            answer = masked(request, known.handle(Call(world, request, access), *ids))
        except Refused as refused:
            answer = refused.answer
    if hit.fault is not None and hit.fault.wild is not None and account is not None:
        answer = wild.changed(hit.fault.wild, answer, request, account.email)
    if hit.fault is not None and hit.fault.body == "pending" and answer.status == 200:
        answer.document = unmade(answer.document)
    return spoilt(answer, hit)


def place_of(world: World, account: Account | None, known: Route, ids: list[str], request: Request) -> Place:
    """The attributes of a calendar call that faults match."""
    if known.operation == freebusy.OPERATION:
        return place(
            world, account, "google", known.operation, *freebusy.calendars_asked_for(request), inside=True
        )
    named = [] if known.calendar is None else [ids[known.calendar]]
    return place(world, account, "google", known.operation, *named)


def fault_answer(fault: Fault | None, known: Route) -> Answer:
    """The calendar API's answer to a fault."""
    assert fault is not None
    if fault.wild == wild.UNKNOWN_QUOTA:
        return errors.error(wild.QUOTA_REASON)
    reason = fault.reason or errors.BY_STATUS.get(fault.status or 0, "backendError")
    if reason == "authError" or fault.wild == wild.REFUSED_PART:
        return errors.dead_token()
    if reason == "insufficientPermissions":
        return errors.scope_missing(method_name(known.operation), sorted(known.scopes))
    if fault.status is not None and fault.status < 400:
        return Answer(fault.status, document={}, headers={"Content-Type": errors.JSON})
    return errors.error(reason, status=fault.status or 0)


def method_name(operation: str) -> str:
    """``google.calendarList.list`` in the front end's spelling: ``calendar.v3.CalendarList.List``."""
    _, resource, verb = operation.split(".")
    return f"calendar.v3.{resource[0].upper()}{resource[1:]}.{verb[0].upper()}{verb[1:]}"
