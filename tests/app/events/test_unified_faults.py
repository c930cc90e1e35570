"""Unified events when one account fails: all or nothing on create; otherwise reported and repeatable."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.events import worker_calls
from app.services import EXTENSION
from providers.base import Failed
from providers.errors import Problem, Reason
from tests.app.answers import OF_ERROR, OF_PROVIDER, error, forget_patience
from tests.app.at_provider import DELETE, INSERT, LOOK, NINE, UPDATE, one
from tests.app.days import DAY, PROVIDERS, periods
from tests.app.two_accounts import ADA, SHOWN, Both
from tests.conftest import Api, connect
from workers.fanout.admission import QueueFull
from workers.jobs import Reply
from workers.queues import Queue

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
OTHER = {"google": "microsoft", "microsoft": "google"}
NAME = {"google": "Google Calendar", "microsoft": "Microsoft 365"}
EMPTY = {"google": [], "microsoft": []}
# The operation that looks for a metaId.
FIND = {"google": "google.events.list", "microsoft": "microsoft.batch"}
TOO_NARROW = {
    "google": ["https://www.googleapis.com/auth/calendar.readonly"],
    "microsoft": ["Calendars.Read"],
}


@pytest.fixture
def both(api, sandbox, new_user):
    return Both.connected(api, sandbox, new_user)


def failed_accounts(answer):
    return [(each["provider"], each["reason"]) for each in answer.json["failedCalendars"]]


# --- create: all or nothing

UNDONE = "The copies of this request were deleted again"
NONE_MADE = "No copy was made"


def assert_left(answer, provider):
    """The answer says that an account may have a copy, and what the client can do."""
    sentence = f"{provider} may have a copy: it is safe to repeat the request with the metaId m-1"
    assert sentence in answer.json["error"]
    assert answer.json["code"] == "outcomeUnknown"


@BOTH
@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({"status": 403}, 403),
        ({"status": 429, "retry_after": 60}, 429),
        # Three attempts, none of which has written anything.
        ({"status": 429, "retry_after": 0.1}, 429),
        ({"status": 503, "retry_after": 60}, 502),
        ({"status": 400}, 400),
    ],
    ids=str,
)
def test_when_one_account_fails_nothing_is_left_at_either(api, sandbox, both, provider, fault, status):
    sandbox.fault(operation=INSERT[provider], **fault)
    answer = both.create(metaId="m-1", subject="Half")
    assert answer.status_code == status, answer.text
    assert (answer.json["data"], answer.json["metaId"]) == (None, "m-1")
    assert answer.json["error"].startswith(NAME[provider])
    # After 503 the copy may still appear; after a refusal it cannot.
    if status == 502:
        assert_left(answer, provider)
    else:
        assert answer.json["error"].endswith(UNDONE)
        assert answer.json["code"] == {400: "eventRefused", 403: "accessDenied", 429: "rateLimited"}[status]
    seconds = -(-fault["retry_after"] // 1) if status == 429 else None
    assert answer.json.get("retryAfter") == seconds
    assert answer.headers.get("Retry-After") == (None if seconds is None else f"{seconds:g}")
    assert both.subjects() == EMPTY
    assert periods(api.get(f"/users/{both.user}/calendar/busy", **DAY)) == []

    sandbox.clear_faults()
    forget_patience(api)
    assert one(both.create(metaId="m-1", subject="Half"), 201)["metaId"] == "m-1"
    assert both.subjects() == {"google": ["Half"], "microsoft": ["Half"]}


@BOTH
def test_copy_with_unreadable_answer_is_deleted_too(sandbox, both, provider):
    sandbox.fault(operation=INSERT[provider], body="html")
    answer = both.create(metaId="m-1", subject="Half")
    assert answer.status_code == 422
    assert answer.json["error"].endswith(UNDONE)
    assert sandbox.requests().by_operation[INSERT[provider]] >= 1
    assert both.subjects() == EMPTY

    sandbox.clear_faults()
    assert one(both.create(metaId="m-1", subject="Half"), 201)
    assert both.subjects() == {"google": ["Half"], "microsoft": ["Half"]}


@pytest.mark.parametrize("fault", [{"latency_ms": 6000}, {"body": "reset"}], ids=str)
def test_copies_with_lost_answers_are_found(sandbox, both, fault):
    for provider in PROVIDERS:
        sandbox.fault(operation=INSERT[provider], **fault)
    assert len(one(both.create(metaId="m-1", subject="Once"), 201)["events"]) == 2
    assert both.subjects() == {"google": ["Once"], "microsoft": ["Once"]}


@pytest.mark.parametrize("provider", ["google"])
def test_a_copy_that_cannot_be_seen_at_first_is_deleted_too(sandbox, both, provider):
    sandbox.fault(operation=INSERT[provider], body="reset")
    sandbox.fault(operation=LOOK[provider], status=503, retry_after=60)
    answer = both.create(metaId="m-1", subject="Half")
    assert (answer.status_code, answer.json["code"]) == (502, "providerError")
    assert answer.json["error"].endswith(UNDONE)
    assert both.subjects() == EMPTY


@BOTH
def test_when_the_search_for_copies_fails_nothing_is_created(sandbox, both, provider):
    sandbox.fault(operation=FIND[provider], status=503, retry_after=60)
    answer = both.create(metaId="m-1", subject="Half")
    assert answer.status_code == 502
    assert answer.json["error"].endswith(NONE_MADE)
    assert answer.json["code"] == "providerError"
    assert failed_accounts(answer) == [(provider, "providerError")]
    assert INSERT[OTHER[provider]] not in sandbox.requests().by_operation
    sandbox.clear_faults()
    assert both.subjects() == EMPTY


@BOTH
def test_copies_that_cannot_be_removed_are_named(sandbox, both, provider):
    sandbox.fault(operation=INSERT[provider], status=403)
    sandbox.fault(operation=DELETE[OTHER[provider]], status=403)
    answer = both.create(metaId="m-1", subject="Half")
    assert answer.status_code == 403
    assert_left(answer, OTHER[provider])
    assert both.subjects() == {provider: [], OTHER[provider]: ["Half"]}
    sandbox.clear_faults()
    assert both.delete("m-1").status_code == 200
    assert both.subjects() == EMPTY


@BOTH
def test_a_repetition_that_fails_takes_nothing_away(sandbox, both, provider):
    assert both.create(metaId="m-1", subject="Once").status_code == 201
    # All calls that a repeated create may send for this account.
    sandbox.fault(email=ADA[provider], status=403)
    answer = both.create(metaId="m-1", subject="Once")
    assert answer.status_code == 403
    sandbox.clear_faults()
    assert both.subjects() == {"google": ["Once"], "microsoft": ["Once"]}


@BOTH
def test_a_copy_behind_a_refusal_of_the_second_try_is_found(sandbox, both, provider):
    # The fault that was added last applies first.
    sandbox.fault(operation=INSERT[provider], status=429, retry_after=60)
    sandbox.fault(operation=INSERT[provider], body="reset", times=1)
    assert len(one(both.create(metaId="m-1", subject="Once"), 201)["events"]) == 2
    assert both.subjects() == {"google": ["Once"], "microsoft": ["Once"]}


@BOTH
def test_a_copy_is_deleted_by_its_id_without_a_search(sandbox, both, provider):
    sandbox.fault(operation=INSERT[provider], status=403)
    sandbox.fault(operation=FIND[OTHER[provider]], status=503, retry_after=60)
    answer = both.create(subject="Half")
    assert answer.status_code == 403
    sandbox.clear_faults()
    assert both.subjects() == EMPTY


def test_a_repeated_request_as_advised_makes_no_second_copy(sandbox, both):
    sandbox.fault(operation=INSERT["microsoft"], status=403)
    sandbox.fault(operation=DELETE["google"], status=403)
    left = both.create(subject="Half")
    meta_id = left.json["metaId"]
    assert f"repeat the request with the metaId {meta_id}" in left.json["error"]
    sandbox.clear_faults()
    # The first request again, now with the metaId that was generated for it.
    again = both.create(metaId=meta_id, subject="Half")
    assert again.status_code == 201, again.text
    assert both.subjects() == {"google": ["Half"], "microsoft": ["Half"]}


@BOTH
def test_an_older_copy_is_never_undone(sandbox, both, provider):
    one_account = {"provider": OTHER[provider]}
    assert both.create(query=one_account, metaId="m-1", subject="Precious").status_code == 201
    # The account with the copy does not answer; the other one creates a copy, which must be deleted again.
    sandbox.fault(email=ADA[OTHER[provider]], status=503, times=3)
    answer = both.create(metaId="m-1", subject="Precious")
    assert answer.status_code == 502
    sandbox.clear_faults()
    assert both.subjects() == {provider: [], OTHER[provider]: ["Precious"]}


@BOTH
def test_an_older_copy_whose_account_gives_no_answer_is_not_undone(sandbox, both, provider, monkeypatch):
    assert both.create(query={"provider": provider}, metaId="m-1", subject="Precious").status_code == 201
    send, unknown = worker_calls.send, Failed(Reason.PROVIDER_ERROR, "lost", problem=Problem.OUTCOME_UNKNOWN)

    def losing(jobs, *, deadline):
        replies = send(jobs, deadline=deadline)
        return {each: reply if reply.made else Reply(failed=unknown) for each, reply in replies.items()}

    with monkeypatch.context() as patched:
        patched.setattr(worker_calls, "send", losing)
        assert both.create(metaId="m-1", subject="Precious").status_code == 502

    assert both.subjects() == {provider: ["Precious"], OTHER[provider]: []}


def test_an_undo_is_admitted_to_a_full_queue(sandbox, both, app, monkeypatch):
    room = app.extensions[EXTENSION].fanout._admission
    entered: list[str] = []

    def enter(queue, name, seconds):
        if Queue.WRITES in entered:
            raise QueueFull("others have come meanwhile")
        entered.append(queue)

    monkeypatch.setattr(room, "enter", enter)
    sandbox.fault(operation=INSERT["microsoft"], status=403)

    answer = both.create(metaId="m-1", subject="Half")

    assert (answer.status_code, entered) == (403, [Queue.READS, Queue.WRITES])
    assert answer.json["error"].endswith(UNDONE)
    sandbox.clear_faults()
    monkeypatch.undo()
    assert both.subjects() == EMPTY


@BOTH
def test_an_event_that_cannot_be_read_back_is_not_taken_for_created(sandbox, both, provider):
    if provider == "google":
        sandbox.fault(operation=INSERT[provider], body="html")
    else:
        sandbox.fault(operation="microsoft.events.get", status=404)
    answer = both.create(metaId="m-1", subject="Half")
    assert answer.status_code == 422
    sandbox.clear_faults()
    assert both.subjects() == EMPTY


def test_parallel_creates_of_the_same_event_lose_no_copy(app, sandbox, both):
    sandbox.fault(operation=INSERT["microsoft"], status=403, times=1)
    gate = threading.Barrier(2)

    def create(_):
        caller = Api(app.test_client(), both.api.key)
        gate.wait(timeout=10)
        body = {"metaId": "m-1", "subject": "Once", **NINE}
        return caller.post(f"/users/{both.user}/calendar/events/meta", body).status_code

    with ThreadPoolExecutor(2) as threads:
        statuses = sorted(threads.map(create, range(2)))
    assert statuses == [201, 403]
    assert both.subjects() == {"google": ["Once"], "microsoft": ["Once"]}


# Calls of which each changes the copies in both accounts.
CHANGES = {
    "create": lambda both: both.create(metaId="m-2"),
    "update": lambda both: both.update("m-1", subject="New"),
    "delete": lambda both: both.delete("m-1"),
}


@BOTH
@pytest.mark.parametrize("call", CHANGES)
def test_ended_grant_of_one_account_prevents_every_change(api, sandbox, both, provider, call):
    both.create(metaId="m-1", subject="Old")
    sandbox.revoke(ADA[provider])
    # This read is the first call after the revocation.
    assert failed_accounts(both.get("m-1")) == [(provider, "authorizationInvalid")]
    sandbox.forget_requests()
    answer = CHANGES[call](both)
    assert answer.status_code == 401
    assert provider.title() in answer.json["error"]
    assert sandbox.requests().total == 0
    assert both.there[OTHER[provider]].subjects() == ["Old"]


@BOTH
@pytest.mark.parametrize("call", CHANGES)
def test_missing_scope_of_one_account_prevents_every_change(api, sandbox, both, provider, call):
    both.create(metaId="m-1", subject="Old")
    connect(api, both.user, both.accounts[provider], scope=TOO_NARROW[provider])
    sandbox.forget_requests()
    answer = CHANGES[call](both)
    operation = {"create": "insert"}.get(call, call)
    assert answer.status_code == 403
    assert answer.json.keys() == OF_ERROR | OF_PROVIDER | {"operation", "validScopes"}
    assert failed_accounts(answer) == [(provider, "insufficientScopes")]
    assert answer.json["operation"] == f"calendar.events.{operation}"
    assert sandbox.requests().total == 0
    assert both.subjects() == {"google": ["Old"], "microsoft": ["Old"]}
    # A request for the other account alone still succeeds.
    assert both.create(query={"provider": OTHER[provider]}, metaId="m-3").status_code == 201


def test_an_interrupted_create_returns_the_metaid_to_repeat(both, redis_interrupts):
    with redis_interrupts():
        answer = both.create(subject="Once")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert (answer.json["code"], answer.json["retryAfter"]) == ("outcomeUnknown", 1)
    assert both.create(metaId=answer.json["metaId"], subject="Once").status_code == 201


# --- update and delete: reported and repeatable


@BOTH
def test_partial_update_is_reported_and_finished_by_a_repeat(sandbox, both, provider):
    both.create(metaId="m-1", subject="Old")
    sandbox.fault(operation=UPDATE[provider], status=503, retry_after=60)
    answer = both.update("m-1", subject="New")
    assert answer.status_code == 502
    expected = f"The event was changed in {OTHER[provider]}, but perhaps not in {provider}: {NAME[provider]}"
    assert answer.json["error"].startswith(expected)
    assert answer.json["error"].endswith("Repeat the request to finish")
    assert failed_accounts(answer) == [(provider, "providerError")]
    assert [each["calendarId"] for each in answer.json["failedCalendars"]] == [SHOWN[provider]]
    assert both.subjects() == {provider: ["Old"], OTHER[provider]: ["New"]}

    sandbox.clear_faults()
    assert len(one(both.update("m-1", subject="New"))["events"]) == 2
    assert both.subjects() == {"google": ["New"], "microsoft": ["New"]}


@BOTH
def test_partial_delete_is_reported_and_finished_by_a_repeat(sandbox, both, provider):
    both.create(metaId="m-1", subject="Old")
    sandbox.fault(operation=DELETE[provider], status=429, retry_after=60)
    answer = both.delete("m-1")
    assert (answer.status_code, answer.json["retryAfter"]) == (429, 60)
    assert answer.json["error"].startswith(
        f"The event was deleted in {OTHER[provider]}, but not in {provider}"
    )
    assert failed_accounts(answer) == [(provider, "rateLimited")]
    assert both.subjects() == {provider: ["Old"], OTHER[provider]: []}

    sandbox.clear_faults()
    forget_patience(both.api)
    assert both.delete("m-1").status_code == 200
    assert both.subjects() == EMPTY
    assert error(both.delete("m-1"), 404) == "Event not found"


@pytest.mark.parametrize("call", ["update", "delete"])
def test_most_specific_reason_is_reported_if_all_accounts_fail(sandbox, both, call):
    both.create(metaId="m-1", subject="Old")
    sandbox.fault(operation=FIND["google"], status=503, retry_after=60)
    sandbox.fault(operation=FIND["microsoft"], status=429, retry_after=60)
    answer = both.update("m-1", subject="New") if call == "update" else both.delete("m-1")
    assert answer.status_code == 429
    assert answer.json["error"].startswith("Microsoft 365")
    sandbox.clear_faults()
    assert both.subjects() == {"google": ["Old"], "microsoft": ["Old"]}


# --- read


@BOTH
@pytest.mark.parametrize(
    ("fault", "reason"),
    [({"status": 403}, "accessDenied"), ({"status": 503, "retry_after": 60}, "providerError")],
    ids=str,
)
def test_an_account_that_cannot_be_read_is_listed_with_the_other_copy(sandbox, both, provider, fault, reason):
    both.create(metaId="m-1", subject="Review")
    sandbox.fault(operation=FIND[provider], **fault)
    answer = both.get("m-1")
    assert [each["provider"] for each in one(answer)["events"]] == [OTHER[provider]]
    assert one(answer)["subject"] == "Review"
    assert failed_accounts(answer) == [(provider, reason)]
    assert answer.json["failedCalendars"][0]["calendarId"] == SHOWN[provider]


@BOTH
def test_an_account_that_may_not_be_read_is_named(api, both, provider):
    both.create(metaId="m-1", subject="Review")
    connect(api, both.user, both.accounts[provider], scope=["openid"])
    answer = both.get("m-1")
    assert failed_accounts(answer) == [(provider, "insufficientScopes")]
    assert [each["provider"] for each in one(answer)["events"]] == [OTHER[provider]]


@BOTH
def test_event_is_502_not_404_if_an_account_is_unreadable(sandbox, both, provider):
    both.create(query={"provider": provider}, metaId="m-1")
    sandbox.fault(operation=FIND[provider], status=503, retry_after=60)
    answer = both.get("m-1")
    assert answer.status_code == 502
    assert answer.json["data"] is None


def test_missing_scope_of_all_accounts_is_403_with_scopes(api, both):
    for account in both.accounts.values():
        connect(api, both.user, account, scope=["openid"])
    answer = both.get("m-1")
    assert answer.status_code == 403
    assert answer.json["operation"] == "calendar.events.list"
    assert answer.json["validScopes"]
