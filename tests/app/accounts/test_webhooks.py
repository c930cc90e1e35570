"""Webhooks from end to end: registered over HTTP, sent by a real worker, received over a real socket."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import WebhookVerificationError

from app.services import EXTENSION
from store.sql.models import WebhookEndpoint
from store.sql.queries import connection_rows, connections, webhooks
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
    monkeypatch.setattr(webhooks, "MAX_ENDPOINTS", 2)
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
def test_endpoints_of_a_bound_key_get_events_of_its_own_users(
    api, new_api, new_organization, person, receiver
):
    own, other = new_organization(), new_organization()
    bound, stranger = new_api(organization=own), new_api(organization=other)
    mine, theirs = register(bound, receiver.url), register(stranger, NOWHERE)
    member, elsewhere = person(slugs=(own,)), person(slugs=(other,))

    elsewhere.made()
    member.made()

    until(lambda: receiver.received)
    (delivery,) = log(bound, mine)
    assert delivery["payload"]["data"]["userId"] == member.user
    assert [each["payload"]["data"]["userId"] for each in log(stranger, theirs)] == [elsewhere.user]


# --- events


def connection_of(api, person):
    """The id of the person's only connection."""
    (connection,) = api.get(f"/users/{person.user}/connections").json["data"]
    return connection["id"]


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
    assert payload["data"] == {
        "userId": ada.user,
        "provider": provider,
        "connectionId": connection_of(api, ada),
        "calendarId": ada.main,
    }
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
def test_changes_during_receiver_outage_are_one_event_per_calendar(api, person, receiver, sweep):
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
    # The same account keeps its id.
    data = {"userId": ada.user, "provider": provider, "connectionId": connection_of(api, ada)}
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
def test_endpoint_that_answers_410_is_disabled_until_a_replay(api, person, receiver):
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
    assert "disabledAt" not in api.get("/webhooks").json["data"][0]


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
        ref = connection_rows.of_user(session, user, organization_id=None)[0]
        connections.mark_dead(session, ref.id, "the grant has ended")
    assert [each["status"] for each in log(api, endpoint)] == ["pending"]


# --- changes of an endpoint


def change(api, endpoint, **body):
    answer = api.call("PATCH", f"/webhooks/{endpoint['id']}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json["data"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", ""),
        ("POST", "/secret"),
        ("POST", "/test"),
    ],
)
def test_a_change_of_an_endpoint_that_is_being_deleted_is_404(racing_app, racer, method, path):
    endpoint = register(racer, NOWHERE)
    with ThreadPoolExecutor(1) as threads:
        with racing_app.extensions[EXTENSION].stores.database.writing() as session:
            webhooks.remove(session, endpoint["id"])
            body = {"paused": True} if method == "PATCH" else {}
            changing = threads.submit(racer.call, method, f"/webhooks/{endpoint['id']}{path}", json=body)
            # It waits for the deletion.
            assert not wait([changing], timeout=0.5).done
        assert error(changing.result(), 404) == "Webhook not found"


def test_an_endpoint_is_read_alone(api):
    made = register(api, NOWHERE, events=["calendar.changed"])
    del made["secret"]
    assert made["paused"] is False
    assert api.get(f"/webhooks/{made['id']}").json == {"data": made}


def test_only_what_is_sent_changes(api):
    made = register(api, NOWHERE, events=["calendar.changed"])
    del made["secret"]
    assert change(api, made) == made
    assert change(api, made, unknown=1) == made
    moved = change(api, made, url=f"{NOWHERE}/2")
    assert moved == made | {"url": f"{NOWHERE}/2"}
    events = ["connection.expired", "calendar.changed"]
    assert change(api, made, events=[*events, events[0]]) == moved | {"events": events}
    assert change(api, made, paused=True)["paused"] is True
    assert api.get(f"/webhooks/{made['id']}").json["data"] == moved | {"events": events, "paused": True}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"url": "mailto:ada@example.com"}, "url must be an https URL"),
        ({"events": []}, "events must have 1 to 11 elements"),
        ({"events": ["webhook.test"]}, "events[0] must be one of"),
        ({"paused": 1}, "paused must be true or false"),
    ],
    ids=str,
)
def test_a_change_that_makes_no_sense_changes_nothing(api, body, message):
    made = register(api, NOWHERE)
    answer = api.call("PATCH", f"/webhooks/{made['id']}", json={"paused": True} | body)
    assert error(answer, 400).startswith(message)
    assert api.get(f"/webhooks/{made['id']}").json["data"]["paused"] is False


