"""What the operations of the OpenAPI document are called: the method names of generated clients."""

from __future__ import annotations

# By method and view. The others are called by both, as ``getUserScheduling`` is.
NAMES = {
    ("get", "Users"): "listUsers",
    ("post", "Users"): "createUser",
    ("get", "UserById"): "getUser",
    ("put", "UserById"): "renameUser",
    ("delete", "UserById"): "deleteUser",
    ("get", "UserOrganizations"): "listUserOrganizations",
    ("get", "Organizations"): "listOrganizations",
    ("post", "Organizations"): "createOrganization",
    ("get", "OrganizationBySlug"): "getOrganization",
    ("put", "OrganizationBySlug"): "changeOrganization",
    ("delete", "OrganizationBySlug"): "deleteOrganization",
    ("get", "Members"): "listMembers",
    ("post", "Members"): "addMembers",
    ("delete", "Members"): "removeMembers",
    ("get", "Connections"): "listConnections",
    ("post", "Connection"): "storeConnection",
    ("post", "Authorize"): "authorize",
    ("get", "Links"): "listLinks",
    ("post", "Verify"): "verify",
    ("get", "Calendars"): "listCalendars",
    ("get", "Events"): "listEvents",
    ("post", "CalendarEvents"): "createEvent",
    ("get", "CalendarEvent"): "getEvent",
    ("put", "CalendarEvent"): "changeEvent",
    ("delete", "CalendarEvent"): "deleteEvent",
    ("post", "UnifiedEvents"): "createUnifiedEvent",
    ("put", "UnifiedEvent"): "changeUnifiedEvent",
    ("get", "Webhooks"): "listWebhooks",
    ("post", "Webhooks"): "createWebhook",
    ("delete", "WebhookById"): "deleteWebhook",
    ("get", "Deliveries"): "listDeliveries",
    ("post", "Replay"): "replayDelivery",
}


def operation_name(method: str, view: str) -> str:
    """The ``operationId`` of a view's method."""
    return NAMES.get((method, view)) or f"{method}{view}"
