"""The rows of calendars, events, busy periods and slots."""

from __future__ import annotations

from typing import Any

from app.schemas.events import IN_QUERY
from tests.app.at_provider import NINE
from tests.conftest import stores_of
from tests.contract.rows import (
    INVALID,
    LATER,
    OTHER_ETAG,
    PROVIDERS,
    TAKEN,
    THROTTLED,
    UNREAD_ERROR,
    Row,
    bad,
    bad_slug,
    bad_user,
    ended,
    may_not_write,
    missing,
    no_organization,
    no_user,
    of,
    of_provider,
    ok,
    provider_down,
    too_narrow,
    unknown_provider,
)
from tests.contract.shapes import (
    CALENDAR,
    CHANGE,
    DONE,
    ENTRY,
    ERROR,
    EVENT,
    FAILED_CALENDAR,
    FAILED_USER,
    PERIOD,
    SLOTS,
    UNIFIED,
    data,
)
from tests.contract.world import EVENT as EXISTING
from tests.contract.world import World

RANGE = {"start": "2026-12-03", "end": "2026-12-04"}
# Few slots: these rows are examples of the OpenAPI document.
MORNING = {"start": "2026-12-03T09:00", "end": "2026-12-03T12:00", "slotDuration": "60"}
WEEK = {"start": "2026-W49-4", "end": "2026-338"}
BARE_RANGE = {"minDate": "2026-12-03", "maxDate": "1796342400000"}
LONELY = {"userId": "{lonely}"}
NO_CALENDARS = "User has no connected calendars"
SCHEDULES = {"schedules": [{"days": ["thursday"], "start": "09:00", "end": "17:00"}]}
NEW = {"subject": "New", **NINE}
IF_FREE = {"ifFree": "true"}
ELEVEN = {"subject": "New", "start": "2026-12-03T11:00:00Z", "end": "2026-12-03T12:00:00Z"}
LONG = NEW | {"end": "2028-12-03T12:00:00Z"}
RENAMED = {"subject": "New"}
OWN = {"provider": "{provider}"}
GOOGLE = ("google",)
MICROSOFT = ("microsoft",)
DAY = {"start": "2026-12-03", "end": "2026-12-04"}
GUEST = {"email": "grace@example.com", "name": "Grace Hopper"}
ROOM = {"email": "room@example.com", "optional": True, "resource": True}
INVITED = {"attendees": [GUEST, {"email": "bob@example.com", "optional": True}]}
ACCEPTED = {"response": "accepted"}
DECLINED = {"response": "declined", "comment": "I am on leave", "notify": True}
SHOWN = {"showAs": "tentative", "visibility": "private", "reminders": [10]}
WEEKLY = {"recurrence": ["RRULE:FREQ=WEEKLY;COUNT=3"], "timeZone": "Europe/Berlin"}
DAILY = {"recurrence": ["RRULE:FREQ=DAILY"]}
ON_MONDAYS = {"recurrence": ["RRULE:FREQ=DAILY;BYDAY=MO"]}
LEAPS = {"recurrence": ["RRULE:FREQ=DAILY;BYMONTHDAY=3"]}
BAD_RULE = {"recurrence": ["RRULE:FREQ=DAILY;COUNT=3;UNTIL=20270101T000000Z"]}
SERIES, FOLLOWING = {"scope": "series"}, {"scope": "following"}
PARTLY = {"failedCalendars": [FAILED_CALENDAR]}
EXPIRED = ERROR | PARTLY | {"failedCalendars": [FAILED_CALENDAR | {"code": frozenset({"cursorExpired"})}]}


def invited(world: World) -> None:
    """The event of the account is an invitation."""
    account = world.account
    event = EXISTING | {"responseStatus": "needsAction"}
    world.accounts[world.provider] = world.sandbox.account(account.provider, account.email, events=[event])
    world.connect()
    world.names["eventId"] = world.event_id()


def occurrence(world: World) -> None:
    """The event is the second occurrence of a series."""
    account = world.account
    event = EXISTING | {"recurrence": "RRULE:FREQ=DAILY;COUNT=5"}
    world.accounts[world.provider] = world.sandbox.account(account.provider, account.email, events=[event])
    world.connect()
    world.names["eventId"] = world.second_occurrence()


