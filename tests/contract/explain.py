"""The rows of explanations."""

from __future__ import annotations

from tests.contract.calendars import (
    DAILY,
    LONELY,
    NO_CALENDARS,
    OVERRIDES,
    OWN,
    PARTLY,
    RANGE,
    SCHEDULES,
    SIDES,
    TOKYO,
    microsoft_down,
    no_members,
)
from tests.contract.rows import PROVIDERS, Row, bad, bad_slug, missing, no_organization, no_user, of, ok
from tests.contract.shapes import FAILED_CALENDAR, FAILED_USER, MEMBERS_EXPLAINED, USER_EXPLAINED, data
from tests.contract.world import World

MOMENT = {"at": "2026-12-03T09:10:00Z"}
ASKED = RANGE | MOMENT
EXPLAINED_ENTRY = {
    "userId": str,
    "status": frozenset({"ok"}),
    **USER_EXPLAINED,
    "failedCalendars": [FAILED_CALENDAR],
}
UNREAD = USER_EXPLAINED | {"offered": frozenset({False}), "reason": frozenset({"calendarUnread"})}

ROWS: tuple[Row, ...] = (
    *of(
        "GET /users/{userId}/scheduling/explain",
        ok(data(USER_EXPLAINED, failedCalendars=[]), query=ASKED),
        ok(
            data(USER_EXPLAINED, failedCalendars=[]),
            query=ASKED | DAILY | OWN | {"slotDuration": "60"},
            providers=PROVIDERS,
        ),
        ok(data(UNREAD, **PARTLY), query=ASKED, setup=microsoft_down),
        ok(data(UNREAD, **PARTLY), query=ASKED, setup=World.revoke),
        ok(data(UNREAD, **PARTLY), query=ASKED, setup=World.restrict_scopes),
        bad("at is required", query=RANGE),
        bad("at must be an ISO 8601 date", query=RANGE | {"at": "noon"}),
        bad("slotDuration", query=ASKED | {"slotDuration": "0"}),
        bad("start is required", query=MOMENT),
        no_user(query=ASKED),
        missing(NO_CALENDARS, names=LONELY, query=ASKED),
    ),
    *of(
        "POST /users/{userId}/scheduling/explain",
        ok(data(USER_EXPLAINED, failedCalendars=[]), query=ASKED, body=SCHEDULES, headers=TOKYO),
        ok(data(USER_EXPLAINED, failedCalendars=[]), query=ASKED | SIDES, body=SCHEDULES | OVERRIDES),
        ok(data(UNREAD, **PARTLY), query=ASKED, body=SCHEDULES, setup=World.revoke),
        bad("schedules is required", query=ASKED, body={}),
        bad("at is required", query=RANGE, body=SCHEDULES),
        no_user(query=ASKED, body=SCHEDULES),
        missing(NO_CALENDARS, names=LONELY, query=ASKED, body=SCHEDULES),
    ),
    *of(
        "POST /users/scheduling/explain",
        ok(data([EXPLAINED_ENTRY]), query=ASKED, body={"users": [{"id": "{userId}"}]}),
        bad("users is required", query=ASKED, body={}),
        bad("at is required", query=RANGE, body={"users": []}),
        bad("onFailure must not be given here", query=ASKED | {"onFailure": "fail"}, body={"users": []}),
        missing(
            "OAuth connection not found",
            query=ASKED | {"connection": f"{0:032x}"},
            body={"users": [{"id": "{userId}"}]},
        ),
    ),
    *of(
        "GET /organizations/{orgSlug}/scheduling/explain",
        ok(data(MEMBERS_EXPLAINED, failedUsers=[]), query=ASKED | DAILY),
        ok(data(MEMBERS_EXPLAINED, failedUsers=[]), query=ASKED | SIDES | {"limit": "1"}),
        ok(data(MEMBERS_EXPLAINED, failedUsers=[FAILED_USER]), query=ASKED, setup=microsoft_down),
        bad("at is required", query=RANGE),
        bad("maxOverlaps", query=ASKED | {"maxOverlaps": "01"}),
        bad_slug(query=ASKED),
        no_organization(query=ASKED),
        missing("Organization has no members", query=ASKED, setup=no_members),
    ),
)
