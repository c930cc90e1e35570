"""The rows of webhook endpoints and their delivery log."""

from __future__ import annotations

from store.sql.models import WebhookEndpoint, now
from tests.conftest import stores_of
from tests.contract.records import NEXT
from tests.contract.rows import Row, bad, may_not_write, missing, of, ok
from tests.contract.shapes import DELIVERY, DONE, TIME, WEBHOOK, data
from tests.contract.world import World

# No server listens on this port.
URL = "http://127.0.0.1:9/hook"
REGISTERED = WEBHOOK | {"secret": str}
ROTATED = REGISTERED | {"previousSecretUntil": TIME}
TEST = {"type": frozenset({"webhook.test"}), "timestamp": TIME, "data": {"webhookId": str}}
TESTED = DELIVERY | {"payload": TEST}


def registered(world: World) -> None:
    """``webhookId`` is an endpoint of the user's organization."""
    bound = world.new_api(organization=world.names["orgSlug"])
    world.names["webhookId"] = bound.post("/webhooks", {"url": URL}).json["data"]["id"]


def crowded(world: World) -> None:
    """The organization of the caller's key has as many endpoints as it may."""
    world.api = world.new_api(organization=world.names["orgSlug"])
    assert {world.api.post("/webhooks", {"url": URL}).status_code for _ in range(100)} == {201}


def paused(world: World) -> None:
    """It is paused."""
    registered(world)
    path = f"/webhooks/{world.names['webhookId']}"
    assert world.api.call("PATCH", path, json={"paused": True}).status_code == 200


def disabled(world: World) -> None:
    """Its receiver has answered 410."""
    registered(world)
    stores = stores_of(world.api.client.application)
    with stores.database.writing() as session:
        session.get_one(WebhookEndpoint, world.names["webhookId"]).disabled_at = now()


def delivered(world: World) -> None:
    """``deliveryId`` has been recorded for it."""
    registered(world)
    world.unified()
    log = world.api.get(f"/webhooks/{world.names['webhookId']}/deliveries").json["data"]
    world.names["deliveryId"] = log[0]["id"]


def another_organizations(world: World) -> None:
    """The caller has a key of another organization than the endpoint's."""
    registered(world)
    world.api = world.new_api(organization=world.new_organization())


def strict(world: World) -> None:
    """An installation that sends no webhooks into its own network."""
    made = world.new_app(webhooks_allow_private=False)
    world.api = type(world.api)(made.test_client(), world.api.key)


ROWS: tuple[Row, ...] = (
    *of(
        "GET /webhooks",
        ok(data([WEBHOOK]), setup=registered),
        ok(data([WEBHOOK], **NEXT), query={"limit": "1"}, setup=registered),
        ok(data([]), setup=another_organizations),
        bad("limit", query={"limit": "0"}),
    ),
    *of(
        "POST /webhooks",
        ok(data(REGISTERED), 201, body={"url": URL}),
        ok(data(REGISTERED), 201, body={"url": URL, "events": ["connection.expired"]}),
        bad("url is required", body={}),
        bad("url must be an https URL", body={"url": "mailto:ada@example.com"}),
        bad("url must not hold a user or a password", body={"url": "http://ada:x@127.0.0.1:9/"}),
        bad("url must be an https URL", body={"url": URL}, key=strict),
        bad("url must not lead to a private", body={"url": "https://localhost/hook"}, key=strict),
        bad("events must have 1 to 11 elements", body={"url": URL, "events": []}),
        bad("events[0] must be one of", body={"url": URL, "events": ["user.deleted"]}),
        bad("There are 100 webhooks already", 409, "tooManyWebhooks", body={"url": URL}, setup=crowded),
        may_not_write(body={"url": URL}),
    ),
    *of(
        "GET /webhooks/{webhookId}",
        ok(data(WEBHOOK), setup=registered),
        missing("Webhook not found"),
        missing("Webhook not found", setup=another_organizations),
    ),
    *of(
        "PATCH /webhooks/{webhookId}",
        ok(
            data(WEBHOOK),
            body={"url": URL, "events": ["connection.expired"], "paused": True, "content": True},
            setup=registered,
        ),
        ok(data(WEBHOOK), body={}, setup=registered),
        bad("url must be an https URL", body={"url": "mailto:ada@example.com"}, setup=registered),
        bad("paused must be true or false", body={"paused": "yes"}, setup=registered),
        bad("content must be true or false", body={"content": "yes"}, setup=registered),
        missing("Webhook not found", body={}),
        missing("Webhook not found", body={}, setup=another_organizations),
        may_not_write(body={}, setup=registered),
    ),
    *of(
        "POST /webhooks/{webhookId}/secret",
        ok(data(ROTATED), body={"overlapSeconds": 3600}, setup=registered),
        ok(data(ROTATED), body={}, setup=registered),
        ok(data(ROTATED | {"previousSecretUntil": None}), body={"overlapSeconds": 0}, setup=registered),
        bad("overlapSeconds must be an integer", body={"overlapSeconds": "x"}, setup=registered),
        missing("Webhook not found", body={}),
        missing("Webhook not found", body={}, setup=another_organizations),
        may_not_write(body={}, setup=registered),
    ),
    *of(
        "POST /webhooks/{webhookId}/test",
        ok(data(TESTED), setup=registered),
        bad("The webhook is paused", 409, "webhookPaused", setup=paused),
        bad("The webhook is disabled", 409, "webhookDisabled", setup=disabled),
        missing("Webhook not found"),
        missing("Webhook not found", setup=another_organizations),
        may_not_write(setup=registered),
    ),
    *of(
        "DELETE /webhooks/{webhookId}",
        ok(data(DONE), setup=registered),
        missing("Webhook not found"),
        missing("Webhook not found", setup=another_organizations),
        may_not_write(setup=registered),
    ),
    *of(
        "GET /webhooks/{webhookId}/deliveries",
        ok(data([DELIVERY], **NEXT), setup=delivered),
        ok(data([], **NEXT), setup=registered),
        bad("limit", query={"limit": "1001"}, setup=registered),
        missing("Webhook not found"),
        missing("Webhook not found", setup=another_organizations),
    ),
    *of(
        "POST /webhooks/{webhookId}/deliveries/{deliveryId}/replay",
        ok(data(DELIVERY), setup=delivered),
        missing("Delivery not found", setup=registered),
        missing("Webhook not found"),
        missing("Webhook not found", setup=another_organizations),
        may_not_write(setup=delivered),
    ),
)
