"""Security-relevant actions are recorded in the audit log with their actor and subject."""

from __future__ import annotations

import pytest

from store.sql.queries import audit, connection_rows, webhook_events
from store.sql.queries.webhook_events import WebhookEvent
from tests.app.cli.test_commands import almanac


@pytest.fixture
def written(stores):
    """The audit records since the start of the test, the oldest first."""
    with stores.database.reading() as session:
        last = [row.id for row in audit.page(session, limit=1)]

    def read():
        with stores.database.reading() as session:
            rows = [row for row in audit.page(session) if not last or row.id > last[0]]
        return [(row.actor, row.action, row.subject) for row in reversed(rows)]

    return read


@pytest.fixture
def actor(api):
    return api.key[:12]


def test_a_user_that_is_deleted_and_the_connections_that_end_with_it(
    api, actor, new_user, sandbox, worker, written
):
    user = new_user(sandbox.account("google", "ada@example.com"))

    assert api.delete(f"/users/{user}").status_code == 200

    assert written() == [
        (actor, "deleteConnection", f"{user}/google"),
        (actor, "deleteUser", user),
    ]


def test_a_connection_that_is_deleted(api, actor, new_user, sandbox, worker, written):
    user = new_user(sandbox.account("microsoft", "ada@example.com"))

    assert api.delete(f"/users/{user}/oauth/microsoft").status_code == 200
    assert api.delete(f"/users/{user}/oauth/microsoft").status_code == 404

    assert written() == [(actor, "deleteConnection", f"{user}/microsoft")]


def test_tokens_that_are_stored_and_replaced(api, new_api, actor, new_user, new_organization, written):
    user, slug = new_user(slugs=(new_organization(),)), new_organization()
    body = {"accessToken": "planted", "scope": ["openid"]}
    path = f"/users/{user}/oauth/google"
    assert new_api(organization=slug).post(path, body).status_code == 404
    assert api.post(path, {"scope": []}).status_code == 400
    assert written() == []

    assert [api.post(path, body).status_code for _ in range(2)] == [201, 201]

    assert written() == [
        (actor, "storeConnection", f"{user}/google"),
        (actor, "replaceConnection", f"{user}/google"),
    ]


def test_an_organization_that_is_deleted(api, new_api, actor, new_organization, written):
    slug = new_organization()
    assert new_api(organization=slug).delete(f"/organizations/{slug}").status_code == 403
    assert written() == []

    assert api.delete(f"/organizations/{slug}").status_code == 200

    assert written() == [(actor, "deleteOrganization", slug)]


def test_a_webhook_that_is_made_and_deleted(api, actor, written):
    body = {"url": "http://127.0.0.1:9/secret", "events": ["calendar.changed"]}
    made = api.post("/webhooks", body)
    assert made.status_code == 201, made.json
    webhook = made.json["data"]["id"]

    assert api.delete(f"/webhooks/{webhook}").status_code == 200
    assert api.delete(f"/webhooks/{webhook}").status_code == 404

    # The id instead of the URL, which may hold a secret of the receiver.
    assert written() == [(actor, "createWebhook", webhook), (actor, "deleteWebhook", webhook)]


def test_a_delivery_that_is_sent_again(api, actor, stores, new_user, sandbox, written):
    user = new_user(sandbox.account("google", "ada@example.com"))
    webhook = api.post("/webhooks", {"url": "http://127.0.0.1:9/"}).json["data"]["id"]
    with stores.database.writing() as session:
        ((connection,),) = connection_rows.of_users(session, [user], organization_id=None).values()
        webhook_events.record(session, WebhookEvent.CONNECTION_EXPIRED, connection.id)
    (delivery,) = api.get(f"/webhooks/{webhook}/deliveries").json["data"]

    assert api.post(f"/webhooks/{webhook}/deliveries/{delivery['id']}/replay").status_code == 200
    assert api.post(f"/webhooks/{webhook}/deliveries/msg_{0:032x}/replay").status_code == 404
    api.delete(f"/webhooks/{webhook}")

    assert written()[1:-1] == [(actor, "replayDelivery", f"{webhook}/{delivery['id']}")]


def test_refused_actions_and_missing_subjects_are_not_recorded(api, new_api, written):
    reader = new_api(read_only=True)
    for path in ("/users/nobody", "/organizations/nowhere", f"/webhooks/wh_{0:024x}"):
        assert api.delete(path).status_code == 404
        assert reader.delete(path).status_code == 403
    assert api.post("/webhooks", {"url": "ftp://example.com", "events": []}).status_code == 400

    assert written() == []


def test_keys_that_are_made_and_revoked_at_the_command_line(environment, stores, written):
    settings = {name: value for name, value in environment.items() if name.startswith("ALMANAC_")}
    data = settings.pop("ALMANAC_DATA_DIR")
    keys = [almanac("keys", "create", "audited", data=data, **settings).stdout.strip() for _ in range(2)]
    assert almanac("keys", "revoke", "audited", data=data, **settings).exit_code == 0
    assert almanac("keys", "revoke", "audited", data=data, **settings).exit_code == 1

    by = "command line"
    assert written()[:2] == [(by, "createKey", key[:12]) for key in keys]
    assert sorted(written()[2:]) == sorted((by, "revokeKey", key[:12]) for key in keys)
