"""Accounts that cannot be read now: overview, lists, the user's page and the explorer name them alike."""

from __future__ import annotations

import pytest

from app.dashboard.overview import unread
from providers.errors import Reason
from store.cache.last_reads import LastRead
from store.coordination.heartbeats import Heartbeats, LiveProcesses
from tests.dashboard.visiting import words
from workers.failures import TIMED_OUT
from workers.fanout.client import Fanout
from workers.jobs import Reply

pytestmark = pytest.mark.usefixtures("worker")

DAY = {"day": "2026-12-03", "days": "1", "zone": "UTC"}

FAULTS = {
    "denied": {"status": 403, "reason": "ErrorAccessDenied"},
    "down": {"status": 500},
    "throttled": {"status": 429, "retry_after": 60},
    "gone": {"status": 404, "reason": "ErrorMailboxNotFound"},
}


@pytest.fixture
def people(sandbox, new_user, new_organization, unique):
    """Four users whose accounts fail, and one whose account is well, in an organization: names by fault."""
    slug = new_organization()
    mark, found = unique("unread"), {}
    for fault in (*FAULTS, "well"):
        email = f"{fault}.{mark}@contoso.example"
        found[fault] = new_user(sandbox.account("microsoft", email), name=f"{fault}-{mark}", slugs=(slug,))
        if fault in FAULTS:
            sandbox.fault(email=email, **FAULTS[fault])
    return slug, found


def listed(page):
    """The users that a list marks, with the text of their row."""
    return {
        words(row.select_one("th a")): words(row)
        for row in page.html.select("tbody tr")
        if unread.WORD in words(row)
    }


def test_every_page_names_who_cannot_be_booked(signed_in, people):
    (slug, named), here = people, signed_in
    picture = here.get("/explorer/grid", organization=slug, **DAY)
    failed = {named[each] for each in FAULTS}

    lanes = {
        words(each.find_parent("tr").select_one("a")): words(each) for each in picture.html.select(".unread")
    }
    assert lanes.keys() == failed
    assert all("Microsoft" in each and ", since " in each for each in lanes.values())

    for page in (here.get("/users", show=unread.SHOW), here.get(f"/organizations/{slug}", show=unread.SHOW)):
        rows = listed(page)
        assert failed <= rows.keys()
        assert named["well"] not in rows
        assert all("first just now" in rows[each] for each in failed)

    overview = words(here.get("/").html.find(id="attention-unbookable"))
    assert unread.TITLE in overview
    assert here.get("/").html.select_one("#attention-unbookable .actions a")["href"].endswith("show=unread")
    for user in failed:
        notice = words(here.get(f"/users/{user}").html.select_one(".connection .notice.bad"))
        assert notice.startswith(f"{user} cannot be booked now: ")
        assert "It has failed since" in notice
    assert not here.get(f"/users/{named['well']}").html.select(".connection .notice.bad")


def test_a_read_that_succeeds_ends_the_state(signed_in, sandbox, new_user, unique):
    email = f"{unique('back')}@example.com"
    user = new_user(sandbox.account("google", email))
    sandbox.fault(email=email, status=500)
    signed_in.get("/explorer/grid", users=user, **DAY)
    assert user in listed(signed_in.get("/users", q=user))
    sandbox.clear_faults()
    signed_in.get("/explorer/grid", users=user, fresh="1", **DAY)
    assert user not in listed(signed_in.get("/users", q=user))


def test_a_lane_from_the_cache_is_marked_after_a_failed_refresh(signed_in, sandbox, new_user, unique):
    email = f"{unique('stale')}@example.com"
    user = new_user(sandbox.account("google", email))
    signed_in.get("/explorer/grid", users=user, **DAY)
    sandbox.fault(email=email, status=500)
    signed_in.get("/explorer/grid", users=user, fresh="1", **DAY)

    picture = signed_in.get("/explorer/grid", users=user, **DAY)
    assert f"The last read of {user} failed" in words(picture.html.select_one(".notice.bad"))
    assert picture.html.select(".slot")


def test_a_stopped_worker_is_not_blamed_on_the_provider(signed_in, sandbox, new_user, monkeypatch):
    user = new_user(sandbox.account("google", "waits@example.com"))
    late = Reply(failed=TIMED_OUT)
    monkeypatch.setattr(Fanout, "gather", lambda _, jobs, *args, **options: [late for _ in jobs])
    monkeypatch.setattr(Heartbeats, "live_processes", lambda _: LiveProcesses({}, None))
    page = signed_in.get("/explorer/grid", users=user, **DAY)
    assert "no worker of this service is running" in words(page.html.select_one(".notice.bad"))


@pytest.mark.parametrize("delegated", [False, True])
@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_an_advice(reason, delegated):
    assert unread.advice(LastRead(0, reason), delegated=delegated).endswith(".")


def test_nobody_is_sent_to_connect_an_account_that_a_grant_reads():
    for reason in Reason:
        assert "onnect the account" not in unread.advice(LastRead(0, reason), delegated=True)
    assert "management scope" in unread.advice(LastRead(0, Reason.ACCESS_DENIED), delegated=True)
