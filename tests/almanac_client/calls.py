"""A call of the Python client for every operation of the document, with all parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from almanac_client import Almanac

DAY: dict[str, Any] = {"start": "2026-12-03", "end": "2026-12-04"}
ACCOUNT: dict[str, Any] = {"zone": "Europe/Berlin", "provider": ["google"], "calendar_ids": ["primary"]}
SLOTS: dict[str, Any] = DAY | {
    "zone": "Europe/Berlin",
    "provider": ["google", "microsoft"],
    "slot_duration": 30,
    "padding": 5,
    "max_overlaps": 1,
    "slot_step": 15,
    "align": "clock",
    "earliest_time_each_day": "09:00",
    "latest_time_each_day": "17:00",
}
ONE_USER = {"calendar_ids": ["primary"], "on_failure": "partial"}
SCHEDULES = [{"days": ["monday"], "start": "09:00", "end": "17:00"}]
CONSENT: dict[str, Any] = {
    "scope": "read",
    "access_type": "offline",
    "redirect_url": "https://example.com/back",
    "return_url": "https://example.com/done",
    "expected_email": "ada@example.com",
}
EVENT: dict[str, Any] = DAY | {
    "subject": "Review",
    "description": "Of the plan",
    "location": "Room 4",
    "attendees": [{"email": "grace@example.com"}],
    "meeting": True,
    "meta_id": "meta-1",
    "zone": "Europe/Berlin",
}
RELATIONS = ["oauthConnections"]
HOOK = "wh_1f0c7e5d9a3b4c2e8d6f7a90"
DELIVERY = "msg_019a5e0b7c3d1f0c7e5d9a3b4c2e8d6f"


@dataclass(frozen=True)
class Call:
    """A method of the client, and its arguments."""

    method: Callable[..., Any]
    args: tuple[Any, ...]
    named: dict[str, Any]


def call(method: Callable[..., Any], *args: Any, **named: Any) -> Call:
    return Call(method, args, named)


def calls(almanac: Almanac) -> dict[str, Call]:
    """Calls by operationId; for a list with pages, the pages."""
    key = {"idempotency_key": "key-1"}
    consent_at = ("ada", "google")
    event_at = ("ada", "google", "primary", "event-1")
    notified = {"send_notifications_for": ["google"]}
    return {
        "listUsers": call(almanac.users.list, include=RELATIONS, limit=50),
        "createUser": call(almanac.users.create, "ada", organization_slugs=["acme"], **key),
        "getUser": call(almanac.users.get, "ada", include=RELATIONS),
        "renameUser": call(almanac.users.rename, "ada", "ada2", include=RELATIONS),
        "deleteUser": call(almanac.users.delete, "ada", include=RELATIONS),
        "listUserOrganizations": call(almanac.users.organizations, "ada", limit=50),
        "listOrganizations": call(almanac.organizations.list, limit=50),
        "createOrganization": call(almanac.organizations.create, "acme", name="Acme", **key),
        "getOrganization": call(almanac.organizations.get, "acme"),
        "changeOrganization": call(almanac.organizations.change, "acme", slug="acme-inc", name=None),
        "deleteOrganization": call(almanac.organizations.delete, "acme"),
        "listMembers": call(almanac.members.list, "acme", include=RELATIONS, limit=50),
        "addMembers": call(almanac.members.add, "acme", ["ada"], **key),
        "removeMembers": call(almanac.members.remove, "acme", ["ada"]),
        "listConnections": call(almanac.connections.list, "ada", show_token=True, limit=50),
        "getConnection": call(almanac.connections.get, "ada", "google", show_token=True),
        "storeConnection": call(
            almanac.connections.store,
            "ada",
            "google",
            access_token="a-token",
            scope=["calendar"],
            refresh_token="another",
            email="ada@example.com",
            expires_at="2026-12-03T09:00:00Z",
            **key,
        ),
        "deleteConnection": call(almanac.connections.delete, "ada", "google", revoke=False),
        "getAccessToken": call(almanac.connections.access_token, "ada", "google"),
        "authorize": call(almanac.connections.authorize, *consent_at, **CONSENT),
        "getLink": call(almanac.connections.link, *consent_at, **CONSENT | {"scope": ["read"]}),
        "listLinks": call(almanac.connections.links, "ada", **CONSENT | {"scope": ["read"]}),
        "verify": call(almanac.connections.verify, "google", code="code", state="state", scope="calendar"),
        "listCalendars": call(almanac.calendars.pages, "ada", provider=["google"], limit=50),
        "listEvents": call(almanac.events.pages, "ada", limit=50, **DAY, **ACCOUNT),
        "createEvent": call(
            almanac.events.create, *event_at[:3], id="abcde", send_notifications=True, **EVENT, **key
        ),
        "getEvent": call(almanac.events.get, *event_at),
        "changeEvent": call(almanac.events.change, *event_at, send_notifications=False, **EVENT),
        "deleteEvent": call(almanac.events.delete, *event_at, send_notifications=True),
        "createUnifiedEvent": call(
            almanac.unified_events.create, "ada", provider=["google"], **notified, **EVENT, **key
        ),
        "getUnifiedEvent": call(almanac.unified_events.get, "ada", "meta-1", provider=["google"]),
        "changeUnifiedEvent": call(
            almanac.unified_events.change, "ada", "meta-1", provider=["google"], **notified, **EVENT
        ),
        "deleteUnifiedEvent": call(
            almanac.unified_events.delete, "ada", "meta-1", provider=["google"], **notified
        ),
        "getUserBusy": call(almanac.busy.user, "ada", primary_only=True, **DAY, **ACCOUNT),
        "getOrganizationBusy": call(
            almanac.busy.organization, "acme", primary_only=True, zone="UTC", provider=["google"], **DAY
        ),
        "getUserScheduling": call(almanac.scheduling.user, "ada", **SLOTS, **ONE_USER),
        "postUserScheduling": call(almanac.scheduling.user, "ada", schedules=SCHEDULES, **SLOTS, **ONE_USER),
        "postUsersScheduling": call(almanac.scheduling.users, ["ada"], schedules=SCHEDULES, **SLOTS),
        "getOrganizationScheduling": call(almanac.scheduling.organization, "acme", **SLOTS),
        "getUserExplanation": call(almanac.explain.user, "ada", at="2026-12-03T09:00", **SLOTS, **ONE_USER),
        "postUserExplanation": call(
            almanac.explain.user, "ada", at="2026-12-03T09:00", schedules=SCHEDULES, **SLOTS, **ONE_USER
        ),
        "getOrganizationExplanation": call(
            almanac.explain.organization, "acme", at="2026-12-03T09:00", **SLOTS
        ),
        "listWebhooks": call(almanac.webhooks.list, limit=50),
        "createWebhook": call(
            almanac.webhooks.create, "https://example.com/hook", events=["calendar.changed"], **key
        ),
        "deleteWebhook": call(almanac.webhooks.delete, HOOK),
        "listDeliveries": call(almanac.webhooks.deliveries, HOOK, limit=50),
        "replayDelivery": call(almanac.webhooks.replay, HOOK, DELIVERY),
    }
