"""Availability of an organization whose members are read by grants, over HTTP and with a real worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.app.days import DAY, MORNING, meeting

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

FREE_BUSY, BATCH = "google.freebusy.query", "microsoft.batch"
DOMAINS = {"google": "acme.example", "microsoft": "contoso.example"}


@pytest.fixture
def organization(api: Any, sandbox: Any, new_organization: Any, unique: Any) -> Callable[..., str]:
    """Make an organization with grants, and this many members of each; returns its slug."""

    def make(**counts: int) -> str:
        slug = new_organization()
        for provider, count in counts.items():
            name = DOMAINS[provider]
            events = [meeting("09:00", "10:00")]
            emails = [f"m{n}@{name}" for n in range(count)]
            domain = sandbox.domain(provider, name, [{"email": each, "events": events} for each in emails])
            if provider == "google":
                body = {"serviceAccountKey": domain.service_account_key, "subject": domain.subject}
            else:
                body = {
                    "tenant": domain.tenant,
                    "clientId": domain.client_id,
                    "clientSecret": domain.client_secret,
                }
            assert api.put(f"/organizations/{slug}/grants/{provider}", body).status_code == 200
            imported = [{"userId": f"{slug}-m{n}-{provider}", "email": each} for n, each in enumerate(emails)]
            answer = api.post(f"/organizations/{slug}/grants/{provider}/members", {"members": imported})
            assert answer.status_code == 200, answer.text
        return slug

    return make


@pytest.fixture
def calls(sandbox: Any) -> Callable[[], dict[str, int]]:
    """The calls since the last time, by operation."""
    before: dict[str, int] = {}

    def since(*operations: str) -> dict[str, int]:
        now = sandbox.requests().by_operation
        found = {each: now.get(each, 0) - before.get(each, 0) for each in operations}
        before.update(now)
        return found

    return since


def slots(api: Any, slug: str) -> Any:
    answer = api.get(f"/organizations/{slug}/scheduling", **MORNING)
    assert answer.status_code == 200, answer.text
    return answer.json


def failed(answer: Any) -> dict[str, str]:
    """The reason of each failed member."""
    return {each["userId"].partition("-m")[2]: each["reason"] for each in answer["failedUsers"]}


def test_organization_is_read_in_bundles_and_then_from_cache(api, organization, calls):
    slug = organization(google=60, microsoft=25)
    calls()
    answer = slots(api, slug)
    assert answer["failedUsers"] == []
    assert calls(FREE_BUSY, BATCH) == {FREE_BUSY: 2, BATCH: 2}
    again = slots(api, slug)
    assert again["data"] == answer["data"]
    assert calls(FREE_BUSY, BATCH) == {FREE_BUSY: 0, BATCH: 0}


def test_personal_and_delegated_members_are_read_in_one_request(api, sandbox, organization, new_user, calls):
    slug = organization(google=3, microsoft=3)
    account = sandbox.account("google", "pia@personal.example", events=[meeting("11:00", "12:00")])
    new_user(account, slugs=(slug,))
    calls()
    answer = slots(api, slug)
    assert answer["failedUsers"] == []
    assert calls(FREE_BUSY, BATCH) == {FREE_BUSY: 2, BATCH: 1}


def test_an_unreadable_member_is_named_and_gets_no_slots(api, sandbox, organization):
    slug = organization(google=5, microsoft=5)
    sandbox.change_domain("acme.example", members=[{"email": "m1@acme.example", "suspended": True}])
    sandbox.change_domain("contoso.example", members=[{"email": "m2@contoso.example", "excluded": True}])
    assert failed(slots(api, slug)) == {
        "1-google": "authorizationInvalid",
        "2-microsoft": "accessDenied",
    }


def test_after_a_write_the_member_is_read_again(api, organization):
    slug = organization(google=2, microsoft=2)
    assert slots(api, slug)["failedUsers"] == []
    for provider in DOMAINS:
        user = f"{slug}-m0-{provider}"
        event = {
            "subject": "New",
            "start": "2026-12-03T14:00:00Z",
            "end": "2026-12-03T15:00:00Z",
        }
        made = api.post(f"/users/{user}/calendar/events/{provider}/primary", event)
        assert made.status_code in (200, 201), made.text
        read = api.get(f"/users/{user}/calendar/busy", **DAY).json["data"]
        assert {"start": "2026-12-03T14:00:00.000Z", "end": "2026-12-03T15:00:00.000Z"}.items() <= max(
            read, key=lambda each: each["start"]
        ).items()


def test_a_withdrawn_grant_fails_its_members_and_no_others(api, sandbox, organization, new_user):
    slug = organization(google=3, microsoft=3)
    sandbox.withdraw("acme.example")
    for _ in range(2):
        reasons = failed(slots(api, slug))
        assert reasons == {f"{n}-google": "authorizationInvalid" for n in range(3)}
    listed = api.get(f"/organizations/{slug}/grants").json["data"]
    assert {each["provider"]: each["alive"] for each in listed} == {"google": False, "microsoft": True}
