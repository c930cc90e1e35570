"""The rows of webhook endpoints and their delivery log."""

from __future__ import annotations

from tests.contract.records import NEXT
from tests.contract.rows import Row, bad, may_not_write, missing, of, ok
from tests.contract.shapes import DELIVERY, DONE, WEBHOOK, data
from tests.contract.world import World

# No server listens on this port.
URL = "http://127.0.0.1:9/hook"
REGISTERED = WEBHOOK | {"secret": str}


def registered(world: World) -> None:
    """``webhookId`` is an endpoint of the user's organization."""
    bound = world.new_api(organization=world.names["orgSlug"])
    world.names["webhookId"] = bound.post("/webhooks", {"url": URL}).json["data"]["id"]


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
        ok(data([WEBHOOK]), given=registered),
        ok(data([WEBHOOK], **NEXT), query={"limit": "1"}, given=registered),
        ok(data([]), given=another_organizations),
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
        bad("events must have 1 to 3 elements", body={"url": URL, "events": []}),
        bad("events[0] must be one of", body={"url": URL, "events": ["user.deleted"]}),
        may_not_write(body={"url": URL}),
    ),
    *of(
        "DELETE /webhooks/{webhookId}",
        ok(data(DONE), given=registered),
        bad("webhookId must match", names={"webhookId": "x"}),
        missing("Webhook not found"),
        missing("Webhook not found", given=another_organizations),
        may_not_write(given=registered),
    ),
    *of(
        "GET /webhooks/{webhookId}/deliveries",
        ok(data([DELIVERY], **NEXT), given=delivered),
        ok(data([], **NEXT), given=registered),
        bad("limit", query={"limit": "1001"}, given=registered),
        bad("webhookId must match", names={"webhookId": "x"}),
        missing("Webhook not found"),
        missing("Webhook not found", given=another_organizations),
    ),
    *of(
        "POST /webhooks/{webhookId}/deliveries/{deliveryId}/replay",
        ok(data(DELIVERY), given=delivered),
        bad("deliveryId must match", names={"deliveryId": "x"}),
        missing("Delivery not found", given=registered),
        missing("Webhook not found"),
        missing("Webhook not found", given=another_organizations),
        may_not_write(given=delivered),
    ),
)
