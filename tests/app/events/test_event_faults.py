"""Errors of the event routes: scopes, revoked grants, shares, API keys, provider faults."""

from __future__ import annotations

import time

import pytest

from providers import registry
from tests.app.answers import OF_ERROR, OF_PROVIDER, error
from tests.app.at_provider import DELETE, GET, INSERT, NINE, UPDATE, AtProvider, Person, one
from tests.app.days import DAY, PROVIDERS, periods
from tests.conftest import Api, connect

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
ADA = "ada@example.com"
OPERATION_OF = {"create": INSERT, "get": GET, "update": UPDATE, "delete": DELETE}
CALLS = pytest.mark.parametrize("call", OPERATION_OF)
# The operation by its name in the API, and the scope level that it needs.
NEEDS = {
    "create": ("calendar.events.insert", "write"),
    "get": ("calendar.events.get", "read"),
    "update": ("calendar.events.update", "write"),
    "delete": ("calendar.events.delete", "write"),
    "list": ("calendar.events.list", "read"),
}
ONE_LEVEL_LESS = {"write": "read", "read": "free-busy"}


def ask(person, call, event_id="AAMk1", calendar="primary"):
    """Send a request; all but ``create`` concern one event."""
    if call == "list":
        return person.api.get(f"/users/{person.user}/calendar/events", start="2026-12-03", end="2026-12-04")
    if call == "create":
        return person.create(calendar=calendar, subject="New")
    if call == "update":
        return person.update(event_id, calendar=calendar, subject="New")
    return {"get": person.get, "delete": person.delete}[call](event_id, calendar=calendar)


# --- scopes


@BOTH
@pytest.mark.parametrize("call", NEEDS)
def test_a_grant_too_narrow_is_403_before_the_provider_call(api, sandbox, person, call):
    operation, level = NEEDS[call]
    name = person.provider
    connect(api, person.user, person.account, scope=registry.scopes(name).level_scopes(ONE_LEVEL_LESS[level]))
    answer = ask(person, call)
    assert answer.status_code == 403
    message = answer.json["error"]
    assert answer.json.keys() == OF_ERROR | OF_PROVIDER | {"operation", "validScopes"}
    assert answer.json["operation"] == operation
    assert answer.json["validScopes"] == list(registry.scopes(name).valid_scopes(operation))
    assert operation in message
    assert f"scope level {level}" in message
    assert all(scope in message for scope in registry.scopes(name).level_scopes(level))
    assert sandbox.requests().total == 0


@BOTH
@pytest.mark.parametrize("call", NEEDS)
def test_the_level_that_an_operation_needs_is_enough(api, sandbox, person, call):
    event_id = person.there.post()["id"]
    scopes = registry.scopes(person.provider).level_scopes(NEEDS[call][1])
    narrow = sandbox.account(person.provider, "eve@example.com", scope=scopes, events=[NINE])
    connect(api, person.user, narrow)
    (event,) = AtProvider(sandbox, narrow).events()
    assert event["id"] != event_id
    assert ask(person, call, event["id"]).status_code in (200, 201)


@BOTH
@pytest.mark.parametrize("shape", [str.upper, str.lower], ids=["upper", "lower"])
def test_scopes_are_read_in_any_case(api, person, shape):
    connect(api, person.user, person.account, scope=[shape(each) for each in person.account.scope.split()])
    assert person.create().status_code == 201


def test_microsofts_scopes_may_be_urls(api, new_person):
    person = new_person("microsoft")
    connect(api, person.user, person.account, scope=["https://graph.microsoft.com/Calendars.ReadWrite"])
    assert person.create().status_code == 201


def test_scope_refusal_by_google_has_only_the_operation(sandbox, new_person):
    person = new_person("google")
    event_id = person.made()["id"]
    for call, (operation, _) in NEEDS.items():
        if call == "list":
            continue
        sandbox.fault(operation=OPERATION_OF[call]["google"], reason="insufficientPermissions", status=403)
        answer = ask(person, call, event_id)
        assert answer.status_code == 403
        assert answer.json.keys() == OF_ERROR | OF_PROVIDER | {"operation"}
        assert answer.json["reason"] == "insufficientScopes"
        assert answer.json["operation"] == operation
        sandbox.clear_faults()


# --- the grant, the share, the key


@BOTH
@CALLS
def test_a_grant_that_is_gone_is_401_and_kills_the_connection(api, sandbox, person, call):
    event_id = person.made()["id"]
    sandbox.revoke(ADA)
    message = error(ask(person, call, event_id), 401)
    assert api.get(f"/users/{person.user}/oauth/{person.provider}").json["data"]["alive"] is False
    sandbox.forget_requests()
    assert error(ask(person, call, event_id), 401)
    assert sandbox.requests().total == 0
    assert ADA not in message


@BOTH
@CALLS
def test_an_expired_token_is_renewed_on_the_way(api, sandbox, person, call):
    event_id = person.made()["id"]
    connect(api, person.user, person.account, accessToken="stale")
    assert ask(person, call, event_id).status_code in (200, 201)
    assert sandbox.requests().by_operation[f"{person.provider}.token"] == 1


