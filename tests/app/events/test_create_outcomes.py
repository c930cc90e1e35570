"""Creates whose provider answer is lost: Almanac looks for the event, or reports an unknown outcome."""

from __future__ import annotations

import pytest
from redis.exceptions import ConnectionError

from tests.app.answers import OF_ERROR, OF_PROVIDER
from tests.app.at_provider import INSERT, LOOK, NINE, one
from tests.app.days import PROVIDERS
from tests.conftest import Api

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
KEY = {"Idempotency-Key": "k-1"}
# The provider has inserted the event, but the connection breaks or the answer comes after the deadline.
LOST = pytest.mark.parametrize("fault", [{"body": "reset"}, {"latency_ms": 60_000}], ids=["reset", "hangs"])


def unknown(answer):
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
    api, new_person, monkeypatch, headers, advice, query
):
    def cut_off(*_args, **_options):
        raise ConnectionError("Redis is away")

    google = new_person("google")
    path = f"/users/{google.user}/calendar/events/google/primary"
    with monkeypatch.context() as patch:
        patch.setattr("app.events.worker_calls.write_events", cut_off)
        answer = api.post(path, NINE, headers=headers, query_string=query)
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
    sentence = unknown(person.create(subject="Once", headers=headers, **body))
    assert "repeat the request with the same Idempotency-Key or metaId" in sentence
    sandbox.clear_faults()
    made = one(person.create(subject="Once", headers=headers, **body), 201)
    (kept,) = person.there.events()
    assert made["id"] == kept["id"]


@BOTH
def test_unknown_outcome_without_key_or_meta_id_advises_a_search(sandbox, person):
    sandbox.fault(operation=INSERT[person.provider], body="reset")
    sandbox.fault(operation=LOOK[person.provider], status=503, retry_after=60)
    sentence = unknown(person.create(subject="Once"))
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
    unknown(person.create(subject="Once"))
