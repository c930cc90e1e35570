"""Provider notifications: authenticated by the secret of the channel, handled at once, else rejected."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from flask.testing import FlaskClient
from sqlalchemy.exc import OperationalError
from werkzeug.test import TestResponse

from app.services import EXTENSION
from store.cache.busy_cache import CalendarKey
from store.cache.calendar_usage import ROUND
from store.security.crypto import digest
from store.sql.models import now
from store.sql.queries import channels, connection_rows, webhook_events
from tests.app.at_provider import AtProvider
from tests.app.days import DAY, PROVIDERS, meeting, periods
from tests.conftest import connect

pytestmark = pytest.mark.usefixtures("worker")

SECRET = "the-secret-of-the-channel"
READ = {"google": "google.freebusy.query", "microsoft": "microsoft.calendarView.list"}


class Watched:
    """A user's calendar, and the channel that reports its changes."""

    def __init__(self, api, sandbox, stores, user, account, channel: str) -> None:
        self.api, self.sandbox, self.stores, self.user = api, sandbox, stores, user
        self.provider, self.channel = account.provider, channel
        self.there = AtProvider(sandbox, account)
        with stores.database.reading() as session:
            (ref,) = connection_rows.of_user(session, user, organization_id=None)
        self.key = CalendarKey(ref.id, "primary")

    @property
    def client(self) -> FlaskClient:
        return self.api.client

    def busy(self) -> list[tuple[str, str]]:
        return periods(self.api.get(f"/users/{self.user}/calendar/busy", **DAY))

    def reads(self) -> int:
        """The number of provider reads since the last call."""
        counted = self.sandbox.requests().by_operation.get(READ[self.provider], 0)
        self.sandbox.forget_requests()
        return counted

    def watches(self) -> bool:
        return self.stores.busy.watched([self.key]) == [self.channel]

    def tell(self, state: str = "exists", **changed: str | None) -> TestResponse:
        """Post a notification of the provider, with the given fields replaced."""
        said = {"provider": self.provider, "channel": self.channel, "secret": SECRET} | changed
        return post(self.client, said["provider"], said["channel"], said["secret"], state)


def post(
    client: FlaskClient, provider: str, channel: str | None, secret: str | None, state: str
) -> TestResponse:
    if provider == "google":
        named = {
            "X-Goog-Channel-ID": channel,
            "X-Goog-Channel-Token": secret,
            "X-Goog-Resource-State": state,
            "X-Goog-Message-Number": "7",
        }
        headers = {name: value for name, value in named.items() if value is not None}
        return client.post("/v1/push/google", headers=headers, content_type="application/json; utf-8")
    entry = {"subscriptionId": "s", "clientState": f"{channel}.{secret}", "changeType": "updated"}
    if state not in ("exists", "sync"):
        entry |= {"lifecycleEvent": state}
    return client.post("/v1/push/microsoft", json={"value": [entry]})


