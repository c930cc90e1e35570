"""The rows of holds."""

from __future__ import annotations

from store.sql.models import Hold
from tests.app.at_provider import NINE
from tests.conftest import stores_of
from tests.contract.records import NEXT
from tests.contract.rows import (
    LATER,
    PROVIDER_ERROR,
    TAKEN,
    THROTTLED,
    Row,
    bad,
    may_not_write,
    missing,
    of,
    ok,
)
from tests.contract.shapes import DONE, FAILED_CALENDAR, FAILED_USER, TIME, data
from tests.contract.world import World

BARE_HOLD = {"id": str, "users": [str], "start": TIME, "end": TIME, "expiresAt": TIME}
HOLD = {**BARE_HOLD, "note": str}
# The world's accounts are busy from nine to ten.
ELEVEN = {"users": ["{userId}"], "start": "2026-12-03T11:00:00Z", "end": "2026-12-03T11:30:00Z"}
UNREAD = PROVIDER_ERROR | {"failedCalendars": [FAILED_CALENDAR], "failedUsers": [FAILED_USER]}


def held(world: World) -> None:
    """``holdId`` is a hold of the user."""
    answer = world.api.post("/holds", world.filled(ELEVEN) | {"note": "cart 4711"})
    assert answer.status_code == 201, answer.text
    world.names["holdId"] = answer.json["data"]["id"]


def claimed(world: World) -> None:
    """A create is using it."""
    held(world)
    stores = stores_of(world.api.client.application)
    with stores.database.writing() as session:
        session.get_one(Hold, world.names["holdId"]).claim = "create"


def provider_down(world: World) -> None:
    world.inject_fault(status=503, retry_after=LATER)


ROWS: tuple[Row, ...] = (
    *of(
        "GET /holds",
        ok(data([HOLD]), query={"user": "{userId}"}, setup=held),
        ok(data([HOLD], **NEXT), query={"user": "{userId}", "limit": "1"}, setup=held),
        missing("User not found", query={"users": "a"}),
        bad("limit", query={"limit": "0"}),
        missing("User not found", query={"user": "nobody"}),
    ),
    *of(
        "POST /holds",
        ok(data(HOLD), 201, body=ELEVEN | {"note": "cart 4711"}),
        ok(data(BARE_HOLD), 201, body=ELEVEN | {"expiresIn": 60, "padding": 15, "maxOverlaps": 1}),
        bad("The time is taken", 409, "slotTaken", shape=TAKEN, body={"users": ["{userId}"], **NINE}),
        bad("The time is taken", 409, "slotTaken", shape=TAKEN, body=ELEVEN, setup=held),
        bad("users is required", body=NINE),
        bad("end must be at most 24 hours", body=ELEVEN | {"end": "2026-12-05"}),
        bad("start must be before end", body=ELEVEN | {"end": ELEVEN["start"]}),
        bad("padding", query={"padding": "-1"}, body=ELEVEN),
        ok(data(BARE_HOLD), 201, body=ELEVEN | {"users": [{"id": "{userId}", "calendarIds": ["primary"]}]}),
        bad("calendarIds must be given in the entry", body=ELEVEN | {"calendarIds": ["primary"]}),
        missing("User not found", body=ELEVEN | {"users": ["nobody"]}),
        missing("User has no connected calendars", body=ELEVEN | {"users": ["{lonely}"]}),
        bad("", 502, "providerError", shape=UNREAD, body=ELEVEN, setup=provider_down),
        may_not_write(body=ELEVEN),
    ),
    *of(
        "GET /holds/{holdId}",
        ok(data(HOLD), setup=held),
        missing("Hold not found"),
    ),
    *of(
        "DELETE /holds/{holdId}",
        ok(data(DONE), setup=held),
        bad("An event is being created", 409, "holdInUse", shape=THROTTLED, setup=claimed),
        missing("Hold not found"),
        may_not_write(setup=held),
    ),
)