def test_an_endpoint_is_not_moved_to_a_private_address(api, new_app, new_api):
    made = register(api, NOWHERE)
    strict = type(api)(new_app(webhooks_allow_private=False).test_client(), api.key)
    answer = strict.call("PATCH", f"/webhooks/{made['id']}", json={"url": "https://10.1.2.3/"})
    assert error(answer, 400) == "url must not lead to a private or loopback address"
    assert api.get(f"/webhooks/{made['id']}").json["data"]["url"] == NOWHERE


@pytest.mark.usefixtures("worker")
def test_while_an_endpoint_is_paused_events_wait(api, person, receiver, sweep):
    endpoint = register(api, receiver.url)
    change(api, endpoint, paused=True)
    ada = person()
    first = ada.made()
    ada.update(first["id"], subject="Another")
    waiting = log(api, endpoint)
    assert [(each["status"], each["attempts"]) for each in waiting] == [("pending", 0)]
    # A task that finds something to send would have sent it by then.
    other = register(api, receiver.url)
    person().made()
    until(lambda: [each["status"] for each in log(api, other)] == ["delivered"], meanwhile=sweep)
    assert len(receiver.received) == 1
    assert change(api, endpoint, paused=False)["paused"] is False
    until(lambda: {each["status"] for each in log(api, endpoint)} == {"delivered"})
    assert waiting[0]["id"] in {each.id for each in receiver.received}


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("change_of", ["url", "paused"])
def test_a_disabled_endpoint_is_enabled_by_a_change(api, person, receiver, change_of):
    endpoint = register(api, receiver.url)
    receiver.statuses = [410]
    ada = person()
    ada.made()
    until(lambda: log(api, endpoint)[0]["status"] == "failed")
    assert change(api, endpoint, events=["calendar.changed"])["disabledAt"] is not None
    value = {"url": f"{receiver.url}&moved=1", "paused": False}[change_of]
    assert "disabledAt" not in change(api, endpoint, **{change_of: value})
    ada.create(start=NINE["start"])
    until(lambda: log(api, endpoint)[-1]["status"] == "delivered")


@pytest.mark.usefixtures("worker")
def test_what_waits_goes_to_the_new_address(api, person, receiver):
    endpoint = register(api, NOWHERE)
    change(api, endpoint, paused=True)
    person().made()
    change(api, endpoint, url=receiver.url, paused=False)
    until(lambda: [each["status"] for each in log(api, endpoint)] == ["delivered"])
    assert len(receiver.received) == 1


# --- a new secret


def rotate(api, endpoint, body=None, **more):
    answer = api.post(f"/webhooks/{endpoint['id']}/secret", body, **more)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    return answer.json["data"]


@pytest.mark.usefixtures("worker")
def test_for_a_day_the_old_secret_verifies_too(api, person, receiver):
    endpoint = register(api, receiver.url)
    rotated = rotate(api, endpoint, {})
    assert rotated["secret"].startswith("whsec_")
    assert rotated["secret"] != endpoint["secret"]
    left = datetime.fromisoformat(rotated["previousSecretUntil"]) - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(hours=24)
    person().made()
    until(lambda: receiver.received)
    (received,) = receiver.received
    assert received.verified(rotated["secret"]) == received.verified(endpoint["secret"])
    assert received.headers["webhook-signature"].count("v1,") == 2


