"""Updates and deletes whose provider answer is lost: the answer says that the change may have happened."""

from __future__ import annotations

import pytest
from redis.exceptions import ConnectionError

from tests.app.answers import OF_ERROR, OF_PROVIDER, error, forget_patience
from tests.app.at_provider import DELETE, GET, UPDATE, one
from tests.app.days import PROVIDERS
from tests.app.two_accounts import Both
from tests.conftest import Api

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
CALLS = pytest.mark.parametrize("call", ["update", "delete"])
OTHER = {"google": "microsoft", "microsoft": "google"}
OPERATION = {"update": UPDATE, "delete": DELETE}
DONE = {"update": "changed", "delete": "deleted"}
# The provider has executed the write, but the connection breaks or the answer comes after the deadline.
LOST = pytest.mark.parametrize("fault", [{"body": "reset"}, {"latency_ms": 60_000}], ids=["reset", "hangs"])


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
def test_a_change_that_redis_interrupts_is_unknown(new_person, monkeypatch, call):
    person = new_person("google")
    event_id = person.made(subject="Old")["id"]

    def cut_off(*_args, **_options):
        raise ConnectionError("Redis is away")

    with monkeypatch.context() as patch:
        patch.setattr("app.events.worker_calls.write_events", cut_off)
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


@CALLS
def test_a_unified_change_that_redis_interrupts_is_unknown(both, monkeypatch, call):
    both.create(metaId="m-1", subject="Old")

    def cut_off(*_args, **_options):
        raise ConnectionError("Redis is away")

    with monkeypatch.context() as patch:
        patch.setattr("app.events.worker_calls.write_events", cut_off)
        answer = both.update("m-1", subject="New") if call == "update" else both.delete("m-1")
    unknown(answer, call, 503)
    assert answer.headers["Retry-After"] == "1"
