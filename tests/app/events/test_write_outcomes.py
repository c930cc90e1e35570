"""Writes whose provider answer is lost: Almanac looks for the event, or reports an unknown outcome."""

from __future__ import annotations

import pytest

from tests.app.answers import OF_ERROR, OF_PROVIDER, error, forget_patience
from tests.app.at_provider import DELETE, GET, INSERT, LOOK, NINE, UPDATE, one
from tests.app.days import PROVIDERS
from tests.app.two_accounts import Both
from tests.conftest import Api

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
KEY = {"Idempotency-Key": "k-1"}
# The provider has inserted the event, but the connection breaks or the answer comes after the deadline.
LOST = pytest.mark.parametrize("fault", [{"body": "reset"}, {"latency_ms": 60_000}], ids=["reset", "hangs"])


def unknown_create(answer):
    """The message of an answer with an unknown outcome."""
    assert answer.status_code == 502, answer.text
    assert answer.json.keys() == OF_ERROR | OF_PROVIDER
    assert (answer.json["code"], answer.json["reason"]) == ("outcomeUnknown", "providerError")
    assert "The event may exist" in answer.json["error"]
    return answer.json["error"]


@pytest.mark.parametrize(
    ("headers", "advice"),
    [(KEY, "it is safe to repeat the request"), (None, "look for it before you repeat the request")],
)
@pytest.mark.parametrize("query", [{}, {"ifFree": "true"}], ids=["plain", "ifFree"])
def test_a_create_that_redis_interrupts_may_have_created_the_event(
    api, new_person, redis_interrupts, headers, advice, query
):
    google = new_person("google")
    with redis_interrupts():
        answer = api.post(google.path(), NINE, headers=headers, query_string=query)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json["code"] == "outcomeUnknown"
    assert "The event may exist" in answer.json["error"]
    assert advice in answer.json["error"]


@BOTH
@LOST
@pytest.mark.parametrize("body", [{}, {"metaId": "m-1"}], ids=["plain", "metaId"])
def test_event_created_with_a_lost_answer_is_reported_as_created(sandbox, person, fault, body):
    sandbox.fault(operation=INSERT[person.provider], **fault)
    made = one(person.create(subject="Once", **body), 201)
    sandbox.clear_faults()
    (kept,) = person.there.events()
    assert made["id"] == kept["id"]


@BOTH
@LOST
@pytest.mark.parametrize(
    ("headers", "body"), [(KEY, {}), (None, {"metaId": "m-1"})], ids=["Idempotency-Key", "metaId"]
)
def test_a_lost_create_whose_event_cannot_be_seen_is_safe_to_repeat(sandbox, person, fault, headers, body):
    sandbox.fault(operation=INSERT[person.provider], **fault)
    sandbox.fault(operation=LOOK[person.provider], status=503, retry_after=60)
    # Before the insert, a call looks for the metaId. It must succeed.
    if body:
        sandbox.clear_faults()
        sandbox.fault(operation=INSERT[person.provider], status=503, retry_after=60)
    sentence = unknown_create(person.create(subject="Once", headers=headers, **body))
    assert "repeat the request with the same Idempotency-Key or metaId" in sentence
    sandbox.clear_faults()
    made = one(person.create(subject="Once", headers=headers, **body), 201)
    (kept,) = person.there.events()
    assert made["id"] == kept["id"]


@BOTH
def test_unknown_outcome_without_key_or_meta_id_advises_a_search(sandbox, person):
    sandbox.fault(operation=INSERT[person.provider], body="reset")
    sandbox.fault(operation=LOOK[person.provider], status=503, retry_after=60)
    sentence = unknown_create(person.create(subject="Once"))
    assert "look for it before you repeat the request" in sentence
    assert "Idempotency-Key" in sentence
    assert "metaId" in sentence


@BOTH
@pytest.mark.parametrize(
    ("status", "code"), [(429, "rateLimited"), (403, "accessDenied"), (400, "eventRefused")], ids=str
)
def test_a_create_that_was_refused_has_a_known_outcome(sandbox, person, status, code):
    sandbox.fault(operation=INSERT[person.provider], status=status)
    answer = person.create(subject="Once")
    assert (answer.status_code, answer.json["code"]) == (status, code)
    assert "may exist" not in answer.json["error"]
    assert LOOK[person.provider] not in sandbox.requests().by_operation


@BOTH
def test_refusal_after_lost_answer_finds_the_created_event(sandbox, person):
    # The fault that was added last applies first.
    sandbox.fault(operation=INSERT[person.provider], status=429, retry_after=60)
    sandbox.fault(operation=INSERT[person.provider], body="reset", times=1)
    made = one(person.create(subject="Once"), 201)
    assert [each["id"] for each in person.there.events()] == [made["id"]]


@BOTH
def test_a_create_that_no_worker_answers_is_unknown(api, new_app, person):
    deaf = new_app(broker_url="memory://", fanout_deadline_seconds=0.3)
    person.api = Api(deaf.test_client(), api.key)
    unknown_create(person.create(subject="Once"))


CALLS = pytest.mark.parametrize("call", ["update", "delete"])
OTHER = {"google": "microsoft", "microsoft": "google"}
OPERATION = {"update": UPDATE, "delete": DELETE}
DONE = {"update": "changed", "delete": "deleted"}
# The provider has executed the write, but the connection breaks or the answer comes after the deadline.


@pytest.fixture
def both(api, sandbox, new_user):
    return Both.connected(api, sandbox, new_user)


def ask(person, call, event_id, **headers):
    if call == "update":
        return person.update(event_id, headers=headers, subject="New")
    return person.delete(event_id, headers=headers)