@pytest.fixture
def watched(api, sandbox, new_user, stores, unique):
    """A calendar that is watched since its channel was confirmed."""

    def make(provider: str = "google", *, confirmed: bool = True) -> Watched:
        account = sandbox.account(provider, "ada@example.com", events=[meeting("09:00", "10:00")])
        user = new_user(account)
        channel = unique("channel").encode().hex().ljust(32, "0")[:32]
        made = Watched(api, sandbox, stores, user, account, channel)
        with stores.database.writing() as session:
            assert channels.add(session, channel, made.key, SECRET)
            channels.opened(
                session, channel, provider_id="s", resource="r", expires_at=now() + timedelta(days=7)
            )
            row = channels.confirmed(session, channel) if confirmed else None
        if row is not None:
            stores.busy.watch(made.key, channel, channels.watches_for(row))
        return made

    return make


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("shared", [False, True], ids=["one mailbox", "a shared calendar"])
@pytest.mark.parametrize("email", ["theirs", "none"])
def test_change_invalidates_every_connection_of_the_calendar(
    watched, provider, shared, email, api, sandbox, unique
):
    ada = watched(provider)
    account, calendar = ada.there.account, "primary"
    if shared:
        account = sandbox.account(provider, "bob@example.com")
        calendar = sandbox.share(ada.there.account, account)
    bob = unique("bob")
    assert api.post("/users", {"id": bob}).status_code == 201
    connect(api, bob, account, **({"email": None} if email == "none" else {}))

    def busy_of_bob():
        return periods(api.get(f"/users/{bob}/calendar/busy", calendarIds=calendar, **DAY))

    assert busy_of_bob() == ada.busy() == [("09:00", "10:00")]
    ada.there.post(
        start={"dateTime": "2026-12-03T12:00:00", "timeZone": "UTC"},
        end={"dateTime": "2026-12-03T13:00:00", "timeZone": "UTC"},
    )
    assert busy_of_bob() == [("09:00", "10:00")]

    assert ada.tell().status_code in (202, 204)

    assert busy_of_bob() == ada.busy() == [("09:00", "10:00"), ("12:00", "13:00")]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_storm_costs_one_read(watched, provider):
    ada = watched(provider)
    ada.busy()
    ada.reads()

    assert {ada.tell().status_code for _ in range(100)} <= {202, 204}
    for _ in range(3):
        ada.busy()

    assert ada.reads() == 1


def test_a_storm_in_one_body_is_one_change(watched, monkeypatch):
    ada = watched("microsoft")
    emptied = []
    monkeypatch.setattr(type(ada.stores.busy), "invalidate_calendar", lambda *_, **__: emptied.append(1))
    entry = {"clientState": f"{ada.channel}.{SECRET}", "changeType": "updated"}
    body = {"value": [entry | {"resourceData": {"id": str(n)}} for n in range(100)]}

    assert ada.client.post("/v1/push/microsoft", json=body).status_code == 202
    assert len(emptied) == 1


def test_a_body_full_of_unknown_channels_is_looked_up_once(watched, monkeypatch):
    ada = watched("microsoft")
    loads = []
    load = channels.with_accounts
    monkeypatch.setattr(
        channels, "with_accounts", lambda session, ids: loads.append(set(ids)) or load(session, ids)
    )
    names = [f"{n:032x}" for n in range(50)]
    states = [f"{name}.x" for name in names * 2]
    body = {"value": [{"clientState": state, "changeType": "updated"} for state in states]}

    assert ada.client.post("/v1/push/microsoft", json=body).status_code == 404
    assert loads == [set(names)]


def test_more_than_graph_sends_at_once_is_refused_unseen(watched):
    ada = watched("microsoft")
    entry = {"clientState": f"{ada.channel}.{SECRET}", "changeType": "updated"}
    ada.busy()
    ada.reads()

    assert ada.client.post("/v1/push/microsoft", json={"value": [entry] * 101}).status_code == 400
    ada.busy()
    assert ada.reads() == 0


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "changed",
    [
        {"secret": "another"},
        {"secret": ""},
        {"secret": None},
        {"secret": "gefälscht".encode().decode("latin1")},
        {"channel": "f" * 32},
        {"channel": ""},
        {"channel": "../../etc"},
        {"channel": None},
        {"channel": "x" * 4000},
    ],
)
def test_unauthenticated_notifications_get_identical_404(watched, provider, changed):
    ada = watched(provider)
    ada.busy()
    ada.reads()

    answers = [ada.tell(state, **changed) for state in ("exists", "sync", "subscriptionRemoved")]

    assert {answer.status_code for answer in answers} == {404}
    body = '{"data":null,"error":"There is no such channel","code":"channelNotFound"}'
    assert {answer.text for answer in answers} == {body}
    ada.busy()
    assert ada.reads() == 0
    assert ada.watches()