def held(world: World) -> None:
    """The user's time at eleven is held."""
    start, end = ELEVEN["start"], ELEVEN["end"]
    answer = world.api.post("/holds", {"users": [world.names["userId"]], "start": start, "end": end})
    assert answer.status_code == 201, answer.text


def microsoft_down(world: World) -> None:
    world.sandbox.fault(provider="microsoft", status=503, retry_after=LATER)


def refused_by_google(status: int, code: str, reason: str) -> Row:
    """The answer when Google refuses to read, with this reason of its own."""
    return bad(
        "",
        status,
        code,
        shape=UNREAD_ERROR | ({"operation": str} if code == "accessDenied" else {}),
        query=RANGE | {"provider": "google"},
        setup=lambda world: world.inject_fault(status=403, reason=reason),
    )


def one_copy(world: World) -> None:
    """A unified event with a copy at Google alone."""
    path = f"/users/{world.names['userId']}/calendar/events/meta"
    made = world.api.post(
        path, NEW | {"metaId": "m-1", "subject": "Old"}, query_string={"provider": "google"}
    )
    assert made.status_code == 201


def being_created(world: World) -> None:
    """Another request holds the lock of the unified event, which expires after the test."""
    redis = stores_of(world.api.client.application).redis
    redis.set("lock:unified:{userId}:{metaId}".format(**world.names), "another", px=10_000)


def half_done(world: World) -> None:
    """A unified event whose copy at Microsoft can be read and not written."""
    world.unified()
    for operation in ("microsoft.events.update", "microsoft.events.delete"):
        world.sandbox.fault(operation=operation, status=503, retry_after=LATER)


def unreadable(world: World) -> None:
    """The provider executes writes, and sends unreadable answers."""
    for operation in ("google.events.insert", "google.events.patch", "microsoft.events.insert"):
        world.sandbox.fault(operation=operation, body="html")


def unreadable_invitation(world: World) -> None:
    """The event is an invitation, and answers to writes are unreadable."""
    invited(world)
    unreadable(world)


def unified_and(then: Any) -> Any:
    """There is a unified event; then ``then`` happens."""

    def setup(world: World) -> None:
        world.unified()
        then(world)

    return setup


def throttled(world: World) -> None:
    world.sandbox.fault(status=429, retry_after=LATER)


def providers_down(world: World) -> None:
    world.sandbox.fault(status=503, retry_after=LATER)


def followed(world: World) -> None:
    """An earlier request for changes has given a cursor."""
    path = f"/users/{world.names['userId']}/calendar/changes"
    answer = world.api.get(path, **RANGE, provider=world.names["provider"])
    assert answer.status_code == 200, answer.text
    world.names["cursor"] = answer.json["cursor"]


def changed(world: World) -> None:
    """The existing event was deleted since that request."""
    followed(world)
    event_deleted(world)


def expired(world: World) -> None:
    """The provider does not know that cursor any more."""
    followed(world)
    world.sandbox.expire_sync_tokens()


def event_deleted(world: World) -> None:
    """The existing event is deleted."""
    world.names["eventId"] = world.event_id()
    path = "/users/{userId}/calendar/events/{provider}/primary/{eventId}".format(**world.names)
    assert world.api.delete(path).status_code == 200


# A string instead of an envelope.
def bare(message: str, status: int, **more: Any) -> Row:
    return Row("", status, str, message=message, **more)


CALENDARS: tuple[Row, ...] = (
    *of(
        "GET /users/{userId}/calendar",
        ok(data([CALENDAR], **PARTLY)),
        ok(data([CALENDAR], **PARTLY), query=OWN, providers=PROVIDERS),
        ok(data([CALENDAR], **PARTLY), setup=microsoft_down),
        ok(data([], failedCalendars=[]), names=LONELY),
        bad("provider", query={"provider": "apple"}),
        bad_user(),
        no_user(),
        *of_provider(query=OWN, providers=PROVIDERS),
    ),
)

EVENTS_ROUTE = "/users/{userId}/calendar/events"
IN_CALENDAR = EVENTS_ROUTE + "/{provider}/{calendarId}"
ONE = IN_CALENDAR + "/{eventId}"
# A valid form of id at Google; Graph calls any other form malformed.
NO_CALENDAR = {"calendarId": "AAMk/no such#%"}
NO_EVENT = {"eventId": "AAMk/no such#%"}

