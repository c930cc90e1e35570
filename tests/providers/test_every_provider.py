"""What holds for every provider, whatever its protocol: read over a socket from its world (``worlds.py``)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from providers import registry
from providers.base import Account, Failed, Outcome
from providers.contents import has_changes
from providers.errors import EventNotFound, EventRefused, FieldRefused, ProviderError, Reason
from providers.event_writes import EventFields
from providers.events import (
    Changes,
    Day,
    Event,
    Guest,
    Moment,
    Reminders,
    Response,
    ResponseStatus,
    ShowAs,
    Visibility,
)
from providers.scopes import Operation
from store.cache import cache_tags
from store.cache.cache_tags import PRIMARY
from tests.providers.event_calls import END, HOUR, NINE, START, TEN, TIMED, draft
from tests.providers.worlds import WORLDS, Entry, Fault, World, each_world

REASONS = {
    Fault.DOWN: Reason.PROVIDER_ERROR,
    Fault.UNREADABLE: Reason.PROVIDER_ERROR,
    Fault.NO_ANSWER: Reason.PROVIDER_ERROR,
    Fault.THROTTLED: Reason.RATE_LIMITED,
    Fault.REJECTED: Reason.AUTHORIZATION_INVALID,
}


def at(hour: int, zone: str = "UTC") -> datetime:
    """An hour of 3 December 2026, which ``START`` begins."""
    return datetime(2026, 12, 3, hour, tzinfo=ZoneInfo(zone))


def moment(when: datetime) -> int:
    return int(when.timestamp() * 1000)


MEETING = Entry(at(9), at(10))


@pytest.fixture(params=each_world())
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    made = WORLDS[request.param](request)
    yield made
    made.mend()


@pytest.fixture
def writable(world: World) -> World:
    """A world whose calendars can be changed."""
    if not allows(world, world.account(), Operation.INSERT_EVENT):
        pytest.skip("its calendars cannot be changed")
    return world


def allows(world: World, account: Account, operation: Operation) -> bool:
    return registry.scopes(world.name).allows(account.scopes, operation)


def deadline() -> float:
    return time.monotonic() + 20


def outcome(
    world: World, account: Account, start: int = START, end: int = END, calendar: str = PRIMARY
) -> Outcome:
    """The outcome for a calendar; a failure of the account is that of its calendars."""
    try:
        return world.adapter.busy(account, [calendar], start, end, deadline=deadline())[calendar]
    except ProviderError as error:
        return Failed.from_error(error)


def busy(world: World, account: Account, start: int = START, end: int = END) -> list[tuple[int, int]]:
    """The busy periods of the main calendar, which must be readable."""
    found = outcome(world, account, start, end)
    assert not isinstance(found, Failed), found
    return list(found.busy.pairs())


def test_every_provider_has_a_world():
    assert set(registry.names()) <= set(WORLDS)


# Unread is never free


@pytest.mark.parametrize("fault", Fault)
def test_a_calendar_that_cannot_be_read_is_failed_for_its_reason(world, fault):
    account = world.account([MEETING])
    world.fault(fault)

    found = outcome(world, account)

    assert isinstance(found, Failed)
    assert found.reason is REASONS[fault]


@pytest.mark.parametrize("fault", Fault)
def test_a_list_or_events_that_cannot_be_read_are_an_error(world, fault):
    account = world.account([MEETING])
    world.fault(fault)

    with pytest.raises(ProviderError) as raised:
        world.adapter.calendars(account, deadline=deadline())
    assert raised.value.reason is REASONS[fault]
    if allows(world, account, Operation.LIST_EVENTS):
        try:
            found = world.adapter.events(account, [PRIMARY], START, END, deadline=deadline())[PRIMARY]
        except ProviderError as error:
            found = Failed.from_error(error)
        assert isinstance(found, Failed)
        assert found.reason is REASONS[fault]


def test_a_calendar_that_does_not_exist_is_not_free(world):
    account = world.account([MEETING])
    calendar = f"{world.adapter.main_calendar(account, deadline=deadline()).id}x"

    assert isinstance(outcome(world, account, calendar=calendar), Failed)


# Retries


@pytest.mark.parametrize("fault", [Fault.DOWN, Fault.NO_ANSWER])
def test_a_read_is_repeated_after_a_passing_failure(world, fault):
    account = world.account([MEETING])
    world.fault(fault, times=1)

    assert busy(world, account) == [(NINE, TEN)]


def test_a_provider_that_asks_to_wait_too_long_is_not_called_again(world):
    account = world.account([MEETING])
    world.fault(Fault.THROTTLED)
    before = world.calls()

    found = outcome(world, account)

    assert isinstance(found, Failed)
    assert found.retry_after == pytest.approx(60, abs=2)
    assert world.calls() == before + 1


# Paging


def test_all_calendars_are_listed(world):
    account = world.account(calendars=world.many_calendars)

    found = world.adapter.calendars(account, deadline=deadline())

    assert len({each.id for each in found}) == world.many_calendars
    assert [each.provider for each in found] == [world.name] * world.many_calendars
    assert sum(each.primary for each in found) == 1


def test_all_events_are_read(world):
    first = datetime(2026, 12, 3, tzinfo=UTC)
    starts = [first + timedelta(minutes=n) for n in range(world.many_events)]
    account = world.account([Entry(each, each + timedelta(seconds=30)) for each in starts])

    assert busy(world, account) == [(moment(each), moment(each) + 30_000) for each in starts]


def test_the_main_calendar_is_found_under_both_names(world):
    account = world.account([MEETING])
    main = world.adapter.main_calendar(account, deadline=deadline())

    found = world.adapter.busy(account, [PRIMARY, main.id], START, END, deadline=deadline())

    assert list(found) == [PRIMARY, main.id]
    assert all(list(each.busy.pairs()) == [(NINE, TEN)] for each in found.values())


# Busy times


def test_times_are_clipped_to_the_range_and_merged(world):
    entries = [Entry(at(8), at(10)), Entry(at(10), at(11)), Entry(at(12), at(14)), Entry(at(20), at(21))]
    account = world.account(entries)

    assert busy(world, account, NINE, START + 13 * HOUR) == [
        (NINE, START + 11 * HOUR),
        (START + 12 * HOUR, START + 13 * HOUR),
    ]


def test_an_event_that_shows_its_owner_as_free_does_not_block(world):
    account = world.account([MEETING, Entry(at(14), at(15), free=True)])

    assert busy(world, account) == [(NINE, TEN)]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"])
def test_events_of_any_zone_block_their_moments(world, zone):
    entry = Entry(at(9, zone), at(10, zone))
    account = world.account([entry], time_zone=zone)
    start, end = moment(entry.start), moment(entry.end)

    assert busy(world, account, start - 24 * HOUR, end + 24 * HOUR) == [(start, end)]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"])
def test_an_all_day_event_blocks_its_day_in_the_zone_of_the_calendar(world, zone):
    account = world.account([Entry(date(2026, 12, 3), date(2026, 12, 4))], time_zone=zone)
    start, end = (moment(datetime(2026, 12, day, tzinfo=ZoneInfo(zone))) for day in (3, 4))

    assert busy(world, account, start - 48 * HOUR, end + 48 * HOUR) == [(start, end)]


def test_events_are_listed_by_start(world):
    account = world.account([Entry(at(12), at(13)), MEETING])
    if not allows(world, account, Operation.LIST_EVENTS):
        pytest.skip("its events cannot be read")

    found = world.adapter.events(account, [PRIMARY], START, END, deadline=deadline())[PRIMARY]

    assert not isinstance(found, Failed)
    assert [each.start for each in found] == [NINE, START + 12 * HOUR]


# Writes


def listed(world: World, account: Account) -> list[str]:
    """The subjects of the events of the day."""
    found = world.adapter.events(account, [PRIMARY], START, END, deadline=deadline())[PRIMARY]
    assert not isinstance(found, Failed), found
    return [each.subject for each in found]


def test_what_is_written_blocks_its_time(writable):
    account = writable.account()
    writable.adapter.create_event(account, PRIMARY, draft(TIMED), deadline=deadline())

    assert busy(writable, account) == [(NINE, TEN)]
    assert listed(writable, account) == ["Review"]


def test_the_same_draft_never_makes_two_events(writable):
    account, same = writable.account(), draft(TIMED, "key")

    made = [
        writable.adapter.create_event(account, PRIMARY, same, deadline=deadline()).event.id for _ in range(2)
    ]

    assert len(set(made)) == 1
    assert listed(writable, account) == ["Review"]


def test_a_create_whose_answer_is_lost_makes_one_event(writable):
    account, same = writable.account(), draft(TIMED, "key")
    writable.fault(Fault.NO_ANSWER, times=1)
    try:
        writable.adapter.create_event(account, PRIMARY, same, deadline=deadline())
    except ProviderError:
        writable.mend()
        writable.adapter.create_event(account, PRIMARY, same, deadline=deadline())

    assert listed(writable, account) == ["Review"]


def test_an_event_is_changed_and_deleted(writable):
    account = writable.account()
    made = writable.adapter.create_event(account, PRIMARY, draft(TIMED), deadline=deadline()).event
    later = Changes(start=Moment(TEN), end=Moment(TEN + HOUR))

    changed = writable.adapter.update_event(account, PRIMARY, made.id, later, deadline=deadline())
    assert (changed.subject, changed.start) == ("Review", TEN)
    assert busy(writable, account) == [(TEN, TEN + HOUR)]

    writable.adapter.delete_event(account, PRIMARY, made.id, notify=None, deadline=deadline())
    assert busy(writable, account) == []
    with pytest.raises(EventNotFound):
        writable.adapter.event(account, PRIMARY, made.id, deadline=deadline())


def test_an_all_day_event_is_written_for_its_day(writable):
    account = writable.account(time_zone="America/New_York")
    day = Changes(subject="Holiday", start=Day("2026-12-03"), end=Day("2026-12-04"))
    made = writable.adapter.create_event(account, PRIMARY, draft(day), deadline=deadline()).event

    assert made.all_day
    start, end = (moment(datetime(2026, 12, each, tzinfo=ZoneInfo("America/New_York"))) for each in (3, 4))
    assert busy(writable, account, START - 24 * HOUR, END + 48 * HOUR) == [(start, end)]


# How an event is shown


def fields_of(world: World) -> EventFields:
    return registry.definition(world.name).event_fields


def written(world: World, account: Account, content: Changes, change: Changes | None = None) -> Event:
    """The event that is read after its create, and a change if there is one."""
    definition = registry.definition(world.name)
    fit = definition.event_fields.fit(content, definition.title, new=True)
    made = world.adapter.create_event(account, PRIMARY, draft(fit), deadline=deadline()).event
    if change is not None:
        fit = definition.event_fields.fit(change, definition.title, new=False)
        world.adapter.update_event(account, PRIMARY, made.id, fit, deadline=deadline())
    return world.adapter.event(account, PRIMARY, made.id, deadline=deadline())


@pytest.mark.parametrize("shown", ShowAs)
def test_how_an_event_shows_its_owner_decides_whether_it_blocks(writable, shown):
    stored = fields_of(writable).show_as[shown]
    for change in (None, replace(Changes(), show_as=shown)):
        account = writable.account()
        content = replace(TIMED, show_as=shown if change is None else None)
        found = written(writable, account, content, change)

        assert found.shown_as is stored
        assert has_changes(found, Changes(show_as=stored))
        assert busy(writable, account) == ([(NINE, TEN)] if stored.blocks else [])


@pytest.mark.parametrize("before", Visibility)
@pytest.mark.parametrize("after", Visibility)
def test_visibility_is_written_and_changed(writable, before, after):
    if not {before, after} <= set(fields_of(writable).visibility):
        pytest.skip("the provider does not store it")
    account = writable.account()

    assert written(writable, account, replace(TIMED, visibility=before)).visibility is before
    changed = written(writable, account, replace(TIMED, visibility=before), Changes(visibility=after))
    assert changed.visibility is after
    assert has_changes(changed, Changes(visibility=after))


@pytest.mark.parametrize("before", [None, (), (0,), (10,), (10, 1440)])
@pytest.mark.parametrize("after", [(), (0,), (10, 40_320), (5,)])
def test_reminders_are_written_and_changed(writable, before, after):
    if len(after) > fields_of(writable).reminders or len(before or ()) > fields_of(writable).reminders:
        pytest.skip("the provider does not store so many")
    account, new = writable.account(), replace(TIMED, reminders=Reminders(before))

    made = written(writable, account, new)
    assert made.reminders == Reminders(before) or before is None
    changed = written(writable, account, new, Changes(reminders=Reminders(after)))
    assert changed.reminders == Reminders(after)
    assert has_changes(changed, Changes(reminders=Reminders(after)))


def test_reminders_are_those_of_the_calendar_again(writable):
    if not fields_of(writable).default_reminders:
        with pytest.raises(FieldRefused):
            fields_of(writable).fit(Changes(reminders=Reminders()), writable.name, new=False)
        return
    new = replace(TIMED, reminders=Reminders((10,)))

    found = written(writable, writable.account(), new, Changes(reminders=Reminders()))
    assert found.reminders == Reminders(None)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_a_timed_event_has_the_zone_in_which_it_was_written(writable, zone):
    account = writable.account()
    content = Changes(start=Moment(NINE, zone), end=Moment(TEN, zone))

    assert written(writable, account, content).time_zone == zone
    assert written(writable, account, TIMED, content).time_zone == zone
    day = Changes(start=Day("2026-12-03"), end=Day("2026-12-04"))
    assert written(writable, account, day).time_zone is None


# Attendees

BOB, ROOM = "bob@example.com", "room@example.com"
GUESTS = (
    Guest(BOB, name="Bob 'the builder' Müller; Sons, Ltd: 1", optional=True),
    "grace@example.com",
    Guest(ROOM, name="Room 4", resource=True),
)


def people(event: Event) -> list[tuple[str, str | None, bool, bool]]:
    return [(each.email, each.name, each.optional, each.resource) for each in event.attendees]


def test_attendees_have_their_names_and_kinds(writable):
    account = replace(writable.account(), email="ada@example.com")
    made = written(writable, account, replace(TIMED, attendees=GUESTS))
    name = GUESTS[0].name

    assert people(made) == [
        (BOB, name, True, False),
        ("grace@example.com", None, False, False),
        (ROOM, "Room 4", False, True),
    ]
    assert {each.response_status for each in made.attendees} == {ResponseStatus.NEEDS_ACTION}
    assert has_changes(made, Changes(attendees=GUESTS))
    assert not has_changes(made, Changes(attendees=(BOB, "grace@example.com")))
    assert not has_changes(made, Changes(attendees=(Guest(BOB, optional=False), *GUESTS[1:])))


def test_a_change_of_attendees_keeps_what_it_does_not_state(writable):
    account = replace(writable.account(), email="ada@example.com")
    change = Changes(attendees=(BOB, Guest("grace@example.com", optional=True), Guest(ROOM, name="Room 5")))
    found = written(writable, account, replace(TIMED, attendees=GUESTS), change)

    assert people(found) == [
        (BOB, GUESTS[0].name, True, False),
        ("grace@example.com", None, True, False),
        (ROOM, "Room 5", False, True),
    ]


# Series


def test_an_occurrence_has_its_series_and_the_start_that_this_gives(writable):
    account = writable.account([replace(MEETING, rule="FREQ=DAILY;COUNT=3")])
    days = START, START + 72 * HOUR

    def occurrences() -> list[Event]:
        found = writable.adapter.events(account, [PRIMARY], *days, deadline=deadline())[PRIMARY]
        assert not isinstance(found, Failed)
        return list(found)

    first, second, third = occurrences()
    assert {each.recurring_event_id for each in (first, second, third)} == {first.recurring_event_id}
    assert [each.original_start for each in (first, second, third)] == [
        NINE,
        NINE + 24 * HOUR,
        NINE + 48 * HOUR,
    ]
    later = Changes(start=Moment(second.start + HOUR), end=Moment(second.end + HOUR))
    moved = writable.adapter.update_event(account, PRIMARY, second.id, later, deadline=deadline())
    assert (moved.start, moved.original_start) == (second.start + HOUR, second.start)
    assert occurrences()[1].original_start == second.start
    series = writable.adapter.event(account, PRIMARY, first.recurring_event_id, deadline=deadline())
    assert (series.original_start, series.recurring_event_id, series.is_series) == (None, None, True)


def test_an_occurrence_of_days_has_the_midnight_that_its_series_gives(writable):
    entry = Entry(date(2026, 12, 3), date(2026, 12, 4), rule="FREQ=WEEKLY;COUNT=2")
    zone = "America/New_York"
    account = writable.account([entry], time_zone=zone)
    found = writable.adapter.events(account, [PRIMARY], START, START + 240 * HOUR, deadline=deadline())[
        PRIMARY
    ]

    assert not isinstance(found, Failed)
    midnights = [moment(datetime(2026, 12, day, tzinfo=ZoneInfo(zone))) for day in (3, 10)]
    assert [each.original_start for each in found] == [each.start for each in found] == midnights


# Responses

INVITED = replace(MEETING, invited=True)
ANSWERS = (ResponseStatus.ACCEPTED, ResponseStatus.TENTATIVE, ResponseStatus.DECLINED)


@pytest.mark.parametrize("status", ANSWERS)
def test_a_response_is_written_and_counts_for_busy_time(writable, status):
    account = replace(writable.account([INVITED]), email="ada@example.com")
    (invitation,) = writable.adapter.events(account, [PRIMARY], START, END, deadline=deadline())[PRIMARY]
    response = Response(status, "Sorry; maybe, next time", notify=False)

    answered = writable.adapter.respond_to_event(
        account, PRIMARY, invitation.id, response, deadline=deadline()
    )

    assert [each.response_status for each in answered.attendees if each.is_self] == [status]
    assert answered.id == invitation.id
    assert busy(writable, account) == ([] if status is ResponseStatus.DECLINED else [(NINE, TEN)])


def test_a_response_without_an_invitation_is_refused(writable):
    account = replace(writable.account(), email="ada@example.com")
    made = written(writable, account, TIMED)

    with pytest.raises(EventRefused):
        writable.adapter.respond_to_event(
            account, PRIMARY, made.id, Response(ResponseStatus.ACCEPTED), deadline=deadline()
        )
    with pytest.raises(EventNotFound):
        writable.adapter.respond_to_event(
            account, PRIMARY, f"{made.id}x", Response(ResponseStatus.ACCEPTED), deadline=deadline()
        )


def test_what_a_provider_cannot_store_is_refused(world):
    fields = fields_of(world)
    wrong = [
        *(Changes(show_as=each) for each in ShowAs if each not in fields.show_as),
        *(Changes(visibility=each) for each in Visibility if each not in fields.visibility),
        Changes(reminders=Reminders(tuple(range(fields.reminders + 1)))),
        *(
            Changes(attendees=(Guest(ROOM, optional=True, resource=True),))
            for _ in range(not fields.optional_resources)
        ),
    ]
    for changes in wrong:
        with pytest.raises(FieldRefused) as raised:
            fields.fit(changes, world.name, new=True)
        assert raised.value.field in ("showAs", "visibility", "reminders", "attendees")


# Cache tags


@dataclass(frozen=True)
class Connection:
    """A connection as the cache knows it."""

    provider: str
    email: str | None
    account_id: str | None
    main_calendar_id: str | None
    mailbox: str | None


def test_a_write_through_one_connection_invalidates_another_of_the_account(world):
    account = world.account()
    main = world.adapter.main_calendar(account, deadline=deadline())
    mailbox = main.address.lower() or None
    # Two users have connected the account; clients gave other addresses for it.
    one, other = (
        Connection(world.name, email, "account", main.id, mailbox)
        for email in ("ada@example.com", "a.lovelace@example.com")
    )

    for calendar in (PRIMARY, main.id):
        carried = cache_tags.read_tags(other, calendar)
        written = cache_tags.write_tags(one, PRIMARY)
        tags = {*carried.mailboxes, *carried.calendars}
        assert tags & {*written.mailboxes, *written.calendars}