def test_a_channel_of_the_other_provider_is_foreign(watched):
    ada, eve = watched("google"), watched("microsoft")
    for one, other in ((ada, "microsoft"), (eve, "google")):
        one.busy()
        one.reads()
        assert one.tell(provider=other).status_code == 404
        one.busy()
        assert one.reads() == 0


def test_the_secret_of_one_channel_is_not_that_of_another(watched, stores):
    ada, eve = watched("google"), watched("google")
    with stores.database.writing() as session:
        row = channels.of_connections(session, [eve.key.connection])[0]
        row.secret_digest = digest("another")
    assert eve.tell().status_code == 404
    assert ada.tell().status_code == 204


def test_every_refusal_compares_a_secret(watched, monkeypatch):
    ada = watched("google")
    compared = []
    compare = channels.hmac.compare_digest
    monkeypatch.setattr(
        channels.hmac, "compare_digest", lambda *pair: compared.append(pair) or compare(*pair)
    )
    for changed in ({"secret": "another"}, {"channel": "f" * 32}, {"channel": "no"}):
        ada.tell(**changed)
    assert len(compared) == 3
    assert len({len(side) for pair in compared for side in pair}) == 1


def test_a_channel_of_a_deleted_connection_is_unknown_at_once(watched, api):
    ada = watched("google")
    assert ada.tell().status_code == 204
    assert api.delete(f"/users/{ada.user}/oauth/google").status_code == 200
    assert ada.tell().status_code == 404


def test_the_first_word_of_google_begins_the_watch(watched):
    ada = watched("google", confirmed=False)
    assert not ada.watches()
    assert ada.tell("sync").status_code == 204
    assert ada.watches()


def test_repeated_sync_message_does_not_restore_lost_channel(watched, stores):
    ada = watched("google", confirmed=False)
    ada.tell("sync")
    stores.busy.invalidate_calendar(ada.key, unwatch=ada.channel)

    assert ada.tell("sync").status_code == 204
    assert not ada.watches()


def test_a_subscription_that_was_removed_is_relied_on_no_more(watched, stores):
    ada = watched("microsoft")
    ada.busy()
    ada.reads()
    assert ada.tell("subscriptionRemoved").status_code == 202

    assert not ada.watches()
    ada.busy()
    assert ada.reads() == 1
    with stores.database.reading() as session:
        assert channels.of_connections(session, [ada.key.connection]) == []


def test_many_that_are_to_be_renewed_call_for_one_round(watched, stores, app, monkeypatch):
    ada, eve = watched("microsoft"), watched("microsoft")
    sent = []
    celery = app.extensions[EXTENSION].celery
    monkeypatch.setattr(celery, "send_task", lambda name, **options: sent.append((name, options)))
    stores.redis.delete(ROUND)
    for each in (ada, eve, ada):
        assert each.tell("reauthorizationRequired").status_code == 202

    assert sent == [("upkeep.keep_channels", {"expires": 60.0})]
    with stores.database.reading() as session:
        due = {row.id for row in channels.due(session, limit=100)}
    assert {ada.channel, eve.channel} <= due


@pytest.mark.parametrize("event", ["missed", "somethingNew"])
def test_what_may_have_been_missed_empties(watched, event):
    ada = watched("microsoft")
    ada.busy()
    ada.reads()
    assert ada.tell(event).status_code == 202

    ada.busy()
    assert ada.reads() == 1
    assert ada.watches()


def test_valid_notifications_beside_a_forged_one_count(watched):
    ada = watched("microsoft")
    ada.busy()
    ada.reads()
    states = ["forged.secret", f"{ada.channel}.another", f"{ada.channel}.{SECRET}", "nonsense"]
    body = {"value": [{"clientState": state, "changeType": "updated"} for state in states]}

    assert ada.client.post("/v1/push/microsoft", json=body).status_code == 202
    ada.busy()
    assert ada.reads() == 1