LIST: tuple[Row, ...] = (
    *of(
        f"GET {EVENTS_ROUTE}",
        ok(data([EVENT], **PARTLY), query=RANGE),
        ok(data([EVENT], **PARTLY), query=RANGE | OWN, providers=PROVIDERS),
        ok(data([EVENT], **PARTLY), query=RANGE | {"calendarIds": "primary"}),
        ok(data([EVENT], **PARTLY), query=RANGE, setup=microsoft_down),
        ok(data([EVENT], **PARTLY), query=RANGE | {"q": "review", "updatedSince": "2026-11-01"}),
        ok(data([], **PARTLY), query=RANGE | {"q": "nothing"}),
        bad("q must have 1 to 256 characters", query=RANGE | {"q": "x" * 257}),
        bad("updatedSince must be an ISO 8601 date", query=RANGE | {"updatedSince": "soon"}),
        bare("q must not be given for the list with minDate", 400, query=BARE_RANGE | {"q": "review"}),
        ok([EVENT], query=BARE_RANGE),
        ok([EVENT], query=BARE_RANGE | OWN | {"timeZone": "Europe/Berlin"}, providers=PROVIDERS),
        ok([EVENT], query=BARE_RANGE, setup=microsoft_down),
        ok([], query={"minDate": "0", "maxDate": "864000000"}),
        bare("minDate is required", 400),
        bad("start is required", query={"end": "2026-12-04"}),
        bare("maxDate is required", 400, query={"minDate": "2026-12-03"}),
        no_user(query=RANGE),
        bare("User not found", 404, names={"userId": "nobody"}, query=BARE_RANGE),
        missing(NO_CALENDARS, names=LONELY, query=RANGE),
        bare("User has not the needed calendars connected", 404, names=LONELY, query=BARE_RANGE),
        *of_provider(query=RANGE | OWN, providers=PROVIDERS),
        bare("", 401, query=BARE_RANGE | OWN, setup=World.revoke, providers=PROVIDERS),
        bare("", 403, query=BARE_RANGE | OWN, setup=World.restrict_scopes, providers=PROVIDERS),
        bare("", 429, query=BARE_RANGE, setup=throttled),
        bare("", 502, query=BARE_RANGE, setup=providers_down),
    ),
)

CHANGES_ROUTE = "/users/{userId}/calendar/changes"
CURSOR = {"cursor": "{cursor}"}
FEED = data([CHANGE], cursor=str, more=bool, **PARTLY)

CHANGES: tuple[Row, ...] = (
    *of(
        f"GET {CHANGES_ROUTE}",
        ok(FEED, query=RANGE),
        ok(FEED, query=RANGE | OWN, providers=PROVIDERS),
        ok(FEED, query={"start": "2026-12-03", "calendarIds": "primary"}),
        ok(FEED, query=CURSOR, setup=changed, providers=PROVIDERS),
        ok(FEED, query=RANGE, setup=microsoft_down),
        bad("start is required without a cursor"),
        bad("cursor is not one", query={"cursor": "x"}),
        bad("The range from", 400, "rangeTooLarge", shape=INVALID, query=RANGE | {"end": "2028-12-04"}),
        bad("The provider no longer", 410, "cursorExpired", query=CURSOR, setup=expired, shape=EXPIRED),
        no_user(query=RANGE),
        missing(NO_CALENDARS, names=LONELY, query=RANGE),
        *of_provider(query=RANGE | OWN, providers=PROVIDERS),
    ),
)