@pytest.mark.usefixtures("worker")
def test_a_secret_that_others_may_know_ends_at_once(api, person, receiver):
    endpoint = register(api, receiver.url)
    rotated = rotate(api, endpoint, {"overlapSeconds": 0})
    assert rotated["previousSecretUntil"] is None
    person().made()
    until(lambda: receiver.received)
    (received,) = receiver.received
    assert received.verified(rotated["secret"])["type"] == "calendar.changed"
    with pytest.raises(WebhookVerificationError):
        received.verified(endpoint["secret"])


def test_rotation_with_same_idempotency_key_is_replayed(api):
    endpoint = register(api, NOWHERE)
    key = {"Idempotency-Key": f"rotate-{endpoint['id']}"}
    first = rotate(api, endpoint, {}, headers=key)
    assert rotate(api, endpoint, {}, headers=key) == first
    assert rotate(api, endpoint)["secret"] != first["secret"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"overlapSeconds": -1}, "overlapSeconds must be between 0 and 604800"),
        ({"overlapSeconds": 604_801}, "overlapSeconds must be between 0 and 604800"),
        ({"overlapSeconds": "6x"}, "overlapSeconds must be an integer"),
        ({"overlapSeconds": 1.5}, "overlapSeconds must be an integer"),
        ({"overlapSeconds": True}, "overlapSeconds must be an integer"),
    ],
)
def test_a_bad_overlap_rotates_nothing(api, stores, body, message):
    endpoint = register(api, NOWHERE)
    assert error(api.post(f"/webhooks/{endpoint['id']}/secret", body), 400) == message
    with stores.database.reading() as session:
        row = session.get_one(WebhookEndpoint, endpoint["id"])
    opened = webhooks.open_secret(endpoint["id"], row.sealed_secret, stores.keyring)
    assert opened == endpoint["secret"]


# --- a test event


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("bound", [True, False])
def test_a_test_event_arrives_whatever_the_endpoint_subscribes_to(new_api, new_organization, receiver, bound):
    api = new_api(organization=new_organization()) if bound else new_api()
    endpoint = register(api, receiver.url, events=["connection.expired"])
    answer = api.post(f"/webhooks/{endpoint['id']}/test")
    assert answer.status_code == 200, answer.text
    sent = answer.json["data"]
    assert (sent["status"], sent["attempts"]) == ("pending", 0)
    assert sent["payload"]["type"] == "webhook.test"
    assert sent["payload"]["data"] == {"webhookId": endpoint["id"]}
    until(lambda: [each["status"] for each in log(api, endpoint)] == ["delivered"])
    (received,) = receiver.received
    assert (received.id, received.verified(endpoint["secret"])) == (sent["id"], sent["payload"])


@pytest.mark.usefixtures("worker")
def test_delivery_log_shows_the_error_of_a_failed_test(api, receiver):
    endpoint = register(api, receiver.url)
    receiver.statuses = [500]
    api.post(f"/webhooks/{endpoint['id']}/test")
    until(lambda: log(api, endpoint)[0]["lastError"] == "answered 500")


@pytest.mark.usefixtures("worker")
def test_an_endpoint_that_receives_nothing_is_not_tested(api, receiver):
    endpoint = register(api, receiver.url)
    change(api, endpoint, paused=True)
    message = "The webhook is paused: resume it first, with paused: false"
    assert error(api.post(f"/webhooks/{endpoint['id']}/test"), 409) == message
    change(api, endpoint, paused=False)
    receiver.statuses = [410]
    api.post(f"/webhooks/{endpoint['id']}/test")
    until(lambda: api.get(f"/webhooks/{endpoint['id']}").json["data"].get("disabledAt"))
    message = "The webhook is disabled: resume it first, with paused: false"
    assert error(api.post(f"/webhooks/{endpoint['id']}/test"), 409) == message
    assert len(log(api, endpoint)) == 1
