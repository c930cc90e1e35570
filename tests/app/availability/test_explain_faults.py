"""Explanations when calendars cannot be read: nothing is free, and the failed calendars are listed."""

from __future__ import annotations

import pytest

from app.availability.explanation_text import MAX_NAMED
from tests.app.days import MORNING, PROVIDERS
from tests.app.explaining import closed, explained, span

pytestmark = pytest.mark.usefixtures("worker")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_calendar_that_cannot_be_read_is_the_reason(sandbox, new_user_with_two_accounts, explain, provider):
    user = new_user_with_two_accounts()
    sandbox.fault(provider=provider, status=403)

    answer = explain(user, "09:10")

    found = explained(answer)
    closed(found)
    name = "Google's calendar ada@example.com" if provider == "google" else "Microsoft's calendar primary"
    assert found["sentence"] == (
        f"09:10 on Thursday 3 December 2026 (UTC) is not offered: {name} could not be read "
        f"(accessDenied), so "
        "nothing is offered."
    )
    (failed,) = answer.json["failedCalendars"]
    assert (failed["provider"], failed["reason"]) == (provider, "accessDenied")
    assert found["blockedBy"] == []


def test_blocking_periods_are_listed_also_if_a_calendar_is_unread(
    sandbox, new_user_with_two_accounts, explain
):
    user = new_user_with_two_accounts()
    sandbox.fault(provider="microsoft", status=503, retry_after=60)
    found = explained(explain(user, "10:20"))
    closed(found)
    assert [each["provider"] for each in found["blockedBy"]] == ["google"]


def test_partial_counts_the_read_calendars_and_names_the_others(
    api, sandbox, new_user_with_two_accounts, explain
):
    user = new_user_with_two_accounts()
    sandbox.fault(provider="microsoft", status=503, retry_after=60)
    slots = api.get(f"/users/{user}/scheduling", **MORNING, onFailure="partial")
    assert span(explained(slots)["availableSlots"][1]) == ("10:30", "11:30")

    answer = explain(user, "10:40", onFailure="partial")

    found = explained(answer)
    assert (found["offered"], span(found["slot"])) == (True, ("10:30", "11:30"))
    assert found["sentence"].endswith(
        "is offered: it lies in the slot from 10:30 to 11:30. Not counted, because unread: Microsoft's "
        "calendar primary (providerError)."
    )
    assert answer.json["failedCalendars"] == slots.json["failedCalendars"] != []


def test_with_partial_nothing_read_is_still_no_answer(sandbox, new_user_with_two_accounts, explain):
    user = new_user_with_two_accounts()
    sandbox.fault(status=503, retry_after=60)
    found = explained(explain(user, "09:10", onFailure="partial"))
    closed(found)
    assert "Google's calendar ada@example.com (providerError) and Microsoft's calendar" in found["sentence"]


def test_no_more_calendars_are_named_than_a_sentence_bears(sandbox, new_user, explain):
    gone = [f"gone{n}@group.calendar.google.com" for n in range(MAX_NAMED + 2)]
    user = new_user(sandbox.account("google", "ada@example.com"))
    answer = explain(user, "09:10", calendarIds=",".join(gone))
    found = explained(answer)
    closed(found)
    assert found["sentence"].count("(notFound)") == MAX_NAMED
    assert " and 2 more could not be read" in found["sentence"]
    assert len(answer.json["failedCalendars"]) == len(gone)


@pytest.mark.parametrize("fault", [{"status": 500}, {"body": "html"}, {"status": 401}])
def test_no_secrets_and_internals_are_in_answers(sandbox, new_user, explain, fault):
    account = sandbox.account("google", "ada@example.com")
    user = new_user(account)
    sandbox.fault(**fault)
    answer = explain(user, "09:10")
    closed(explained(answer))
    for inside in (account.access_token, account.refresh_token, "Traceback", "<", "127.0.0.1", "http"):
        assert inside not in answer.text