EVENTS: tuple[Row, ...] = (
    *of(
        f"POST {IN_CALENDAR}",
        ok(data(EVENT), 201, body=NEW),
        ok(data(EVENT), 201, body=NEW | {"metaId": "m-1", "attendees": [{"email": "bob@example.com"}]}),
        ok(data(EVENT), 201, body={"start": "2026-12-03", "end": "2026-12-04", "meeting": True}),
        ok(data(EVENT), 201, body=ELEVEN, query={"ifFree": "true"}),
        ok(data(EVENT), 201, body=NEW | SHOWN | INVITED),
        ok(data(EVENT), 201, body=NEW | WEEKLY),
        bad("recurrence must have a valid RRULE: COUNT and UNTIL", body=NEW | BAD_RULE),
        bad(
            "recurrence must have an RRULE that gives",
            body=ELEVEN | {"recurrence": ["RRULE:FREQ=DAILY;BYDAY=MO"]},
        ),
        bad("recurrence must not have BYMONTHDAY", body=NEW | LEAPS, providers=MICROSOFT),
        bad("ifFree must not be given with recurrence", body=NEW | WEEKLY, query=IF_FREE),
        bad(
            "attendees[0].optional must be true or false", body=NEW | {"attendees": [GUEST | {"optional": 1}]}
        ),
        bad("attendees must not be both", body=NEW | {"attendees": [ROOM]}, providers=MICROSOFT),
        bad("The time is taken", 409, "slotTaken", shape=TAKEN, body=NEW, query={"ifFree": "true"}),
        bad("The time from", 400, "rangeTooLarge", shape=INVALID, body=LONG, query={"ifFree": "true"}),
        bad("end must not be before start", body=NEW | {"end": "2026-12-02T00:00:00Z"}),
        bad("showAs must be one of busy, free", body=NEW | {"showAs": "oof"}),
        bad("visibility must be one of", body=NEW | {"visibility": "secret"}),
        bad("visibility cannot be public", body=NEW | {"visibility": "public"}, providers=MICROSOFT),
        bad("reminders must have at most 1", body=NEW | {"reminders": [5, 10]}, providers=MICROSOFT),
        bad("reminders[0] must be between 0 and 40320", body=NEW | {"reminders": [-1]}),
        bad("timeZone must be a time zone name", body=NEW | {"timeZone": "Mars/Olympus"}),
        bad("timeZone needs start and end", body=DAY | {"timeZone": "Europe/Berlin"}),
        bad("start is required", body={"end": NINE["end"]}),
        # Ignored, each of these would write the event without its condition.
        *(bad(f"{name} must not be given in the body", body=NEW | {name: "x"}) for name in IN_QUERY),
        ok(data(EVENT), 201, body=NEW | {"ifFree": False, "hold": None}),
        unknown_provider(body=NEW),
        missing("Calendar not found", names=NO_CALENDAR, body=NEW),
        missing("OAuth connection not found", names=LONELY, body=NEW),
        no_user(body=NEW),
        ended(body=NEW),
        too_narrow("calendar.events.insert", body=NEW),
        may_not_write(body=NEW),
        bad("", 409, "eventExists", setup=World.unified, body=NEW | {"metaId": "m-1"}),
        bad("", 422, "eventUnreadable", setup=unreadable, body=NEW),
        *provider_down(unknown=PROVIDERS, body=NEW),
    ),
    *of(
        f"POST {IN_CALENDAR}",
        bad(
            "id",
            409,
            "eventExists",
            body=NEW | {"id": "{eventId}"},
            setup=lambda w: w.names.update(eventId=w.event_id()),
            providers=GOOGLE,
        ),
    ),
    *of(
        f"GET {ONE}",
        ok(data(EVENT)),
        ok(data(EVENT), names={"calendarId": "{own}"}, providers=GOOGLE),
        missing("Event not found", names={"eventId": "\n"}),
        missing("Event not found", names=NO_EVENT),
        missing("Event not found", setup=event_deleted),
        missing("Calendar not found", names=NO_CALENDAR),
        bad(
            "",
            400,
            "invalidCalendarId",
            shape=UNREAD_ERROR,
            names={"calendarId": "nonsense"},
            providers=("microsoft",),
        ),
        missing("OAuth connection not found", names=LONELY | NO_EVENT),
        no_user(),
        ended(),
        too_narrow("calendar.events.get"),
        *provider_down(),
    ),
    *of(
        f"PUT {ONE}",
        ok(data(EVENT), body=RENAMED),
        ok(data(EVENT), body={}),
        ok(data(EVENT), body=RENAMED, headers={"If-Match": "*"}),
        ok(data(EVENT), body=SHOWN | {"reminders": []}),
        ok(data(EVENT), body=INVITED),
        ok(data(EVENT), body=RENAMED, query=SERIES, setup=occurrence),
        ok(data(EVENT), body=RENAMED, query=FOLLOWING, setup=occurrence),
        bad("recurrence must not be", 400, "eventRefused", shape=INVALID, body=DAILY, setup=occurrence),
        bad("scope must be one of", body=RENAMED, query={"scope": "all"}),
        bad("ifFree must not be given with scope", body=ELEVEN, query=IF_FREE | SERIES),
        ok(data(EVENT), body={"reminders": None}, providers=GOOGLE),
        bad("reminders must not be null", body={"reminders": None}, providers=MICROSOFT),
        bad("timeZone needs start and end", body={"timeZone": "Europe/Berlin"}),
        ok(data(EVENT), body=ELEVEN, query={"ifFree": "true"}),
        ok(data(EVENT), body=RENAMED, query={"ifFree": "true"}),
        bad("The time is taken", 409, "slotTaken", shape=TAKEN, body=ELEVEN, query=IF_FREE, setup=held),
        bad("The time from", 400, "rangeTooLarge", shape=INVALID, body=LONG, query={"ifFree": "true"}),
        bad("hold must not be given", body=ELEVEN, query={"hold": f"hold_{0:024x}"}),
        bad("The event in", 412, "eventChanged", body=RENAMED, headers=OTHER_ETAG),
        bad("If-Match must be one etag", body=RENAMED, headers={"If-Match": "1"}),
        bad("subject must be a string", body={"subject": 1}),
        bad("", 400, "eventRefused", body={"end": "2026-12-02T00:00:00Z"}),
        missing("Event not found", names=NO_EVENT, body=RENAMED),
        missing("Calendar not found", names=NO_CALENDAR, body=RENAMED),
        no_user(body={}),
        ended(body=RENAMED),
        too_narrow("calendar.events.update", body=RENAMED),
        may_not_write(body=RENAMED),
        bad(
            "Google Calendar has written",
            422,
            "eventUnreadable",
            setup=unreadable,
            body=RENAMED,
            providers=("google",),
        ),
        *provider_down(unknown=GOOGLE, body=RENAMED),
    ),
    *of(
        f"POST {ONE}/response",
        ok(data(EVENT), body=ACCEPTED, setup=invited),
        ok(data(EVENT), body=DECLINED, setup=invited),
        bad("response is required", body={}),
        bad("response must be one of accepted, declined, tentative", body={"response": "needsAction"}),
        bad("", 400, "eventRefused", body=ACCEPTED),
        missing("Event not found", names=NO_EVENT, body=ACCEPTED),
        missing("Calendar not found", names=NO_CALENDAR, body=ACCEPTED),
        missing("OAuth connection not found", names=LONELY | NO_EVENT, body=ACCEPTED),
        no_user(body=ACCEPTED),
        bad(
            "Google Calendar has written",
            422,
            "eventUnreadable",
            setup=unreadable_invitation,
            body=ACCEPTED,
            providers=GOOGLE,
        ),
        ended(body=ACCEPTED),
        too_narrow("calendar.events.update", body=ACCEPTED),
        may_not_write(body=ACCEPTED),
        *provider_down(body=ACCEPTED),
    ),
    *of(
        f"DELETE {ONE}",
        ok(data(DONE)),
        ok(data(DONE), query={"sendNotifications": "true"}),
        ok(data(DONE), headers={"If-Match": "*"}),
        ok(data(DONE), query=SERIES, setup=occurrence),
        ok(data(DONE), query=FOLLOWING, setup=occurrence),
        bad("The event in", 412, "eventChanged", headers=OTHER_ETAG),
        bad("sendNotifications", query={"sendNotifications": "yes"}),
        missing("Event not found", setup=event_deleted),
        missing("Calendar not found", names=NO_CALENDAR),
        no_user(),
        ended(),
        too_narrow("calendar.events.delete"),
        may_not_write(),
        *provider_down(unknown=GOOGLE),
    ),
)

