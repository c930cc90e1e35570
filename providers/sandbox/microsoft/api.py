"""Routes calls below ``/microsoft`` to the operations of Graph and the identity platform."""

from __future__ import annotations

from typing import Any

from providers.sandbox import wild
from providers.sandbox.accounts import Access, Account
from providers.sandbox.calls import Call, place, replaces, spoilt
from providers.sandbox.exchange import BROKEN_PART, Answer, Refused, Request
from providers.sandbox.faults import UNHARMED, Fault, Place
from providers.sandbox.microsoft import (
    applications,
    batch,
    changes,
    delta,
    directory,
    entra,
    errors,
    events,
    mailbox,
    oauth,
    schedule,
    scopes,
    subscriptions,
    view,
)
from providers.sandbox.microsoft.scopes import short_names
from providers.sandbox.routes import Route, Routes, route
from providers.sandbox.world import World, bearer_token, is_live

API = "v1.0"
BATCH = "microsoft.batch"
LIST = "microsoft.calendars.list"
CALENDAR = "microsoft.calendars.get"
VIEW = "microsoft.calendarView.list"
DELTA = "microsoft.calendarView.delta"
SCHEDULE = "microsoft.getSchedule"
SETTINGS = "microsoft.mailboxSettings.get"

BASIC = scopes.READ_BASIC


SUBSCRIPTION = "subscriptions/{}"


def subscription_routes() -> list[Route]:
    """The routes of subscriptions."""
    name = "microsoft.subscriptions."
    read = scopes.READ
    return [
        route("POST", "subscriptions", name + "create", subscriptions.create, scopes=read),
        route("GET", "subscriptions", name + "list", subscriptions.list_all, scopes=read),
        route("GET", SUBSCRIPTION, name + "get", subscriptions.get, scopes=read),
        route("PATCH", SUBSCRIPTION, name + "update", subscriptions.update, scopes=read),
        route("DELETE", SUBSCRIPTION, name + "delete", subscriptions.delete, scopes=read),
        route(
            "POST",
            SUBSCRIPTION + "/reauthorize",
            name + "reauthorize",
            subscriptions.reauthorize,
            scopes=read,
        ),
    ]


def event_routes(base: str, **where: Any) -> list[Route]:
    """The routes for events of one calendar, or of the whole mailbox."""
    one = base + "/{}"
    return [
        route("GET", base, "microsoft.events.list", events.list_events, scopes=BASIC, **where),
        route("POST", base, "microsoft.events.insert", changes.create, scopes=scopes.WRITE, **where),
        route("GET", one, "microsoft.events.get", events.get_event, scopes=BASIC, **where),
        route("PATCH", one, "microsoft.events.update", changes.update, scopes=scopes.WRITE, **where),
        route("DELETE", one, "microsoft.events.delete", changes.delete, scopes=scopes.WRITE, **where),
        *(
            route(
                "POST",
                f"{one}/{action}",
                f"microsoft.events.{action}",
                changes.respond,
                scopes=scopes.WRITE,
                **where,
            )
            for action in changes.ACTIONS
        ),
        route(
            "GET",
            one + "/instances",
            "microsoft.events.instances",
            events.list_instances,
            scopes=BASIC,
            **where,
        ),
    ]


ROUTES = Routes(
    route("GET", "me", "microsoft.me.get", mailbox.get_me, scopes=scopes.PROFILE),
    route("GET", "me/calendars", LIST, mailbox.list_calendars, scopes=BASIC),
    route("GET", "me/calendar", CALENDAR, mailbox.get_calendar, scopes=BASIC, primary=True),
    route("GET", "me/calendars/{}", CALENDAR, mailbox.get_calendar, scopes=BASIC, calendar=0),
    route("GET", "me/calendarView", VIEW, view.list_view, scopes=BASIC, primary=True),
    route("GET", "me/calendar/calendarView", VIEW, view.list_view, scopes=BASIC, primary=True),
    route("GET", "me/calendars/{}/calendarView", VIEW, view.list_view, scopes=BASIC, calendar=0),
    route("GET", "me/calendarView/delta", DELTA, delta.list_delta, scopes=scopes.READ, primary=True),
    route("GET", "me/calendar/calendarView/delta", DELTA, delta.list_delta, scopes=scopes.READ, primary=True),
    route(
        "GET", "me/calendars/{}/calendarView/delta", DELTA, delta.list_delta, scopes=scopes.READ, calendar=0
    ),
    route("POST", "me/calendar/getSchedule", SCHEDULE, schedule.get_schedule, scopes=BASIC, primary=True),
    route("POST", "me/calendars/{}/getSchedule", SCHEDULE, schedule.get_schedule, scopes=BASIC, calendar=0),
    route("GET", "me/mailboxSettings", SETTINGS, mailbox.get_settings, scopes=scopes.SETTINGS),
    route("GET", "me/mailboxSettings/timeZone", SETTINGS, mailbox.get_time_zone, scopes=scopes.SETTINGS),
    route("GET", "users", directory.USERS, directory.list_users, scopes=scopes.LIST_USERS),
    route(
        "GET",
        "places/microsoft.graph.room",
        directory.PLACES,
        directory.list_rooms,
        scopes=scopes.LIST_PLACES,
    ),
    *subscription_routes(),
    *event_routes("me/events", primary=True),
    *event_routes("me/calendar/events", primary=True),
    *event_routes("me/calendars/{}/events", calendar=0),
)


