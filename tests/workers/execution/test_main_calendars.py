"""Identification stores the id, the address of the owner and the time zone of a main calendar."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from sqlalchemy import update

from providers.base import Calendar
from providers.errors import Reason
from store.cache.cache_tags import change_tags
from store.cache.versioned_cache import VERSION_KEY
from store.coordination.provider_limits import Access
from store.sql.models import OAuthConnection
from tests.app.days import PROVIDERS
from workers.execution import identity, reads
from workers.execution.accounts import open_account
from workers.jobs import ReadBusy, ReadEvents, ShowCalendars

START, END = 1_796_256_000_000, 1_796_342_400_000  # 2026-12-03 to 2026-12-04
ZONE = "America/New_York"


@pytest.fixture
def do(runtime, opened):
    """Perform one job of the reads queue."""
    return lambda job: reads.perform(runtime, job, opened(job.connection), time.monotonic() + 5)


@pytest.fixture
def unidentified(sandbox, runtime, connected):
    """A connection whose main calendar was not read yet."""

    def make(provider, **account):
        connection = connected(sandbox.account(provider, "ada@example.com", **account))
        nothing = {"main_calendar_id": None, "mailbox": None}
        with runtime.stores.database.writing() as session:
            session.execute(update(OAuthConnection).where(OAuthConnection.id == connection).values(nothing))
        return connection

    return make


def listed(zone, *, provider="google", name="ada@example.com"):
    """The main calendar on a list."""
    return Calendar(name, provider, "", "owner", True, True, "", "", zone, {}, "ada@example.com")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_first_read_stores_the_zone(runtime, row, do, unidentified, provider):
    connection = unidentified(provider, time_zone=ZONE)

    do(ReadBusy(connection, ("primary",), START, END))

    assert row(connection).time_zone == ZONE
    assert row(connection).main_calendar_id is not None


def test_the_first_read_is_answered_although_the_zone_cannot_be_read(sandbox, row, do, unidentified):
    connection = unidentified("microsoft", time_zone=ZONE)
    sandbox.fault(operation="microsoft.mailboxSettings.get", status=403)

    reply = do(ReadBusy(connection, ("primary",), START, END))

    assert reply.failed is None
    assert row(connection).main_calendar_id is not None
    assert row(connection).time_zone is None


@pytest.mark.parametrize("status", [503, 401])
def test_a_read_of_a_mailbox_that_cannot_be_identified_is_not_cached(
    sandbox, runtime, do, unidentified, status
):
    """A write through another connection of the mailbox could not invalidate it."""
    connection = unidentified("google")
    sandbox.fault(operation="google.calendarList.get", status=status)
    before = runtime.stores.busy.begin_reads([connection], {})

    reply = do(ReadBusy(connection, ("primary",), START, END))

    assert reply.failed is None
    assert runtime.stores.busy.begin_reads([connection], {}) != before


@pytest.mark.parametrize(
    ("provider", "operation"),
    [("google", "google.calendarList.get"), ("microsoft", "microsoft.calendars.get")],
)
def test_a_read_makes_no_call_in_a_pause_that_began_with_the_identification(
    sandbox, do, unidentified, provider, operation
):
    connection = unidentified(provider)
    sandbox.fault(operation=operation, status=429, retry_after=30)

    reply = do(ReadBusy(connection, ("primary",), START, END))

    assert (reply.failed.reason, reply.failed.retry_after) == (Reason.RATE_LIMITED, 30)
    assert not {"google.freebusy.query", "microsoft.calendarView.list"} & set(sandbox.requests().by_operation)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_list_stores_the_zone_of_a_connection_that_is_identified(sandbox, connected, row, do, provider):
    connection = connected(sandbox.account(provider, "ada@example.com", time_zone=ZONE))
    assert row(connection).time_zone is None

    do(ShowCalendars(connection))

    assert row(connection).time_zone == ZONE


@pytest.fixture
def known(runtime, connected, opened):
    """The credentials of a connection with a known zone, as its list was read: ``known(provider)``."""

    def make(provider="google"):
        connection = connected(provider=provider)
        first = listed(ZONE, provider=provider)
        identity.note_list(runtime.stores, opened(connection), [first])
        return opened(connection)

    return make


def test_a_changed_zone_is_stored(runtime, row, known):
    credentials = known()

    found = identity.note_list(runtime.stores, credentials, [listed("Europe/Berlin")])

    assert found == replace(credentials, time_zone="Europe/Berlin")
    assert row(credentials.id).time_zone == "Europe/Berlin"


def test_a_zone_invalidates_cached_rows_and_no_busy_periods(runtime, known):
    stores, credentials = runtime.stores, known()
    stores.versioned_cache.bump_version()
    version = stores.redis.get(VERSION_KEY)
    generation = stores.busy.begin_reads([credentials.id], {})

    identity.note_list(stores, credentials, [listed("Europe/Berlin")])

    assert stores.redis.get(VERSION_KEY) != version
    assert stores.busy.begin_reads([credentials.id], {}) == generation


def test_another_name_invalidates_both(runtime, known):
    stores, credentials = runtime.stores, known()
    stores.versioned_cache.bump_version()
    version = stores.redis.get(VERSION_KEY)
    generation = stores.busy.begin_reads([credentials.id], {})

    identity.note_list(stores, credentials, [listed(ZONE, name="ada.lovelace@example.com")])

    assert stores.redis.get(VERSION_KEY) != version
    assert stores.busy.begin_reads([credentials.id], {}) != generation


@pytest.mark.parametrize("zone", ["", "Nowhere/At_All", "localtime", "<b>x</b>", "A" * 500, "../UTC"])
def test_a_name_that_no_zone_has_changes_nothing(runtime, row, known, zone):
    credentials = known()

    assert identity.note_list(runtime.stores, credentials, [listed(zone)]) == credentials
    assert row(credentials.id).time_zone == ZONE


def test_utc_on_a_list_of_microsoft_may_be_a_zone_that_was_not_read(runtime, row, known):
    credentials = known("microsoft")

    identity.note_list(runtime.stores, credentials, [listed("UTC", provider="microsoft")])

    assert row(credentials.id).time_zone == ZONE


def test_the_zone_of_another_calendar_is_not_that_of_the_person(runtime, row, known):
    credentials = known()
    other = replace(listed("Asia/Tokyo", name="team"), primary=False)

    identity.note_list(runtime.stores, credentials, [other])

    assert row(credentials.id).time_zone == ZONE


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_list_without_the_main_calendar_has_it_nevertheless(runtime, opened, connected, sandbox, provider):
    credentials = opened(connected(sandbox.account(provider, "ada@example.com")))
    main = credentials.main_calendar_id or "primary"
    assert [each.read_id for each in identity.listing(credentials, [])] == ["primary"]
    unmarked = replace(listed(ZONE, provider=provider, name=main), primary=False)
    found = identity.listing(replace(credentials, main_calendar_id=main), [unmarked])
    assert [each.read_id for each in found] == ["primary"]


def test_a_hidden_main_calendar_is_read(sandbox, do, connected):
    meeting = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
    connection = connected(sandbox.account("google", "ada@example.com", events=[meeting]))
    sandbox.fault(provider="google", wild="hiddenMain")
    reply = do(ReadBusy(connection, None, START, END))
    assert len(reply.outcomes["primary"].busy) == 1


def test_a_default_calendar_answers_by_its_earlier_id(sandbox, runtime, do, opened, connected):
    meeting = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
    connection = connected(sandbox.account("microsoft", "ada@example.com", events=[meeting]))
    renamed = replace(opened(connection), main_calendar_id="AAMkEarlier=")
    refused = do(ReadBusy(connection, ("AAMkEarlier=",), START, END)).outcomes["AAMkEarlier="]
    assert refused.reason in ("notFound", "invalidCalendarId")
    now = listed(ZONE, provider="microsoft", name="AAMkNow=")
    identity.note_list(runtime.stores, renamed, [now])
    for job in (
        ReadBusy(connection, ("AAMkEarlier=",), START, END),
        ReadEvents(connection, ("AAMkEarlier=",), START, END),
    ):
        reply = do(job)
        outcome = (reply.outcomes or reply.events)["AAMkEarlier="]
        assert len(getattr(outcome, "busy", outcome)) == 1


def test_a_change_of_the_main_calendar_invalidates_what_was_read_by_its_earlier_id(
    sandbox, runtime, do, opened, connected
):
    connection = connected(sandbox.account("microsoft", "ada@example.com"))
    stores, renamed = runtime.stores, replace(opened(connection), main_calendar_id="AAMkEarlier=")
    now = listed(ZONE, provider="microsoft", name="AAMkNow=")
    credentials = identity.note_list(stores, renamed, [now])
    do(ReadBusy(connection, ("AAMkEarlier=",), START, END))
    before = stores.busy.begin_reads([connection], {})

    stores.busy.invalidate_tags(change_tags(credentials, "AAMkNow="))

    assert stores.busy.begin_reads([connection], {}) != before


def test_the_owners_of_shared_calendars_are_looked_up_once(sandbox, runtime, opened, connected):
    """A write to such a calendar concerns the mailbox of its owner. One on no list is not searched again."""
    ada, bob = (sandbox.account("microsoft", f"{name}@example.com") for name in ("ada", "bob"))
    shared = sandbox.share(bob, ada)
    credentials = opened(connected(ada))
    provider, account = open_account(runtime, credentials, Access.READS)

    def owners(*calendars):
        deadline = time.monotonic() + 5
        return identity.owners(runtime.stores, credentials, provider, account, calendars, deadline=deadline)

    found = owners(shared, "gone")
    assert (found[shared], found["gone"]) == ("bob@example.com", "")
    sandbox.forget_requests()
    assert owners(shared, "gone", "primary") == {shared: "bob@example.com", "gone": ""}
    assert sandbox.requests().total == 0