@BOTH
@CALLS
def test_calendar_shared_for_reading_cannot_be_written(api, sandbox, new_user, provider, call):
    boss = {"id": "AAMk-boss", "accessRole": "reader"}
    account = sandbox.account(
        provider, ADA, calendars=[{"primary": True}, boss], events=[NINE | {"calendarId": boss["id"]}]
    )
    person = Person(api, new_user(account), account, AtProvider(sandbox, account))
    (event,) = person.there.events(boss["id"])
    answer = ask(person, call, event["id"], calendar=boss["id"])
    if call == "get":
        assert one(answer)["id"] == event["id"]
    else:
        assert answer.status_code == 403
    assert [each["id"] for each in person.there.events(boss["id"])] == [event["id"]]


# --- the provider


@BOTH
@CALLS
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({"status": 503, "retry_after": 60}, 502),
        ({"status": 429, "retry_after": 29.5}, 429),
        ({"status": 403}, 403),
    ],
    ids=str,
)
def test_a_provider_failure_has_its_reason(sandbox, person, call, fault, status):
    event_id = person.there.post()["id"]
    sandbox.fault(operation=OPERATION_OF[call][person.provider], **fault)
    answer = ask(person, call, event_id)
    assert answer.status_code == status, answer.text
    assert answer.json["data"] is None
    assert ADA not in answer.json["error"]
    assert "http" not in answer.json["error"]
    retry_after = 30 if status == 429 and "retry_after" in fault else None
    assert answer.json.get("retryAfter") == retry_after
    assert answer.headers.get("Retry-After") == (None if retry_after is None else str(retry_after))


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 429}], ids=str)
@BOTH
def test_a_persistent_failure_is_reported_after_some_retries(sandbox, person, fault):
    sandbox.fault(operation=INSERT[person.provider], **fault)
    answer = person.create()
    assert answer.status_code == (429 if fault == {"status": 429} else 502)
    assert "retryAfter" not in answer.json
    assert sandbox.requests().by_operation[INSERT[person.provider]] == 3


@BOTH
@CALLS
@pytest.mark.parametrize("fault", [{"body": "reset"}, {"status": 429, "retry_after": 0.1}], ids=str)
def test_a_failure_that_passes_is_no_failure(sandbox, person, call, fault):
    event_id = person.there.post()["id"]
    sandbox.fault(operation=OPERATION_OF[call][person.provider], times=1, **fault)
    assert ask(person, call, event_id).status_code in (200, 201)
    count = {"create": 2, "delete": 0}.get(call, 1)
    assert len(person.there.events()) == count


@pytest.mark.parametrize(
    ("provider", "call", "operation"),
    [
        ("google", "create", INSERT),
        ("google", "update", UPDATE),
        ("microsoft", "create", INSERT),
        # The answer to a write is incomplete, so the event is read again.
        ("microsoft", "create", GET),
    ],
)
def test_a_write_that_was_done_and_cannot_be_read_back_is_422(sandbox, person, call, operation):
    event_id = person.there.post()["id"]
    sandbox.fault(operation=operation[person.provider], body="html")
    message = error(ask(person, call, event_id), 422)
    assert "cannot be read" in message
    assert "New" in person.there.subjects()


@BOTH
@pytest.mark.parametrize("damage", ["html", "truncated"])
def test_a_delete_needs_nothing_of_the_answer(sandbox, person, damage):
    event_id = person.there.post()["id"]
    sandbox.fault(operation=DELETE[person.provider], body=damage)
    assert person.delete(event_id).status_code == 200
    assert person.there.events() == []


@pytest.mark.parametrize("provider", ["microsoft"])
def test_hanging_create_is_found_and_seen_by_next_busy_read(api, sandbox, person, settings):
    def busy():
        return periods(api.get(f"/users/{person.user}/calendar/busy", **DAY))

    assert busy() == []
    sandbox.fault(operation=INSERT[person.provider], latency_ms=60_000)
    began = time.monotonic()
    assert one(person.create(), 201)
    assert time.monotonic() - began < settings.fanout_deadline_seconds + 20
    assert busy() == [("09:00", "10:00")]


@BOTH
def test_an_unanswered_write_leaves_nothing_cached(api, new_app, person):
    def busy():
        return periods(api.get(f"/users/{person.user}/calendar/busy", **DAY))

    assert busy() == []
    person.there.post()
    assert busy() == []
    # Its queue has no workers.
    deaf = new_app(broker_url="memory://", fanout_deadline_seconds=0.3)
    person.api = Api(deaf.test_client(), api.key)
    answer = person.create()
    assert (answer.status_code, answer.json["code"]) == (502, "outcomeUnknown")
    assert answer.json["error"].startswith("The provider did not answer in time. The event may exist")
    assert busy() == [("09:00", "10:00")]
