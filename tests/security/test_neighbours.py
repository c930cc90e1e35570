"""What two organizations on one installation share: caches, lists, users who are members of both."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest
from flask import Flask

from providers.sandbox.client import Sandbox
from store.stores import Stores
from tests.app.at_provider import AtProvider
from tests.app.days import meeting, periods
from tests.conftest import Api
from tests.security import keys
from tests.security.keys import Kind
from tests.security.matrix import DAY, FOREIGN, Row
from tests.security.tenants import Settle, Tenant, consent, digest, leaks

pytestmark = pytest.mark.security

# Reads with the same answer to a key of the owner's organization and to an unbound one.
READS = [row for row in FOREIGN if row.kind == "read" and row.bound is None]
LISTS = ("/users", "/organizations", "/webhooks")
AVAILABILITY = [row for row in READS if "/busy" in row.path or "/scheduling" in row.path]


@pytest.fixture
def bound(app: Flask, stores: Stores) -> Callable[[Tenant], Api]:
    """A client with a key of a tenant that may do everything."""
    full = Kind(bound=True, shows_tokens=True)
    return lambda tenant: Api(app.test_client(), keys.create(stores, full, tenant.slug))


def ask(api: Api, row: Row, names: dict[str, str], **more):
    method, path, sent = row.request(names)
    return api.call(method, path, **sent, **more)


# --- requests of another tenant before


@pytest.mark.parametrize("row", READS, ids=lambda row: row.operation)
def test_an_answer_that_is_warm_for_others_is_none_for_strangers(new_tenant: Settle, bound, api, row: Row):
    mine, theirs = new_tenant(), new_tenant()
    for owner in (api, bound(theirs)):
        assert ask(owner, row, theirs.names).status_code == 200

    answer = ask(bound(mine), row, theirs.names)

    assert answer.status_code == row.foreign
    assert list(leaks(answer, theirs.words, str(row.request(theirs.names)))) == []


def test_shared_calendar_is_read_with_rights_of_each_account(
    new_tenant: Settle, bound, sandbox: Sandbox, api, new_user
):
    """The room is in the list of one account; the other one is not let in."""
    mine, theirs = new_tenant(), new_tenant()
    room = "room@resource.example"
    insider = sandbox.account(
        "google",
        "insider@example.com",
        calendars=[{"primary": True}, {"id": room}],
        events=[meeting("09:00", "10:00", calendarId=room)],
    )
    outsider = sandbox.account("google", "outsider@example.com")
    inside = new_user(insider, slugs=(theirs.slug,))
    outside = new_user(outsider, slugs=(mine.slug,))
    asked = DAY | {"calendarIds": room}
    warm = bound(theirs).get(f"/users/{inside}/calendar/busy", **asked)
    assert periods(warm) == [("09:00", "10:00")]

    answer = bound(mine).get(f"/users/{outside}/calendar/busy", **asked)

    assert answer.status_code in (403, 404), answer.text
    assert "09:00" not in answer.text


def test_a_meta_id_of_both_is_two_events(new_tenant: Settle, bound, sandbox: Sandbox):
    mine, theirs = new_tenant(), new_tenant()
    path = "/users/{}/calendar/events/meta"
    event = {"start": "2026-12-03T12:00:00Z", "end": "2026-12-03T13:00:00Z", "metaId": "standup"}
    for tenant in (mine, theirs):
        body = event | {"subject": f"Standup of {tenant.slug}"}
        assert bound(tenant).post(path.format(tenant.user), body).status_code == 201

    seen = bound(mine).get(f"{path.format(mine.user)}/standup")
    assert list(leaks(seen, theirs.words, "")) == []
    assert seen.json["data"]["subject"] == f"Standup of {mine.slug}"
    assert bound(mine).delete(f"{path.format(mine.user)}/standup").status_code == 200

    for account in theirs.accounts:
        assert f"Standup of {theirs.slug}" in AtProvider(sandbox, account).subjects()


# --- lists


def cursors(tenant: Tenant) -> list[str]:
    """Cursors that one can make of names that one has heard of, and the first place of every list."""
    texts = [*tenant.names.values(), "000", "zzz", json.dumps(["2026-12-03T09:00:00.000Z", 0, ""])]
    return [base64.urlsafe_b64encode(text.encode()).decode() for text in texts]


def test_no_list_shows_anybody_else_wherever_one_begins(new_tenant: Settle, bound):
    tenants = sorted((new_tenant(), new_tenant()), key=lambda each: each.user)
    # Either one may be the one that comes first.
    for mine, theirs in (tenants, tenants[::-1]):
        bearer = bound(mine)
        lists = [*LISTS, f"/organizations/{mine.slug}/members", f"/users/{mine.user}/organizations"]
        lists += [f"/users/{mine.user}/oauth", f"/webhooks/{mine.names['webhookId']}/deliveries"]
        lists += [f"/users/{mine.user}/calendar"]
        for path in lists:
            seen = [bearer.get(path)]
            for cursor in cursors(theirs):
                seen += [bearer.get(path, cursor=cursor, **more) for more in ({}, {"limit": 1})]
            assert seen[0].status_code == 200
            for answer in seen:
                assert answer.status_code in (200, 400), path
                assert list(leaks(answer, theirs.words, str(cursors(theirs)))) == [], path


# --- users who are members of both


@pytest.fixture
def shared(new_tenant: Settle, api) -> tuple[Tenant, Tenant]:
    """Two tenants; the user of the first is a member of both."""
    mine, theirs = new_tenant(), new_tenant()
    answer = api.post(f"/organizations/{theirs.slug}/members", {"userIds": [mine.user]})
    assert answer.status_code == 201
    return mine, theirs


CHANGES = [row for row in FOREIGN if row.kind == "write" and "{userId}" in row.path]
# The calendar is the person's own; a key that may read it may also write into it. A membership is the
# organization's own; it ends without a change for the other organization.
OWN = [row for row in CHANGES if "/calendar/" in row.path or "/members/" in row.path]


@pytest.mark.parametrize("row", [r for r in CHANGES if r not in OWN], ids=lambda row: row.operation)
def test_what_two_organizations_share_is_changed_by_neither(shared, bound, stores, row: Row):
    mine, theirs = shared
    bearer = bound(mine)
    before = digest(stores)

    answer = ask(bearer, row, mine.names)

    assert answer.status_code == 403
    assert list(leaks(answer, theirs.words, "")) == []
    assert digest(stores) == before


def test_a_consent_for_a_shared_user_changes_nothing(new_tenant: Settle, bound, api, stores):
    mine, theirs = new_tenant(), new_tenant()
    agreed = consent(bound(mine), mine)
    assert api.post(f"/organizations/{theirs.slug}/members", {"userIds": [mine.user]}).status_code == 201
    bearer = bound(mine)
    before = digest(stores)

    answer = bearer.post("/users/oauth/google/verify", agreed)

    assert answer.status_code == 403
    assert digest(stores) == before


@pytest.mark.parametrize("row", READS, ids=lambda row: row.operation)
def test_former_member_is_missing_from_the_next_answer(shared, bound, api, row: Row):
    """Also from rows that a process has cached, and from the busy cache."""
    home, left = shared
    bearer = bound(left)
    names = home.names | {name: left.names[name] for name in ("orgSlug", "webhookId", "deliveryId", "holdId")}
    assert ask(bearer, row, names).status_code == 200

    gone = api.delete(f"/organizations/{left.slug}/members", {"userIds": [home.user]})
    assert gone.status_code == 200
    answer = ask(bearer, row, names)

    if "userId" in row.names:
        assert answer.status_code == row.foreign
    said = str(row.request(names))
    assert list(leaks(answer, home.words, said)) == []


@pytest.mark.parametrize("row", AVAILABILITY, ids=lambda row: row.operation)
def test_of_a_connection_that_is_deleted_the_next_answer_has_nothing(new_tenant: Settle, bound, row: Row):
    tenant = new_tenant()
    bearer = bound(tenant)
    assert ask(bearer, row, tenant.names).status_code == 200
    for account in tenant.accounts:
        assert bearer.delete(f"/users/{tenant.user}/oauth/{account.provider}").status_code == 200

    answer = ask(bearer, row, tenant.names)

    assert answer.status_code == (200 if "orgSlug" in row.names else row.foreign)
    assert not any(account.email in answer.text for account in tenant.accounts)


# --- names that are unique in an installation


def test_a_taken_name_reveals_nothing_else(new_tenant: Settle, bound, stores):
    """A client that wants to create a name learns whether it is free; there is no other way."""
    mine, theirs = new_tenant(), new_tenant()
    bearer = bound(mine)
    before = digest(stores)

    for answer, told, code in (
        (bearer.post("/users", {"id": theirs.user}), "User already exists", "userExists"),
        (bearer.put(f"/users/{mine.user}", {"userId": theirs.user}), "User already exists", "userExists"),
        (
            bearer.put(f"/organizations/{mine.slug}", {"slug": theirs.slug}),
            "Organization with slug already exists",
            "organizationExists",
        ),
    ):
        assert (answer.status_code, answer.json) == (409, {"data": None, "error": told, "code": code})

    assert digest(stores) == before