META = EVENTS_ROUTE + "/meta"
CREATED = ERROR | {"metaId": str}

UNIFIED_ROWS: tuple[Row, ...] = (
    *of(
        f"POST {META}",
        ok(data(UNIFIED, **PARTLY), 201, body=NEW),
        ok(data(UNIFIED, **PARTLY), 201, body=NEW, query=OWN, providers=PROVIDERS),
        ok(data(UNIFIED, **PARTLY), 201, body=ELEVEN, query={"ifFree": "true"}),
        ok(data(UNIFIED, **PARTLY), 201, body=NEW | SHOWN),
        bad("visibility cannot be public: Microsoft", body=NEW | {"visibility": "public"}),
        bad("The time is taken", 409, "slotTaken", shape=TAKEN, body=NEW, query={"ifFree": "true"}),
        bad("The time from", 400, "rangeTooLarge", shape=INVALID, body=LONG, query={"ifFree": "true"}),
        bad("sendNotificationsFor[0]", body=NEW | {"sendNotificationsFor": ["apple"]}),
        missing(NO_CALENDARS, names=LONELY, body=NEW),
        no_user(body=NEW),
        ended(shape=CREATED | UNREAD_ERROR, body=NEW),
        too_narrow("calendar.events.insert", body=NEW),
        may_not_write(body=NEW),
        bad("", 409, "eventExists", shape=CREATED, setup=World.unified, body=NEW | {"metaId": "m-1"}),
        bad(
            "The event m-1 exists in google with other content",
            409,
            "eventCopiesDiffer",
            shape=CREATED,
            setup=one_copy,
            body=NEW | {"metaId": "m-1"},
        ),
        bad(
            "The event m-1 is being created",
            409,
            "metaIdInUse",
            shape=THROTTLED,
            setup=being_created,
            body=NEW | {"metaId": "m-1"},
        ),
        bad("", 422, "eventUnreadable", shape=CREATED, setup=unreadable, body=NEW),
        *provider_down(shape=CREATED | UNREAD_ERROR, unknown=PROVIDERS, body=NEW, providers=PROVIDERS),
    ),
    *of(
        f"GET {META}/{{metaId}}",
        ok(data(UNIFIED, **PARTLY), setup=World.unified),
        ok(data(UNIFIED, **PARTLY), setup=World.unified, query=OWN, providers=PROVIDERS),
        ok(data(UNIFIED, **PARTLY), setup=unified_and(microsoft_down)),
        bad("provider", query={"provider": "apple"}),
        missing("Event not found"),
        missing(NO_CALENDARS, names=LONELY),
        no_user(),
        ended(),
        too_narrow("calendar.events.list"),
        bad("", 429, "rateLimited", shape=THROTTLED | UNREAD_ERROR, setup=throttled),
        bad("", 502, "providerError", shape=UNREAD_ERROR, setup=providers_down),
    ),
    *of(
        f"PUT {META}/{{metaId}}",
        ok(data(UNIFIED, **PARTLY), setup=World.unified, body=RENAMED),
        ok(data(UNIFIED, **PARTLY), setup=World.unified, body=RENAMED, query=OWN, providers=PROVIDERS),
        bad("start must be an ISO 8601 date", body={"start": "soon"}),
        bad("ifFree must not be given", body=RENAMED, query={"ifFree": "true"}),
        missing("Event not found", body=RENAMED),
        no_user(body={}),
        ended(body=RENAMED),
        too_narrow("calendar.events.update", body=RENAMED),
        may_not_write(body={}),
        bad(
            "",
            422,
            "eventUnreadable",
            setup=unified_and(unreadable),
            query={"provider": "google"},
            body=RENAMED,
        ),
        bad("", 429, "rateLimited", shape=THROTTLED | UNREAD_ERROR, setup=throttled, body=RENAMED),
        bad(
            "The event was changed in google",
            502,
            "outcomeUnknown",
            shape=UNREAD_ERROR,
            setup=half_done,
            body=RENAMED,
        ),
    ),
    *of(
        f"DELETE {META}/{{metaId}}",
        ok(data(DONE), setup=World.unified),
        ok(data(DONE), setup=World.unified, query=OWN, providers=PROVIDERS),
        bad("provider", query={"provider": "apple"}),
        missing("Event not found"),
        no_user(),
        ended(),
        too_narrow("calendar.events.delete"),
        may_not_write(),
        bad("", 429, "rateLimited", shape=THROTTLED | UNREAD_ERROR, setup=throttled),
        bad("The event was deleted in google", 502, "outcomeUnknown", shape=UNREAD_ERROR, setup=half_done),
    ),
)