def test_each_change_is_passed_on_to_webhooks(watched, api):
    ada = watched("google")
    # No server listens there; the delivery log shows the pending events.
    endpoint = api.post("/webhooks", {"url": "http://127.0.0.1:9/hook"}).json["data"]["id"]
    try:
        ada.tell("sync")
        ada.tell(secret="another")
        assert api.get(f"/webhooks/{endpoint}/deliveries").json["data"] == []
        ada.tell()
        (delivery,) = api.get(f"/webhooks/{endpoint}/deliveries").json["data"]
    finally:
        assert api.delete(f"/webhooks/{endpoint}").status_code == 200
    assert delivery["payload"]["type"] == "calendar.changed"
    (main,) = [each["id"] for each in api.get(f"/users/{ada.user}/calendar").json["data"] if each["primary"]]
    (connection,) = api.get(f"/users/{ada.user}/connections").json["data"]
    expected = {
        "userId": ada.user,
        "provider": "google",
        "connectionId": connection["id"],
        "calendarId": main,
    }
    assert delivery["payload"]["data"] == expected


@pytest.mark.parametrize("news", ["exists", "subscriptionRemoved"])
def test_a_notification_that_cannot_be_recorded_is_to_be_sent_again(watched, api, app, monkeypatch, news):
    ada = watched("microsoft")
    endpoint = api.post("/webhooks", {"url": "http://127.0.0.1:9/hook"}).json["data"]["id"]

    def down(*_: object, **__: object) -> None:
        raise OperationalError("insert", {}, Exception("the database is gone"))

    try:
        with monkeypatch.context() as patch:
            patch.setitem(app.config, "PROPAGATE_EXCEPTIONS", False)
            patch.setattr(webhook_events, "record", down)
            assert ada.tell(news).status_code >= 500
        assert api.get(f"/webhooks/{endpoint}/deliveries").json["data"] == []

        assert ada.tell(news).status_code == 202
        (delivery,) = api.get(f"/webhooks/{endpoint}/deliveries").json["data"]
    finally:
        assert api.delete(f"/webhooks/{endpoint}").status_code == 200
    assert delivery["payload"]["type"] == "calendar.changed"


def test_the_handshake_is_answered_with_its_token_as_text(app):
    token = "Validation: a+b & <script>alert(1)</script>"
    answer = app.test_client().post(
        "/v1/push/microsoft", query_string={"validationToken": token}, content_type="text/plain"
    )

    assert answer.status_code == 200
    assert answer.text == token
    assert answer.mimetype == "text/plain"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("token", ["", "x" * 3000])
def test_a_handshake_that_makes_no_sense_is_refused(app, token):
    answer = app.test_client().post("/v1/push/microsoft", query_string={"validationToken": token})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"{", 400),
        (b"", 400),
        (b"[]", 404),
        (b'{"value":[]}', 404),
        (b'{"value":"' + b"x" * 300_000 + b'"}', 413),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(app, data, status):
    answer = app.test_client().post("/v1/push/microsoft", data=data, content_type="application/json")
    assert answer.status_code == status
    assert answer.json["data"] is None


@pytest.mark.parametrize("path", ["/v1/push/google", "/v1/push/microsoft"])
def test_notifications_by_other_methods_are_405(app, path):
    assert app.test_client().get(path).status_code == 405


def test_while_redis_is_down_the_provider_is_to_come_again(watched, new_app):
    ada = watched("google")
    down = new_app(redis_url="redis://127.0.0.1:1").test_client()
    answer = post(down, "google", ada.channel, SECRET, "exists")
    assert answer.status_code == 503


def test_no_secret_is_logged(watched, caplog):
    ada = watched("google")
    with caplog.at_level(logging.DEBUG):
        for state in ("sync", "exists"):
            ada.tell(state)
        ada.tell(secret="another-secret")
    assert SECRET not in caplog.text
    assert "another-secret" not in caplog.text