def respond(world: World, request: Request) -> Answer:
    """Handle a call below ``/microsoft``."""
    world.total += 1
    match request.method, request.path[1:]:
        case "GET" | "POST", [_tenant, "oauth2", "v2.0", "authorize"]:
            return to_oauth(world, request, "microsoft.authorize")
        case "POST", [_tenant, "oauth2", "v2.0", "token"]:
            return to_oauth(world, request, "microsoft.token")
        case "GET", [tenant, "v2.0", ".well-known", "openid-configuration"]:
            return oauth.configuration(request, tenant)
        case "POST", [version, "$batch"] if version == API:
            return errors.signed(request, to_batch(world, request))
        case _, [version, *_path] if version == API:
            return to_graph(world, request, world.bearer(request, "microsoft"))
    return errors.signed(request, errors.error("ResourceNotFound"))


def to_oauth(world: World, request: Request, operation: str) -> Answer:
    world.count(operation)
    hit = world.faults.strike(place(world, oauth.owner(world, request), "microsoft", operation))
    if replaces(hit.fault):
        return spoilt(oauth_fault(hit.fault), hit)
    handle = oauth.token if operation == "microsoft.token" else oauth.authorize
    return spoilt(handle(world, request), hit)


def oauth_fault(fault: Fault | None) -> Answer:
    """The identity platform's answer to a fault."""
    assert fault is not None
    word = fault.reason or {400: "invalid_grant", 401: "invalid_client"}.get(fault.status or 400, "")
    number = entra.NUMBERS.get(word, 90033 if not word else 70000)
    return entra.oauth_error(number, word=word, status=fault.status or 0)


def to_batch(world: World, request: Request) -> Answer:
    """A batch is one request; its parts are counted, authorized and matched with faults one by one."""
    world.count(BATCH)
    access = world.bearer(request, "microsoft")
    hit = world.faults.strike(place(world, owner(access), "microsoft", BATCH))
    if replaces(hit.fault):
        return spoilt(fault_answer(hit.fault), hit)
    if access is None or not is_live(access):
        return spoilt(refused_token(request), hit)
    try:
        answer = batch.run(Call(world, request, access), part_of_batch)
    except Refused as refused:
        answer = refused.answer
    if hit.fault is not None and hit.fault.wild is not None:
        answer = wild.changed(hit.fault.wild, answer, request, _address(access))
    return spoilt(answer, hit)


def part_of_batch(call: Call, request: Request) -> Answer:
    return to_graph(call.world, request, call.access, part=True)


def to_graph(world: World, request: Request, access: Access | None, *, part: bool = False) -> Answer:
    """One call to Graph, by itself or in a batch."""
    user, path = of_user(request.path[2:])
    found = ROUTES.find(request.method, path)
    if found is None:
        return errors.signed(request, errors.error("BadRequest", "Resource not found for the segment."))
    known, ids = found
    world.count(known.operation)
    hit = UNHARMED
    if world.faults:
        account = owner(access) or (world.account("microsoft", user) if user else None)
        of_path = access is not None and access.grant.domain is not None
        hit = world.faults.strike(place_of(world, account, known, ids, part=part, mailbox=of_path))
    if replaces(hit.fault):
        answer = fault_answer(hit.fault)
    elif access is None or not is_live(access):
        answer = refused_token(request)
    elif access.grant.domain is not None and not user and known.path[0] == "me":
        answer = errors.error("BadRequest", applications.ME)
    elif known.scopes.isdisjoint(short_names(access.scopes)):
        refused = "Authorization_RequestDenied" if known.operation == directory.USERS else "ErrorAccessDenied"
        answer = errors.error(refused)
    else:
        try:
            mine = applications.for_user(world, access, user) if user else access
            answer = known.handle(Call(world, request, mine, part), *ids)
        except Refused as refused:
            answer = refused.answer
    if hit.fault is not None and hit.fault.wild is not None:
        answer = wild.changed(hit.fault.wild, answer, request, user or _address(access))
        if not part:
            answer.damage -= {BROKEN_PART}
    return spoilt(errors.signed(request, answer), hit)


def _address(access: Access | None) -> str:
    return access.grant.account.email if access is not None else ""


def of_user(path: list[str]) -> tuple[str, list[str]]:
    """The user of a path below ``users/{name}``, and the same path below ``me``."""
    if len(path) >= 2 and path[0].lower() == "users":
        return path[1], ["me", *path[2:]]
    return "", path


def owner(access: Access | None) -> Account | None:
    """The account of a token; an application has none."""
    return access.grant.account if access and access.grant.domain is None else None


def place_of(world: World, account: Account | None, known: Route, ids: list[str], **how: bool) -> Place:
    """The attributes of a Graph call that faults match."""
    named = ["primary"] if known.primary else []
    if known.calendar is not None:
        named = [ids[known.calendar]]
    return place(world, account, "microsoft", known.operation, *named, **how)


def refused_token(request: Request) -> Answer:
    return errors.dead_token("" if bearer_token(request) else "Access token is empty.")


def fault_answer(fault: Fault | None) -> Answer:
    """Graph's answer to a fault."""
    assert fault is not None
    if fault.wild == wild.REFUSED_PART:
        return errors.error("UnknownError", status=401)
    code = fault.reason or errors.BY_STATUS.get(fault.status or 0, "UnknownError")
    if code == "InvalidAuthenticationToken":
        return errors.dead_token()
    if fault.status is not None and fault.status < 400:
        return Answer(fault.status, document={})
    return errors.error(code, status=fault.status or 0)