def repeat(person, call, event_id):
    """Repeat a write that has taken effect."""
    if call == "update":
        assert one(ask(person, call, event_id))["subject"] == "New"
    else:
        assert error(ask(person, call, event_id), 404) == "Event not found"


def unknown(answer, call, status=502):
    """The message of an answer with an unknown outcome."""
    assert answer.status_code == status, answer.text
    assert answer.json["code"] == "outcomeUnknown"
    assert f"may have been {DONE[call]}" in answer.json["error"]
    assert "it is safe to repeat the request" in answer.json["error"]
    return answer.json["error"]


@BOTH
@CALLS
@LOST
def test_a_change_with_a_lost_answer_may_have_happened(api, sandbox, person, provider, call, fault):
    event_id = person.made(subject="Old")["id"]
    sandbox.fault(operation=OPERATION[call][provider], **fault)
    # A repeated delete would find out that the first attempt has deleted the event.
    if call == "delete" and "body" in fault:
        sandbox.clear_faults()
        sandbox.fault(operation=DELETE[provider], status=503, retry_after=60)
        sandbox.fault(operation=DELETE[provider], body="reset", times=1)

    answer = ask(person, call, event_id)

    assert answer.json.keys() == OF_ERROR | OF_PROVIDER
    assert answer.json["reason"] == "providerError"
    unknown(answer, call)
    sandbox.clear_faults()
    forget_patience(api)
    assert person.there.subjects() == (["New"] if call == "update" else [])
    repeat(person, call, event_id)


@BOTH
@CALLS
def test_a_change_of_which_nothing_was_sent_has_a_known_outcome(sandbox, person, provider, call):
    event_id = person.made(subject="Old")["id"]
    sandbox.fault(operation=OPERATION[call][provider], status=429, retry_after=60)
    answer = ask(person, call, event_id)
    assert (answer.status_code, answer.json["code"]) == (429, "rateLimited")
    assert "may have been" not in answer.json["error"]


@CALLS
def test_a_failed_read_before_the_change_has_a_known_outcome(sandbox, new_person, call):
    person = new_person("microsoft")
    event_id = person.made(subject="Old")["id"]
    sandbox.fault(operation=GET["microsoft"], latency_ms=60_000)
    answer = ask(person, call, event_id)
    assert (answer.status_code, answer.json["code"]) == (502, "providerError")
    sandbox.clear_faults()
    assert person.there.subjects() == ["Old"]


@BOTH
@CALLS
def test_a_refusal_after_a_lost_answer_is_unknown(sandbox, person, provider, call):
    event_id = person.made(subject="Old")["id"]
    # The fault that was added last applies first.
    sandbox.fault(operation=OPERATION[call][provider], status=429, retry_after=60)
    sandbox.fault(operation=OPERATION[call][provider], body="reset", times=1)
    unknown(ask(person, call, event_id), call)


@BOTH
def test_a_repeated_update_with_its_old_etag_is_412(api, sandbox, person, provider):
    event = person.made(subject="Old")
    sandbox.fault(operation=UPDATE[provider], latency_ms=60_000)
    sentence = unknown(ask(person, "update", event["id"], **{"If-Match": event["etag"]}), "update")
    assert "412" in sentence
    sandbox.clear_faults()
    forget_patience(api)
    assert ask(person, "update", event["id"], **{"If-Match": event["etag"]}).status_code == 412


@BOTH
@CALLS
def test_a_change_that_no_worker_answers_is_unknown(api, new_app, person, call):
    event_id = person.made(subject="Old")["id"]
    deaf = new_app(broker_url="memory://", fanout_deadline_seconds=0.3)
    person.api = Api(deaf.test_client(), api.key)
    unknown(ask(person, call, event_id), call)


@CALLS
def test_a_change_that_redis_interrupts_is_unknown(new_person, redis_interrupts, call):
    person = new_person("google")
    event_id = person.made(subject="Old")["id"]

    with redis_interrupts():
        answer = ask(person, call, event_id)
    unknown(answer, call, 503)
    assert answer.headers["Retry-After"] == "1"


# --- unified events


@BOTH
@CALLS
@LOST
def test_a_unified_change_names_the_account_whose_outcome_is_unknown(
    api, sandbox, both, provider, call, fault
):
    both.create(metaId="m-1", subject="Old")
    sandbox.fault(operation=OPERATION[call][provider], **fault)
    if call == "delete" and "body" in fault:
        sandbox.clear_faults()
        sandbox.fault(operation=DELETE[provider], status=503, retry_after=60)
        sandbox.fault(operation=DELETE[provider], body="reset", times=1)

    answer = both.update("m-1", subject="New") if call == "update" else both.delete("m-1")

    assert (answer.status_code, answer.json["code"]) == (502, "outcomeUnknown"), answer.text
    expected = f"The event was {DONE[call]} in {OTHER[provider]}, but perhaps not in {provider}: "
    assert answer.json["error"].startswith(expected)
    assert answer.json["error"].endswith("Repeat the request to finish")
    assert [each["provider"] for each in answer.json["failedCalendars"]] == [provider]
    sandbox.clear_faults()
    forget_patience(api)
    again = both.update("m-1", subject="New") if call == "update" else both.delete("m-1")
    assert again.status_code == (200 if call == "update" else 404)
    left = ["New"] if call == "update" else []
    assert both.subjects() == {"google": left, "microsoft": left}


@CALLS
def test_a_unified_change_without_any_answer_is_unknown(sandbox, both, call):
    both.create(metaId="m-1", subject="Old")
    for provider in PROVIDERS:
        sandbox.fault(operation=OPERATION[call][provider], latency_ms=60_000)
    answer = both.update("m-1", subject="New") if call == "update" else both.delete("m-1")
    assert f"may have been {DONE[call]} in google and microsoft" in unknown(answer, call)