HERE = {"id": "{userId}"}
BUSY_ENTRY = {
    "userId": str,
    "status": frozenset({"ok"}),
    "busy": [PERIOD],
    "calendarIds": [str],
    "failedCalendars": [FAILED_CALENDAR],
}

BUSY: tuple[Row, ...] = (
    *of(
        "POST /users/calendar/busy",
        ok(data([BUSY_ENTRY]), query=RANGE, body={"users": [HERE]}),
        ok(
            data([BUSY_ENTRY]),
            query=RANGE | OWN,
            body={"users": [HERE | {"calendarIds": ["primary"]}]},
            providers=PROVIDERS,
        ),
        bad("users is required", query=RANGE, body={}),
        bad(
            "calendarIds must be given in the entry",
            query=RANGE | {"calendarIds": "x"},
            body={"users": [HERE]},
        ),
        bad("end is required", query={"start": "2026-12-03"}, body={"users": []}),
        missing(
            "OAuth connection not found",
            query=RANGE | {"connection": f"{0:032x}"},
            body={"users": [{"id": "{userId}"}]},
        ),
    ),
    *of(
        "GET /users/{userId}/calendar/busy",
        ok(data([PERIOD], **PARTLY), query=RANGE),
        ok(data([PERIOD], **PARTLY), query=WEEK | OWN | {"primaryOnly": "true"}, providers=PROVIDERS),
        ok(data([PERIOD], **PARTLY), query=RANGE, setup=microsoft_down),
        bad("primaryOnly", query=RANGE | {"primaryOnly": "1"}),
        bad("start is required"),
        bad(
            "The range from start to end",
            400,
            "rangeTooLarge",
            shape=INVALID,
            query={"start": "2026-01-01", "end": "2028-01-01"},
        ),
        no_user(query=RANGE),
        missing(NO_CALENDARS, names=LONELY, query=RANGE),
        *of_provider(query=RANGE | OWN, providers=PROVIDERS),
        refused_by_google(400, "tooManyCalendars", "tooManyCalendarsRequested"),
        refused_by_google(403, "accessDenied", "forbidden"),
        refused_by_google(403, "mailboxUnavailable", "notACalendarUser"),
        bad(
            "",
            404,
            "notFound",
            shape=UNREAD_ERROR,
            query=RANGE | {"provider": "google", "calendarIds": "none@example.com"},
        ),
    ),
    *of(
        "GET /organizations/{orgSlug}/calendar/busy",
        ok(data([PERIOD], failedUsers=[]), query=RANGE),
        ok(data([PERIOD], failedUsers=[]), query=RANGE | OWN, providers=PROVIDERS),
        ok(data([PERIOD], failedUsers=[FAILED_USER]), query=RANGE, setup=microsoft_down),
        ok(data([], failedUsers=[FAILED_USER]), query=RANGE, setup=World.revoke),
        bad("start must be before end", query={"start": "2026-12-04", "end": "2026-12-03"}),
        bad_slug(query=RANGE),
        no_organization(query=RANGE),
    ),
)

