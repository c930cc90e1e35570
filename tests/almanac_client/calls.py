"""A call of the Python clients for every operation of the document, with all parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from almanac_client.client import Resources

DAY: dict[str, Any] = {"start": "2026-12-03", "end": "2026-12-04"}
CHOSEN: dict[str, Any] = {"provider": ["google"], "connection": ["5f0c3e9a7b1d4e2f8a6c9d0b1e3f5a7c"]}
ACCOUNT: dict[str, Any] = CHOSEN | {
    "zone": "Europe/Berlin",
    "calendar_ids": ["primary"],
    "max_age": 10,
}
SLOTS: dict[str, Any] = DAY | {
    "zone": "Europe/Berlin",
    **CHOSEN,
    "slot_duration": 30,
    "padding": 5,
    "padding_before": 10,
    "padding_after": 0,
    "max_overlaps": 1,
    "slot_step": 15,
    "align": "clock",
    "minimum_notice": 60,
    "limit": 3,
    "earliest_time_each_day": "09:00",
    "latest_time_each_day": "17:00",
    "primary_only": False,
    "profile": "ignore",
    "max_age": 10,
}
ORDERED = {"order": "leastBusy"}
PROFILE: dict[str, Any] = {
    "time_zone": "Asia/Tokyo",
    "schedules": [{"days": ["monday"], "start": "09:00", "end": "17:00"}],
    "overrides": [{"date": "2026-12-03", "windows": []}],
    "calendars": [{"connection_id": "5b0a3c9d1e7f4a2b8c6d0e1f2a3b4c5d", "calendar_id": "primary"}],
    "padding_before": 5,
    "padding_after": 5,
    "minimum_notice": 60,
    "holidays": {"country": "JP", "subdivision": "13"},
}
ONE_USER = {"calendar_ids": ["primary"], "on_failure": "partial"}
SCHEDULES = [{"days": ["monday"], "start": "09:00", "end": "17:00"}]
GROUPS = [{"users": ["ada"], "required": 1}, {"organization": "acme", "required": "all"}]
OVERRIDES = [{"date": "2026-12-03", "windows": [{"start": "10:00", "end": "12:00"}]}]
CONSENT: dict[str, Any] = {
    "scope": "read",
    "access_type": "offline",
    "redirect_url": "https://example.com/back",
    "return_url": "https://example.com/done",
    "expected_email": "ada@example.com",
    "account": "add",
}
EVENT: dict[str, Any] = DAY | {
    "subject": "Review",
    "description": "Of the plan",
    "location": "Room 4",
    "attendees": [{"email": "grace@example.com", "name": "Grace", "optional": True, "resource": False}],
    "meeting": True,
    "meta_id": "meta-1",
    "show_as": "tentative",
    "visibility": "private",
    "reminders": [10],
    "recurrence": ["RRULE:FREQ=DAILY;COUNT=3"],
    "time_zone": "Europe/Berlin",
    "zone": "Europe/Berlin",
}
RELATIONS = ["oauthConnections"]
_NUMBERS = "requests_per_minute", "waiting_reads", "waiting_writes", "held_users", "webhook_turns"
QUOTAS = dict.fromkeys(_NUMBERS, 7)
HOOK = "wh_1f0c7e5d9a3b4c2e8d6f7a90"
HOLD = "hold_5d9a3b4c2e8d6f7a901f0c7e"
CONDITION = {
    "if_free": True,
    "hold": HOLD,
    "padding": 5,
    "padding_before": 5,
    "padding_after": 5,
    "max_overlaps": 1,
    "minimum_notice": 5,
    "profile": "ignore",
    "calendar_ids": ["primary"],
}
ETAG = 'W/"1"'
KEY = "key_12"
DELIVERY = "msg_019a5e0b7c3d1f0c7e5d9a3b4c2e8d6f"


@dataclass(frozen=True)
class Call:
    """A method of the client, and its arguments."""

    method: Callable[..., Any]
    args: tuple[Any, ...]
    named: dict[str, Any]


def call(method: Callable[..., Any], *args: Any, **named: Any) -> Call:
    return Call(method, args, named)


def calls(almanac: Resources[Any]) -> dict[str, Call]:
    """Calls by operationId; for a list with pages, the pages."""
    key = {"idempotency_key": "key-1"}
    consent_at = ("ada", "google")
    event_at = ("ada", "google", "primary", "event-1")
    notified = {"send_notifications_for": ["google"]}
    return {
        "listUsers": call(almanac.users.list, include=RELATIONS, limit=50),
        "createUser": call(almanac.users.create, "ada", organization_slugs=["acme"], **key),
        "getUser": call(almanac.users.get, "ada", include=RELATIONS),
        "exportUser": call(almanac.users.export, "ada"),
        "renameUser": call(almanac.users.rename, "ada", "ada2", include=RELATIONS),
        "deleteUser": call(almanac.users.delete, "ada", include=RELATIONS),
        "getAvailability": call(almanac.users.availability, "ada"),
        "storeAvailability": call(almanac.users.replace_availability, "ada", if_match=ETAG, **PROFILE),
        "updateAvailability": call(almanac.users.change_availability, "ada", if_match=ETAG, **PROFILE),
        "deleteAvailability": call(almanac.users.delete_availability, "ada", if_match=ETAG),
        "listUserOrganizations": call(almanac.users.organizations, "ada", limit=50),
        "listOrganizations": call(almanac.organizations.list, limit=50),
        "createOrganization": call(almanac.organizations.create, "acme", name="Acme", quotas=QUOTAS, **key),
        "getOrganization": call(almanac.organizations.get, "acme"),
        "updateOrganization": call(
            almanac.organizations.change, "acme", slug="acme-inc", name=None, quotas=QUOTAS
        ),
        "deleteOrganization": call(almanac.organizations.delete, "acme"),
        "listMembers": call(almanac.members.list, "acme", include=RELATIONS, limit=50),
        "addMembers": call(almanac.members.add, "acme", ["ada"], **key),
        "removeMember": call(almanac.members.remove_one, "acme", "ada"),
        "removeMembers": call(almanac.members.remove, "acme", ["ada"]),
        "listGrants": call(almanac.grants.list, "acme"),
        "storeGoogleGrant": call(
            almanac.grants.store_google,
            "acme",
            service_account_key={"type": "service_account", "private_key": "-"},
            subject="admin@acme.example",
            scope="read",
        ),
        "storeMicrosoftGrant": call(
            almanac.grants.store_microsoft,
            "acme",
            tenant="acme.example",
            client_id="id",
            client_secret="-",
            certificate="-",
            thumbprint="00" * 20,
        ),
        "getGrant": call(almanac.grants.get, "acme", "google"),
        "deleteGrant": call(almanac.grants.delete, "acme", "google"),
        "importGrantMembers": call(
            almanac.grants.import_members,
            "acme",
            "google",
            [{"user_id": "ada", "email": "ada@acme.example"}],
            **key,
        ),
        "listDirectory": call(almanac.grants.directory, "acme", "google", q="ada", kind="user"),
        "listHolds": call(almanac.holds.list, "ada", users=["ada"], limit=50),
        "createHold": call(
            almanac.holds.create,
            ["ada"],
            **DAY,
            expires_in=60,
            note="cart 4711",
            padding=5,
            padding_before=5,
            padding_after=5,
            max_overlaps=1,
            minimum_notice=5,
            profile="ignore",
            zone="Europe/Berlin",
            **key,
        ),
        "getHold": call(almanac.holds.get, HOLD),
        "deleteHold": call(almanac.holds.release, HOLD),
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
        "listUserConnections": call(almanac.connections.all, "ada"),
        "addConnection": call(
            almanac.connections.add,
            "ada",
            "google",
            access_token="a-token",
            scope=["calendar"],
            refresh_token="another",
            email="ada@example.com",
            expires_at="2026-12-03T09:00:00Z",
            label="Work",
            url="https://caldav.example.com/",
            username="ada",
            password="not-a-secret",
            **key,
        ),
        "getUserConnection": call(almanac.connections.one, "ada", CHOSEN["connection"][0]),
        "updateConnection": call(
            almanac.connections.change, "ada", CHOSEN["connection"][0], label="Work", default=True
        ),
        "deleteUserConnection": call(
            almanac.connections.remove, "ada", CHOSEN["connection"][0], revoke=False
        ),
        "deleteConnection": call(almanac.connections.delete, "ada", "google", revoke=False),
        "getAccessToken": call(almanac.connections.access_token, "ada", "google"),
        "createConsentLink": call(almanac.connections.authorize, *consent_at, **CONSENT),
        "getConsentLink": call(almanac.connections.link, *consent_at, **CONSENT | {"scope": ["read"]}),
        "listConsentLinks": call(almanac.connections.links, "ada", **CONSENT | {"scope": ["read"]}),
        "verifyConsent": call(
            almanac.connections.verify, "google", code="code", state="state", scope="calendar"
        ),
        "listCalendars": call(almanac.calendars.pages, "ada", limit=50, **CHOSEN),
        "listEvents": call(
            almanac.events.pages, "ada", limit=50, q="review", updated_since="2026-11-01", **DAY, **ACCOUNT
        ),
        "listChanges": call(almanac.events.changes, "ada", cursor="cursor", **DAY, **ACCOUNT),
        "createEvent": call(
            almanac.events.create,
            *event_at[:3],
            id="abcde",
            send_notifications=True,
            **EVENT,
            connection=CHOSEN["connection"],
            **CONDITION,
            **key,
        ),
        "getEvent": call(almanac.events.get, *event_at, connection=CHOSEN["connection"]),
        "updateEvent": call(
            almanac.events.change,
            *event_at,
            connection=CHOSEN["connection"],
            send_notifications=False,
            if_match=ETAG,
            scope="occurrence",
            if_free=True,
            padding=5,
            padding_before=5,
            padding_after=5,
            max_overlaps=1,
            minimum_notice=5,
            profile="ignore",
            **EVENT,
        ),
        "respondToEvent": call(
            almanac.events.respond,
            *event_at,
            response="declined",
            comment="I am on leave",
            notify=True,
            connection=CHOSEN["connection"],
        ),
        "deleteEvent": call(
            almanac.events.delete,
            *event_at,
            connection=CHOSEN["connection"],
            send_notifications=True,
            if_match=ETAG,
            scope="series",
        ),
        "createUnifiedEvent": call(
            almanac.unified_events.create, "ada", **CHOSEN, **notified, **EVENT, **CONDITION, **key
        ),
        "getUnifiedEvent": call(almanac.unified_events.get, "ada", "meta-1", **CHOSEN),
        "updateUnifiedEvent": call(
            almanac.unified_events.change, "ada", "meta-1", **CHOSEN, **notified, **EVENT
        ),
        "deleteUnifiedEvent": call(almanac.unified_events.delete, "ada", "meta-1", **CHOSEN, **notified),
        "listUserBusyPeriods": call(almanac.busy.user, "ada", primary_only=True, **DAY, **ACCOUNT),
        "listBusyPeriodsOfUsers": call(
            almanac.busy.users,
            ["ada"],
            primary_only=True,
            zone="UTC",
            **CHOSEN,
            max_age=10,
            **DAY,
        ),
        "listOrganizationBusyPeriods": call(
            almanac.busy.organization,
            "acme",
            primary_only=True,
            zone="UTC",
            **CHOSEN,
            max_age=0,
            **DAY,
        ),
        "listUserSlots": call(almanac.scheduling.user, "ada", **SLOTS, **ONE_USER),
        "listUserSlotsInSchedules": call(
            almanac.scheduling.user, "ada", schedules=SCHEDULES, overrides=OVERRIDES, **SLOTS, **ONE_USER
        ),
        "listSlotsOfUsers": call(
            almanac.scheduling.users, ["ada"], schedules=SCHEDULES, overrides=OVERRIDES, **SLOTS
        ),
        "listOrganizationSlots": call(almanac.scheduling.organization, "acme", **SLOTS, **ORDERED),
        "listOrganizationSlotsInSchedules": call(
            almanac.scheduling.organization,
            "acme",
            schedules=SCHEDULES,
            overrides=OVERRIDES,
            **SLOTS,
            **ORDERED,
        ),
        "explainMomentOfUsers": call(
            almanac.explain.users,
            ["ada"],
            at="2026-12-03T09:00",
            schedules=SCHEDULES,
            overrides=OVERRIDES,
            **SLOTS,
        ),
        "listSharedSlots": call(
            almanac.scheduling.groups,
            GROUPS,
            schedules=SCHEDULES,
            overrides=OVERRIDES,
            on_failure="partial",
            **SLOTS,
            **ORDERED,
        ),
        "explainSharedMoment": call(
            almanac.explain.groups,
            GROUPS,
            at="2026-12-03T09:00",
            schedules=SCHEDULES,
            overrides=OVERRIDES,
            on_failure="partial",
            **SLOTS,
            **ORDERED,
        ),
        "explainUserMoment": call(almanac.explain.user, "ada", at="2026-12-03T09:00", **SLOTS, **ONE_USER),
        "explainUserMomentInSchedules": call(
            almanac.explain.user,
            "ada",
            at="2026-12-03T09:00",
            schedules=SCHEDULES,
            overrides=OVERRIDES,
            **SLOTS,
            **ONE_USER,
        ),
        "explainOrganizationMoment": call(
            almanac.explain.organization, "acme", at="2026-12-03T09:00", **SLOTS, **ORDERED
        ),
        "listWebhooks": call(almanac.webhooks.list, limit=50),
        "createWebhook": call(
            almanac.webhooks.create,
            "https://example.com/hook",
            events=["calendar.changed"],
            content=True,
            **key,
        ),
        "getWebhook": call(almanac.webhooks.get, HOOK),
        "updateWebhook": call(
            almanac.webhooks.change,
            HOOK,
            url="https://example.com/hook",
            events=["calendar.changed"],
            paused=True,
            content=True,
        ),
        "rotateWebhookSecret": call(almanac.webhooks.rotate_secret, HOOK, overlap_seconds=0, **key),
        "testWebhook": call(almanac.webhooks.test, HOOK),
        "deleteWebhook": call(almanac.webhooks.delete, HOOK),
        "listDeliveries": call(almanac.webhooks.deliveries, HOOK, limit=50),
        "replayDelivery": call(almanac.webhooks.replay, HOOK, DELIVERY),
        "listKeys": call(almanac.keys.list, limit=50),
        "createKey": call(
            almanac.keys.create,
            "billing",
            organization="acme",
            read_only=True,
            show_tokens=False,
            expires_at="2199-01-01",
            rate_limit=600,
            **key,
        ),
        "getKey": call(almanac.keys.get, KEY),
        "updateKey": call(
            almanac.keys.change,
            KEY,
            name="invoices",
            read_only=True,
            show_tokens=False,
            expires_at="2199-01-01",
            rate_limit=None,
        ),
        "rotateKey": call(almanac.keys.rotate, KEY, overlap_seconds=0, **key),
        "deleteKey": call(almanac.keys.delete, KEY),
    }
