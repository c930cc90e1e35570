"""Cache tags: two connections share one if they read the same calendar, and only then."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from redis import Redis

from scheduling.intervals import Intervals
from store.cache.busy_cache import BusyCache, BusyRead, CalendarKey
from store.cache.cache_tags import Tags, booked_names, change_tags, owner_of, read_tags, write_tags
from store.cache.fast_redis import FastRedis

BUCKET = 1_000


@dataclass
class Connection:
    """A connection, as far as its tags depend on it."""

    provider: str
    email: str | None = None
    account_id: str | None = None
    main_calendar_id: str | None = None
    mailbox: str | None = None


def google(address: str | None, **known: str) -> Connection:
    return Connection("google", main_calendar_id=address, mailbox=address and address.lower(), **known)


def graph(address: str, main: str = "AAMk-main") -> Connection:
    return Connection("microsoft", main_calendar_id=main, mailbox=address)


def dav(host: str, user: str = "ada", address: str = "ada@example.com") -> Connection:
    return Connection(
        "caldav", address, f"https://{host}/principals/{user}/", main_calendar_id="L2NhbC8", mailbox=address
    )


def reaches(changed: Tags, cached: Tags) -> bool:
    shared = set(changed.mailboxes) & set(cached.mailboxes), set(changed.calendars) & set(cached.calendars)
    return any(shared)


ADA, BOB = google("ada@example.com"), google("bob@example.com")
ADA_365, BOB_365 = graph("ada@contoso.example"), graph("bob@contoso.example", "AAMk-bob")
HOME, WORK = dav("home.example"), dav("work.example")
UNLISTED = Connection("google", email="Ada@Example.com")


@pytest.mark.parametrize(
    ("writer", "written", "reader", "read"),
    [
        (ADA, ("primary",), google("Ada@example.com", email="else@example.com"), ("primary",)),
        (ADA, ("primary",), ADA, ("ADA@example.com",)),
        (ADA, ("team@group.calendar.google.com",), ADA, ("primary",)),
        (ADA, ("primary",), BOB, ("ada@example.com",)),
        (BOB, ("ada@example.com",), ADA, ("primary",)),
        (ADA, ("primary",), UNLISTED, ("primary",)),
        (UNLISTED, ("primary",), ADA, ("primary",)),
        (Connection("google", account_id="7"), ("primary",), google(None, account_id="7"), ("primary",)),
        (ADA_365, ("primary",), graph("ada@contoso.example"), ("AAMk-main",)),
        (ADA_365, ("primary",), graph("renamed@contoso.example"), ("primary",)),
        (ADA_365, ("primary",), BOB_365, ("AAMk-shared", "ada@contoso.example")),
        (BOB_365, ("AAMk-shared", "ada@contoso.example"), ADA_365, ("primary",)),
        (HOME, ("L3gv",), dav("home.example", "bob", "bob@example.com"), ("L3gv",)),
        (
            BOB_365,
            ("AAMk-x", "ada@contoso.example"),
            graph("eve@contoso.example"),
            ("AAMk-y", "ada@contoso.example"),
        ),
    ],
)
def test_write_tags_match_reads_of_the_same_calendar(writer, written, reader, read):
    assert reaches(write_tags(writer, *written), read_tags(reader, *read))


@pytest.mark.parametrize(
    ("writer", "written", "reader", "read"),
    [
        (ADA, ("primary",), BOB, ("primary",)),
        (ADA, ("primary",), BOB, ("team@group.calendar.google.com",)),
        (ADA_365, ("primary",), BOB_365, ("primary",)),
        (ADA_365, ("primary",), BOB_365, ("AAMk-shared", "eve@contoso.example")),
        (Connection("google"), ("primary",), Connection("google"), ("primary",)),
        (google("ada@example.com"), ("primary",), graph("ada@example.com"), ("primary",)),
        # Two servers that know one address and have one path.
        (HOME, ("primary",), WORK, ("primary",)),
        (HOME, ("L3gv",), WORK, ("L3gv",)),
    ],
)
def test_write_tags_do_not_match_other_reads(writer, written, reader, read):
    assert not reaches(write_tags(writer, *written), read_tags(reader, *read))


def test_notification_tags_match_one_calendar_and_its_shares():
    assert reaches(change_tags(ADA, "primary"), read_tags(BOB, "ada@example.com"))
    assert not reaches(change_tags(ADA, "primary"), read_tags(ADA, "team@group.calendar.google.com"))
    assert reaches(change_tags(ADA_365, "primary"), read_tags(BOB_365, "AAMk-shared", "ada@contoso.example"))
    assert not reaches(change_tags(ADA_365, "primary"), read_tags(ADA_365, "AAMk-team"))
    assert reaches(change_tags(BOB_365, "AAMk-shared", "ada@contoso.example"), read_tags(ADA_365, "primary"))


def test_a_calendar_of_the_own_mailbox_has_no_other_owner():
    assert owner_of(ADA_365, "Ada@Contoso.example") == ""
    assert owner_of(ADA_365, "Bob@contoso.example") == "bob@contoso.example"
    assert owner_of(ADA, "bob@example.com") == ""


@pytest.fixture
def cache(stores) -> BusyCache:
    redis: Redis = stores.redis
    redis.flushall()
    return BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=BUCKET)


def read(cache: BusyCache, redis: Redis, key: CalendarKey, tags: Tags, *, before_store=lambda: None) -> None:
    """A read as a worker makes it: note, enter, ask the provider, store."""
    noted = cache.begin_reads([key.connection], {})[key.connection]
    cache.register_readers({key: tags})
    before_store()
    with redis.pipeline(transaction=False) as pipe:
        cache.store(pipe, [BusyRead(key, Intervals.of([(1, 2)]), 0, BUCKET, read_at=1, generation=noted)])
        pipe.execute()


def is_cached(cache: BusyCache, key: CalendarKey) -> bool:
    return not cache.load([key], 0, BUCKET).missing


MAIN, TEAM = CalendarKey("c1", "primary"), CalendarKey("c1", "team")
OTHER = CalendarKey("c2", "primary")


def test_invalidated_mailbox_drops_calendars_of_its_connections(cache, stores):
    for key, calendar in ((MAIN, "x"), (TEAM, "y"), (OTHER, "x")):
        read(cache, stores.redis, key, Tags(("mailbox",), (calendar,)))
    stranger = CalendarKey("c3", "primary")
    read(cache, stores.redis, stranger, Tags(("another",), ("z",)))

    cache.invalidate_tags(Tags(("mailbox",)))

    assert [is_cached(cache, key) for key in (MAIN, TEAM, OTHER, stranger)] == [False, False, False, True]


def test_an_invalidated_calendar_leaves_the_others_of_its_connections(cache, stores):
    for key, calendar in ((MAIN, "x"), (TEAM, "y"), (OTHER, "x")):
        read(cache, stores.redis, key, Tags(("mailbox",), (calendar,)))

    cache.invalidate_tags(Tags((), ("x",)))

    assert [is_cached(cache, key) for key in (MAIN, TEAM, OTHER)] == [False, True, False]


@pytest.mark.parametrize("tags", [Tags(("mailbox",)), Tags((), ("x",))])
def test_a_read_that_entered_before_an_invalidation_is_not_cached(tags, cache, stores):
    read(
        cache,
        stores.redis,
        MAIN,
        Tags(("mailbox",), ("x",)),
        before_store=lambda: cache.invalidate_tags(tags),
    )
    assert not is_cached(cache, MAIN)

    read(cache, stores.redis, MAIN, Tags(("mailbox",), ("x",)))
    assert is_cached(cache, MAIN)


def test_the_sets_of_readers_outlive_what_they_guard(cache, stores):
    read(cache, stores.redis, MAIN, Tags(("mailbox",), ("x",)))
    lives = {name: stores.redis.ttl(name) for name in stores.redis.scan_iter("busy*")}
    readers = [seconds for name, seconds in lives.items() if name.startswith(b"busy-readers:")]
    assert len(readers) == 2
    assert min(readers) > max(seconds for name, seconds in lives.items() if name.startswith(b"busy:"))


ADA = google("Ada@example.com", account_id="7")
CONTOSO = Connection("microsoft", mailbox="ada@contoso.example", account_id="8", main_calendar_id="AAMk")


@pytest.mark.parametrize(
    ("of", "calendar", "owner", "names"),
    [
        (ADA, "primary", "", ("google:calendar:ada@example.com", "google:account:7")),
        (ADA, "ADA@example.com", "", ("google:calendar:ada@example.com", "google:account:7")),
        # Another calendar is booked without the account, so that the main one stays free.
        (ADA, "Team@example.com", "", ("google:calendar:team@example.com",)),
        (google(None), "primary", "", ()),
        # The id of a calendar differs between mailboxes, so the whole mailbox is booked.
        (CONTOSO, "primary", "", ("microsoft:mailbox:ada@contoso.example", "microsoft:account:8")),
        (CONTOSO, "side", "", ("microsoft:mailbox:ada@contoso.example", "microsoft:account:8")),
        (CONTOSO, "shared", "bob@contoso.example", ("microsoft:mailbox:bob@contoso.example",)),
    ],
)
def test_what_a_booking_of_a_calendar_takes(of, calendar, owner, names):
    assert booked_names(of, calendar, owner) == names