DAILY = {"earliestTimeEachDay": "9:00", "latestTimeEachDay": "17:00", "padding": "5", "maxOverlaps": "1"}
SIDES = {"paddingBefore": "5", "paddingAfter": "20"}
OVERRIDES = {"overrides": [{"date": "2026-12-03", "windows": [{"start": "9:00", "end": "11:00"}]}]}
REPEATED = {"overrides": [{"date": "2026-12-25", "windows": []}] * 2}
MEMBER_SLOT = {**PERIOD, "userId": str}
NO_SLOTS = SLOTS | {"availableSlots": []}
TOKYO = {"x-timezone": "Asia/Tokyo"}


def no_members(world: World) -> None:
    """An organization without members."""
    world.names["orgSlug"] = world.new_organization()


SCHEDULING: tuple[Row, ...] = (
    *of(
        "GET /users/{userId}/scheduling",
        ok(data(SLOTS, failedCalendars=[]), query=MORNING),
        ok(data(SLOTS, failedCalendars=[]), query=RANGE),
        ok(
            data(SLOTS, failedCalendars=[]),
            query=RANGE | DAILY | OWN | {"slotDuration": "60"},
            providers=PROVIDERS,
        ),
        bad("slotDuration", query=RANGE | {"slotDuration": "0"}),
        ok(data(SLOTS, failedCalendars=[]), query=RANGE | SIDES | {"limit": "3"}),
        bad("padding", query=RANGE | {"padding": "-0"}),
        bad("paddingAfter must be between", query=RANGE | {"paddingAfter": "10081"}),
        bad("minimumNotice must be between", query=RANGE | {"minimumNotice": "-1"}),
        bad("limit must be between", query=RANGE | {"limit": "0"}),
        bad("earliestTimeEachDay", query=RANGE | {"earliestTimeEachDay": "24:00"}),
        no_user(query=RANGE),
        missing(NO_CALENDARS, names=LONELY, query=RANGE),
        *of_provider(query=RANGE | OWN, providers=PROVIDERS),
    ),
    *of(
        "POST /users/{userId}/scheduling",
        ok(data(SLOTS, failedCalendars=[]), query=MORNING, body=SCHEDULES),
        ok(data(SLOTS, failedCalendars=[]), query=RANGE, body=SCHEDULES),
        ok(
            data(SLOTS, failedCalendars=[]),
            query=RANGE | OWN,
            body=SCHEDULES,
            headers={"x-timezone": "Asia/Tokyo"},
            providers=PROVIDERS,
        ),
        ok(data(SLOTS, failedCalendars=[]), query=RANGE, body=SCHEDULES | OVERRIDES),
        bad("schedules is required", query=RANGE, body={}),
        bad("overrides[1].date must not be repeated", query=RANGE, body=SCHEDULES | REPEATED),
        no_user(query=RANGE, body=SCHEDULES),
        missing(NO_CALENDARS, names=LONELY, query=RANGE, body=SCHEDULES),
        *of_provider(query=RANGE | OWN, body=SCHEDULES, providers=PROVIDERS),
    ),
    *of(
        "POST /users/scheduling",
        ok(
            data([ENTRY]),
            query=MORNING,
            body={"users": [{"id": "{userId}"}, {"id": "{lonely}"}], **SCHEDULES},
        ),
        ok(
            data([ENTRY]),
            query=RANGE,
            body={"users": [{"id": "{userId}"}, {"id": "{lonely}"}, {"id": "nobody"}]},
        ),
        ok(
            data([ENTRY]),
            query=RANGE | OWN,
            body={"users": [{"id": "{userId}"}], **SCHEDULES},
            providers=PROVIDERS,
        ),
        ok(data([ENTRY]), query=RANGE, body={"users": [HERE]}, setup=microsoft_down),
        ok(data([ENTRY]), query=RANGE | {"limit": "1"}, body={"users": [HERE | OVERRIDES]}),
        bad("users is required", query=RANGE, body={}),
        bad("users[0].overrides[1].date", query=RANGE, body={"users": [HERE | REPEATED]}),
        bad("end is required", query={"start": "2026-12-03"}, body={"users": []}),
        missing(
            "OAuth connection not found",
            query=RANGE | {"connection": f"{0:032x}"},
            body={"users": [{"id": "{userId}"}]},
        ),
    ),
    *of(
        "GET /organizations/{orgSlug}/scheduling",
        ok(data(SLOTS | {"availableSlots": [MEMBER_SLOT]}, failedUsers=[]), query=MORNING),
        ok(data(SLOTS | {"availableSlots": [MEMBER_SLOT]}, failedUsers=[]), query=RANGE | DAILY),
        ok(
            data(SLOTS | {"availableSlots": []}, failedUsers=[FAILED_USER]), query=RANGE, setup=microsoft_down
        ),
        ok(
            data(SLOTS | {"availableSlots": [MEMBER_SLOT]}, failedUsers=[]),
            query=RANGE | SIDES | {"limit": "2"},
        ),
        bad("maxOverlaps", query=RANGE | {"maxOverlaps": "01"}),
        bad("X-Timezone", query=RANGE, headers={"x-timezone": "Mars/Olympus"}),
        no_organization(query=RANGE),
        missing(
            "Organization has no members",
            query=RANGE,
            setup=lambda w: w.names.update(orgSlug=w.new_organization()),
        ),
    ),
    *of(
        "POST /organizations/{orgSlug}/scheduling",
        ok(
            data(SLOTS | {"availableSlots": [MEMBER_SLOT]}, failedUsers=[]),
            query=MORNING,
            body=SCHEDULES,
        ),
        bad("schedules is required", query=RANGE, body={}),
        bad("onFailure must not be given here", query=RANGE | {"onFailure": "partial"}, body=SCHEDULES),
        bad("end is required", query={"start": "2026-12-03"}, body=SCHEDULES),
        no_organization(query=RANGE, body=SCHEDULES),
        missing(
            "Organization has no members",
            query=RANGE,
            body=SCHEDULES,
            setup=lambda w: w.names.update(orgSlug=w.new_organization()),
        ),
    ),
)

ROWS = CALENDARS + LIST + CHANGES + EVENTS + UNIFIED_ROWS + BUSY + SCHEDULING
