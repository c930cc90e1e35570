"""Webhooks from end to end: registered over HTTP, sent by a real worker, received over a real socket."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.services import EXTENSION
from store.sql.models import WebhookEndpoint
from store.sql.queries import connections, webhooks
from tests.app.answers import error
from tests.app.at_provider import NINE, AtProvider, Person
from tests.conftest import connect
from tests.waiting import until

EVENTS = ["calendar.changed", "connection.expired", "connection.restored"]
NOWHERE = "http://127.0.0.1:9/hook"
RANGE = {"start": "2026-12-03", "end": "2026-12-04"}

pytestmark = pytest.mark.usefixtures("no_webhook_endpoints")


@pytest.fixture
def person(api, sandbox, new_user, unique) -> Callable[..., Person]:
    """Make a user with one account at a provider."""

    def make(provider="google", slugs=()):
        account = sandbox.account(provider, f"{unique('ada')}@{provider}.example")
        user = new_user(account, slugs=slugs)
        return Person(api, user, account, AtProvider(sandbox, account))

    return make


@pytest.fixture
def sweep(app) -> Callable[[], object]:
    """Run the task that beat schedules every few seconds."""
    celery = app.extensions[EXTENSION].celery
    return lambda: celery.send_task("webhooks.sweep")


def register(api, url, **more):
    answer = api.post("/webhooks", {"url": url, **more})
    assert answer.status_code == 201, answer.text
    return answer.json["data"]


def log(api, endpoint):
    """The deliveries to an endpoint, the oldest first."""
    return api.get(f"/webhooks/{endpoint['id']}/deliveries").json["data"][::-1]


def kinds(receiver, secret):
    return [each.verified(secret)["type"] for each in receiver.received]


# --- endpoints


def test_an_endpoint_is_registered_listed_and_deleted(api):
    made = register(api, NOWHERE)
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert made["events"] == EVENTS
    assert api.get("/webhooks").json == {"data": [made]}
    some = register(api, NOWHERE, events=["connection.expired", "connection.expired"])
    assert some["events"] == ["connection.expired"]
    assert some["secret"] != secret
    answer = api.delete(f"/webhooks/{made['id']}")
    assert answer.json == {"data": {"success": True}}
    assert [each["id"] for each in api.get("/webhooks").json["data"]] == [some["id"]]
    assert error(api.delete(f"/webhooks/{made['id']}"), 404) == "Webhook not found"
    assert error(api.get(f"/webhooks/{made['id']}/deliveries"), 404) == "Webhook not found"


def test_endpoints_are_listed_in_pages(api):
    ids = sorted(register(api, NOWHERE)["id"] for _ in range(3))
    first = api.get("/webhooks", limit=2).json
    rest = api.get("/webhooks", cursor=first["nextCursor"]).json
    assert [each["id"] for each in (*first["data"], *rest["data"])] == ids
    assert rest["nextCursor"] is None


def test_an_organization_has_so_many_endpoints(api, new_api, new_organization, monkeypatch):
    monkeypatch.setattr(webhooks, "MOST_ENDPOINTS", 2)
    bound, other = (new_api(organization=new_organization()) for _ in range(2))
    for each in (bound, other, api):
        made = [register(each, NOWHERE) for _ in range(2)]
        assert error(each.post("/webhooks", {"url": NOWHERE}), 409) == "There are 2 webhooks already"
        each.delete(f"/webhooks/{made[0]['id']}")
        register(each, NOWHERE)


def test_a_secret_is_shown_once_and_kept_sealed(api, stores, caplog):
    caplog.set_level(0)
    answer = api.post("/webhooks", {"url": NOWHERE})
    made = answer.json["data"]
    assert answer.headers["Cache-Control"] == "no-store"
    bare = made["secret"].removeprefix("whsec_")
    for path in ("/webhooks", f"/webhooks/{made['id']}/deliveries"):
        assert bare not in api.get(path).text
    with stores.database.reading() as session:
        row = session.get_one(WebhookEndpoint, made["id"])
        assert bare.encode() not in row.sealed_secret
        assert bare not in repr(row)
    assert bare not in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/hook",
        "https://localhost:8443/hook",
        "https://[::ffff:127.0.0.1]/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest/meta-data",
    ],
)
def test_nothing_private_is_registered(new_app, new_api, url):
    made = new_app(webhooks_allow_private=False)
    strict = type(new_api())(made.test_client(), new_api().key)
    message = "url must not lead to a private or loopback address"
    assert error(strict.post("/webhooks", {"url": url}), 400) == message
    plain = strict.post("/webhooks", {"url": url.replace("https:", "http:")})
    assert error(plain, 400) == "url must be an https URL"
    assert strict.get("/webhooks").json["data"] == []


def test_a_name_that_is_not_known_yet_can_be_registered(new_app, new_api):
    made = new_app(webhooks_allow_private=False)
    strict = type(new_api())(made.test_client(), new_api().key)
    assert strict.post("/webhooks", {"url": "https://hooks.invalid/"}).status_code == 201


# --- whose events


@pytest.mark.usefixtures("worker")
def test_a_bound_key_has_its_own_endpoints_and_hears_of_its_own_users(
    api, new_api, new_organization, person, receiver
):
    own, other = new_organization(), new_organization()
    bound, stranger = new_api(organization=own), new_api(organization=other)
    mine, theirs = register(bound, receiver.url), register(stranger, NOWHERE)
    assert [each["id"] for each in bound.get("/webhooks").json["data"]] == [mine["id"]]
    assert {each["id"] for each in api.get("/webhooks").json["data"]} == {mine["id"], theirs["id"]}
    for call in (
        bound.delete(f"/webhooks/{theirs['id']}"),
        bound.get(f"/webhooks/{theirs['id']}/deliveries"),
    ):
        assert error(call, 404) == "Webhook not found"
    member, elsewhere = person(slugs=(own,)), person(slugs=(other,))
    elsewhere.made()
    member.made()
    until(lambda: receiver.received)
    (delivery,) = log(bound, mine)
    assert delivery["payload"]["data"]["userId"] == member.user
    assert [each["payload"]["data"]["userId"] for each in log(stranger, theirs)] == [elsewhere.user]
    replay = f"/deliveries/{delivery['id']}/replay"
    assert error(stranger.post(f"/webhooks/{mine['id']}{replay}"), 404) == "Webhook not found"
    assert error(stranger.post(f"/webhooks/{theirs['id']}{replay}"), 404) == "Delivery not found"


# --- events


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_a_change_through_the_api_arrives_without_anybody_sweeping(api, person, receiver, provider):
    endpoint = register(api, receiver.url)
    ada = person(provider)
    ada.made(subject="Salary review")
    until(lambda: log(api, endpoint)[-1]["status"] == "delivered")
    (received,) = receiver.received
    payload = received.verified(endpoint["secret"])
    assert payload["type"] == "calendar.changed"
    # Google's id would be the person's address.
    named = "primary" if provider == "google" else ada.main
    assert payload["data"] == {"userId": ada.user, "provider": provider, "calendarId": named}
    (delivery,) = log(api, endpoint)
    assert (delivery["id"], delivery["payload"]) == (received.id, payload)
    assert (delivery["attempts"], delivery["lastStatus"], delivery["lastError"]) == (1, 204, None)


@pytest.mark.usefixtures("worker")
def test_a_read_after_a_notification_sees_the_change(api, person, receiver):
    ada = person()
    seen = []

    def busy():
        return len(api.get(f"/users/{ada.user}/calendar/busy", **RANGE).json["data"])

    receiver.meanwhile = lambda _: seen.append(busy())
    endpoint = register(api, receiver.url)
    assert busy() == 0
    ada.made()
    until(lambda: [each["status"] for each in log(api, endpoint)] == ["delivered"])
    assert seen == [1]


@pytest.mark.usefixtures("worker")
def test_changes_while_a_receiver_is_away_are_one_event_for_each_calendar(api, person, receiver, sweep):
    endpoint = register(api, receiver.url)
    receiver.down()
    ada = person()
    first = ada.made()
    until(lambda: log(api, endpoint)[0]["attempts"] >= 1)
    ada.update(first["id"], title="Another")
    ada.delete(first["id"])
    waiting = [each["status"] for each in log(api, endpoint)]
    # One more only where an attempt was under way.
    assert 1 <= waiting.count("pending") <= 2
    receiver.up()
    until(lambda: all(each["status"] == "delivered" for each in log(api, endpoint)), meanwhile=sweep)


@pytest.mark.usefixtures("worker")
def test_what_was_refused_changed_nothing(api, person, receiver):
    endpoint = register(api, receiver.url)
    ada = person()
    assert ada.delete("nothing").status_code == 404
    assert ada.create(calendar="nowhere").status_code == 404
    assert log(api, endpoint) == []


@pytest.mark.usefixtures("worker")
def test_a_write_of_unknown_outcome_is_notified(api, person, receiver, sandbox):
    endpoint = register(api, receiver.url)
    ada = person()
    sandbox.fault(operation="google.events.insert", status=503, times=50)
    assert ada.create().status_code == 502
    until(lambda: [each["status"] for each in log(api, endpoint)] == ["delivered"])


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_a_grant_that_ends_and_is_restored_is_notified_once_each(api, person, receiver, sandbox, provider):
    ada = person(provider)
    endpoint = register(api, receiver.url)
    sandbox.revoke(ada.account.email)
    for _ in range(3):
        # The access token ends with the grant, so that each request asks the provider.
        api.get(f"/users/{ada.user}/calendar/busy", headers={"Cache-Control": "no-cache"}, **RANGE)
    until(lambda: [each["status"] for each in log(api, endpoint)] == ["delivered"])
    again = sandbox.account(provider, ada.account.email)
    connect(api, ada.user, again)
    connect(api, ada.user, again)
    until(lambda: [each["status"] for each in log(api, endpoint)] == ["delivered"] * 2)
    assert kinds(receiver, endpoint["secret"]) == ["connection.expired", "connection.restored"]
    data = {"userId": ada.user, "provider": provider}
    assert [each["payload"]["data"] for each in log(api, endpoint)] == [data] * 2


# --- receivers that are away


@pytest.mark.usefixtures("worker")
def test_a_receiver_that_is_down_gets_every_event_once_it_is_back(api, person, receiver, sweep):
    endpoint = register(api, receiver.url)
    receiver.down()
    people = [person(provider) for provider in ("google", "microsoft", "google")]
    for ada in people:
        ada.made()
    # An attempt is counted when it begins, and has its outcome when it is over.
    in_vain = [("pending", "no connection")] * 3
    until(
        lambda: [(each["status"], each["lastError"]) for each in log(api, endpoint)] == in_vain,
        meanwhile=sweep,
    )
    receiver.up()
    until(lambda: all(each["status"] == "delivered" for each in log(api, endpoint)), meanwhile=sweep)
    events = {each.id: each.verified(endpoint["secret"]) for each in receiver.received}
    assert len(receiver.received) == len(events) == 3
    assert events == {each["id"]: each["payload"] for each in log(api, endpoint)}
    assert {each["data"]["userId"] for each in events.values()} == {ada.user for ada in people}
    assert all(each["attempts"] > 1 for each in log(api, endpoint))


@pytest.mark.usefixtures("worker")
def test_a_delivery_is_replayed_under_its_own_id(api, person, receiver):
    endpoint = register(api, receiver.url)
    person().made()
    until(lambda: log(api, endpoint)[0]["status"] == "delivered")
    (delivery,) = log(api, endpoint)
    answer = api.post(f"/webhooks/{endpoint['id']}/deliveries/{delivery['id']}/replay")
    assert answer.json["data"]["status"] == "pending"
    until(lambda: len(receiver.received) == 2)
    assert {each.id for each in receiver.received} == {delivery["id"]}
    assert [each.verified(endpoint["secret"]) for each in receiver.received] == [delivery["payload"]] * 2
    until(lambda: log(api, endpoint)[0]["status"] == "delivered")
    # Counted from the replay.
    assert log(api, endpoint)[0]["attempts"] == 1


@pytest.mark.usefixtures("worker")
def test_an_endpoint_that_answers_410_is_disabled_until_a_replay_arrives(api, person, receiver):
    endpoint = register(api, receiver.url)
    receiver.statuses = [410]
    ada = person()
    ada.made()
    until(lambda: log(api, endpoint)[0]["status"] == "failed")
    assert api.get("/webhooks").json["data"][0]["disabledAt"] is not None
    ada.create(start=NINE["start"])
    (delivery,) = log(api, endpoint)
    api.post(f"/webhooks/{endpoint['id']}/deliveries/{delivery['id']}/replay")
    until(lambda: log(api, endpoint)[0]["status"] == "delivered")
    assert api.get("/webhooks").json["data"][0]["disabledAt"] is None


@pytest.mark.usefixtures("worker")
def test_the_log_is_paged_from_the_newest_on(api, person, receiver):
    endpoint = register(api, receiver.url)
    for _ in range(3):
        person().made()
    until(lambda: len(receiver.received) == 3)
    path = f"/webhooks/{endpoint['id']}/deliveries"
    first = api.get(path, limit=2).json
    rest = api.get(path, limit=2, cursor=first["nextCursor"]).json
    ids = [each["id"] for each in (*first["data"], *rest["data"])]
    assert ids == sorted(ids, reverse=True)
    assert (len(ids), rest["nextCursor"]) == (3, None)


def test_a_broker_that_is_down_fails_no_request(new_app, new_api, api, sandbox, new_user, receiver):
    endpoint = register(api, receiver.url)
    user = new_user(sandbox.account("google", "ada@example.com"))
    broken = new_app(broker_url="redis://127.0.0.1:1/0")
    with broken.extensions[EXTENSION].stores.database.writing() as session:
        ref = connections.of_user(session, user, within=None)[0]
        connections.mark_dead(session, ref.id, "the grant has ended")
    assert [each["status"] for each in log(api, endpoint)] == ["pending"]
