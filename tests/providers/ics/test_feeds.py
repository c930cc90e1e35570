"""Feeds over a real socket: conditional requests, redirects, bounds, refusals, and never free by mistake."""

from __future__ import annotations

import gzip
import resource
import threading

import pytest

from providers.base import PRIMARY, Failed, Read
from providers.errors import (
    AddressNotPublic,
    AnswerTooLarge,
    AuthorizationInvalid,
    EventNotFound,
    FieldRefused,
    NotFound,
    ProviderError,
    RateLimited,
    Reason,
    Unavailable,
)
from providers.http import transport
from providers.http.calls import Reach
from providers.http.ssrf_guard import ForbiddenUrl
from providers.ical.bounds import InvalidCalendar, Limits
from providers.ics import address, feeds
from providers.ics.client import SubscribedCalendars
from providers.ics.definition import DEFINITION
from providers.ics.feeds import Feeds, FeedSettings
from providers.ics.form import FeedForm
from providers.ics.scopes import SCOPES
from providers.scopes import Operation
from tests.providers.ical.texts import at, calendar, event
from tests.providers.ics.server import account, soon

RANGE = (at("2026-03-01"), at("2026-04-01"))
LINES = "DTSTART:20260302T090000Z\nDTEND:20260302T100000Z\nSUMMARY:Tea\nX-ALMANAC-META-ID:m-1"
CONTENT = calendar(event(LINES), head="X-WR-CALNAME:Family\nX-WR-TIMEZONE:Europe/Berlin")
NINE = (at("2026-03-02 09:00"), at("2026-03-02 10:00"))


def busy(adapter, url, **given):
    """The busy periods of a feed."""
    found = adapter.busy(account(url, **given), [PRIMARY], *RANGE, deadline=soon())[PRIMARY]
    assert isinstance(found, Read), found
    return found.busy.pairs()


def test_a_feed_is_one_calendar(adapter, server):
    url = server.put(CONTENT)
    (found,) = adapter.calendars(account(url), deadline=soon())

    assert (found.subject, found.time_zone, found.access_role, found.primary) == (
        "Family",
        "Europe/Berlin",
        "reader",
        True,
    )
    main = adapter.main_calendar(account(url), deadline=soon())
    assert (main.id, main.address, main.time_zone) == (found.id, "", "Europe/Berlin")
    assert busy(adapter, url) == [NINE]
    (shown,) = adapter.events(account(url), [found.id], *RANGE, deadline=soon())[found.id]
    assert (shown.subject, shown.provider, shown.calendar_id) == ("Tea", "ics", found.id)
    assert adapter.event(account(url), PRIMARY, "one", deadline=soon()).subject == "Tea"
    assert adapter.find_event(account(url), PRIMARY, "m-1", deadline=soon()).id == "one"
    without = adapter.busy_without(account(url), PRIMARY, "one", *RANGE, deadline=soon())
    assert without.busy.pairs() == []


def test_the_address_is_in_no_id_and_no_error(adapter, server):
    url = server.put(CONTENT, "/private-4711/basic.ics")

    main = adapter.main_calendar(account(url), deadline=soon())
    server.feeds.clear()
    with pytest.raises(NotFound) as raised:
        adapter.calendars(account(f"{url}?other"), deadline=soon())

    assert "4711" not in f"{main} {raised.value} {raised.value!r} {raised.value.__cause__}"


def test_an_unchanged_feed_costs_one_conditional_request_in_five_minutes(adapter, server, clock):
    url = server.put(CONTENT)
    for seconds in (0, 100, 199):
        clock.now = 1000 + seconds
        assert busy(adapter, url) == [NINE]
    assert len(server.asked) == 1
    assert "If-None-Match" not in server.asked[0].headers
    kept = adapter.busy(account(url), [PRIMARY], *RANGE, deadline=soon())[PRIMARY]
    without = adapter.busy_without(account(url), PRIMARY, "two", *RANGE, deadline=soon())
    assert (kept.age, without.age) == (199, 199)

    clock.now = 1301
    for _ in range(3):
        assert busy(adapter, url) == [NINE]
    assert len(server.asked) == 2
    assert server.asked[1].headers["If-None-Match"]


def test_a_feed_that_changes_between_two_requests(adapter, server, clock):
    url = server.put(CONTENT)
    assert busy(adapter, url) == [NINE]

    server.put(calendar(event("DTSTART:20260305T090000Z\nDURATION:PT1H")))
    clock.now += 301

    assert busy(adapter, url) == [(at("2026-03-05 09:00"), at("2026-03-05 10:00"))]


@pytest.mark.parametrize("header", ["ETag", "Last-Modified"])
def test_either_validator_is_sent_back(adapter, server, clock, header):
    url = server.put(CONTENT)
    value = {"ETag": 'W/"1"', "Last-Modified": "Mon, 02 Mar 2026 09:00:00 GMT"}[header]
    server.replies += [(200, CONTENT, {header: value}), (304, b"", {})]
    assert busy(adapter, url) == [NINE]
    clock.now += 301

    assert busy(adapter, url) == [NINE]
    name = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}[header]
    assert server.asked[1].headers[name] == value


def test_a_feed_without_validators_is_read_again(adapter, server, clock):
    server.has_validators = False
    url = server.put(CONTENT)
    for _ in range(2):
        assert busy(adapter, url) == [NINE]
        clock.now += 301

    assert len(server.asked) == 2


def test_two_users_with_one_feed_share_it(adapter, server):
    url = server.put(CONTENT)
    assert busy(adapter, url) == busy(adapter, url, request_id="of another") == [NINE]

    assert len(server.asked) == 1


def test_concurrent_requests_read_a_feed_once(adapter, server):
    url = server.put(CONTENT)
    found = []
    threads = [threading.Thread(target=lambda: found.append(busy(adapter, url))) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert found == [[NINE]] * 8
    assert len(server.asked) == 1


def test_ranges_are_clipped_and_remembered_ones_are_right(adapter, server):
    rule = "DTSTART:20260101T090000Z\nDURATION:PT30M\nRRULE:FREQ=DAILY"
    url = server.put(calendar(event(rule)))
    hour = 3_600_000
    for start in (at("2026-03-01"), at("2026-03-02 09:10"), at("2026-03-02 09:30"), at("2027-01-05")):
        for length in (0, hour // 6, hour, 30 * 24 * hour):
            found = adapter.busy(account(url), [PRIMARY], start, start + length, deadline=soon())[PRIMARY]
            first = at("2026-01-01 09:00")
            expected = []
            for day in range(500):
                begin = max(start, first + day * 24 * hour)
                end = min(start + length, first + day * 24 * hour + hour // 2)
                if begin < end:
                    expected.append((begin, end))
            assert found.busy.pairs() == expected


def test_a_broken_event_fails_only_ranges_that_it_may_lie_in(adapter, server):
    broken = event("DTSTART:20260320T090000Z\nRRULE:FREQ=FORTNIGHTLY", "two")
    url = server.put(calendar(event(LINES), broken))

    early = adapter.busy(account(url), [PRIMARY], RANGE[0], at("2026-03-20"), deadline=soon())[PRIMARY]
    late = adapter.busy(account(url), [PRIMARY], *RANGE, deadline=soon())[PRIMARY]

    assert early.busy.pairs() == [NINE]
    assert isinstance(late, Failed)
    assert (late.reason, late.operation) == (Reason.PROVIDER_ERROR, Operation.FREE_BUSY)


def test_compressed_feeds(adapter, server):
    server.zipped = True

    assert busy(adapter, server.put(CONTENT)) == [NINE]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((401, b"", {}), AuthorizationInvalid),
        ((403, b"no", {}), ProviderError),
        ((404, b"", {}), NotFound),
        ((410, b"", {}), NotFound),
        ((429, b"", {"Retry-After": "60"}), RateLimited),
        ((500, b"", {}), Unavailable),
        ((503, b"", {"Retry-After": "60"}), Unavailable),
        ((304, b"", {}), Unavailable),
        ((204, b"", {}), Unavailable),
        ((206, CONTENT, {}), Unavailable),
        ((200, b"", {}), InvalidCalendar),
        ((200, b"<!DOCTYPE html><title>Sign in</title>", {"Content-Type": "text/html"}), InvalidCalendar),
        ((200, CONTENT[:-30], {}), InvalidCalendar),
        ((302, b"", {}), ProviderError),
    ],
)
def test_what_a_server_answers_instead_of_a_feed(adapter, server, reply, error):
    url = server.put(CONTENT)
    server.always = reply
    for read in (adapter.calendars, adapter.main_calendar):
        with pytest.raises(error) as raised:
            read(account(url), deadline=soon(3))
        assert raised.value.operation == Operation.LIST_CALENDARS
    with pytest.raises(error) as raised:
        busy(adapter, url)
    if "Retry-After" in reply[2]:
        assert isinstance(raised.value, Unavailable)
        assert raised.value.retry_after == 60


def test_a_feed_that_was_read_once_is_not_free_when_it_fails_later(adapter, server, clock):
    url = server.put(CONTENT)
    assert busy(adapter, url) == [NINE]
    clock.now += 301
    server.always = (200, b"<html>maintenance</html>", {})
    with pytest.raises(InvalidCalendar):
        busy(adapter, url)
    server.always = None

    assert busy(adapter, url) == [NINE]


def test_a_body_that_ends_too_early(adapter, server):
    url = server.put(CONTENT)
    server.always = (200, CONTENT, {"Content-Length": str(len(CONTENT) + 10)})
    with pytest.raises(Unavailable):
        adapter.calendars(account(url), deadline=soon(2))


def test_redirects_are_followed(adapter, server):
    url = server.put(CONTENT, "/there.ics")
    server.replies += [(301, b"", {"Location": "/here.ics"}), (307, b"", {"Location": url})]

    assert busy(adapter, f"{server.url}/moved.ics") == [NINE]
    assert [each.path for each in server.asked] == ["/moved.ics", "/here.ics", "/there.ics"]


def test_redirects_without_an_end(adapter, server):
    server.always = (302, b"", {"Location": "/round"})
    with pytest.raises(ProviderError, match="without an end"):
        busy(adapter, f"{server.url}/round")

    assert len(server.asked) < 10


def test_no_private_address_is_called(server):
    url = server.put(CONTENT)
    guarded = SubscribedCalendars(Feeds(FeedSettings()))
    for each in (
        url.replace("http:", "https:"),
        "https://127.0.0.1/",
        "https://[::1]:1/a",
        "https://10.0.0.1",
    ):
        with pytest.raises(AddressNotPublic):
            guarded.calendars(account(each), deadline=soon(3))

    assert server.asked == []


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:1/", "https://user:secret@example.com/", "file:///etc"]
)
def test_a_redirect_to_where_feeds_are_not_called(monkeypatch, server, location):
    """A feed at an address that may be called redirects to one that may not."""
    monkeypatch.setattr(feeds, "fetch", _public_first(feeds.fetch, server, location))
    guarded = SubscribedCalendars(Feeds(FeedSettings()))
    with pytest.raises(AddressNotPublic):
        guarded.calendars(account("https://feeds.example.com/a.ics"), deadline=soon(3))

    assert len(server.asked) == 1


def _public_first(fetch, server, location):
    """Read the first address from the test's server, as if it were public."""
    real = transport.exchange

    def exchange(method, url, *args, reach, **given):
        if url == "https://feeds.example.com/a.ics":
            server.replies.append((302, b"", {"Location": location}))
            return real(method, server.url, *args, reach=Reach.ANY, **given)
        return real(method, url, *args, reach=reach, **given)

    def wrapped(*args, **given):
        transport.exchange = exchange
        try:
            return fetch(*args, **given)
        finally:
            transport.exchange = real

    return wrapped


def test_a_feed_of_the_most_bytes_and_of_one_more(server):
    adapter = SubscribedCalendars(Feeds(FeedSettings(0, Limits(size=10_000), allow_private=True)))
    room = 10_000 - len(calendar(head="X-A:"))

    assert adapter.calendars(account(server.put(calendar(head=f"X-A:{'a' * room}"))), deadline=soon())
    url = server.put(calendar(head=f"X-A:{'a' * (room + 1)}"))
    with pytest.raises(AnswerTooLarge):
        adapter.calendars(account(url), deadline=soon())


def test_ten_mebibytes_and_a_byte(adapter, server):
    server.zipped = True
    room = 10 * 1024 * 1024 - len(calendar(head="X-A:"))
    assert adapter.calendars(account(server.put(calendar(head=f"X-A:{'a' * room}"), "/a")), deadline=soon())
    with pytest.raises(AnswerTooLarge):
        adapter.calendars(
            account(server.put(calendar(head=f"X-A:{'a' * (room + 1)}"), "/b")), deadline=soon()
        )


def test_a_small_body_that_unpacks_to_a_large_one(adapter, server):
    bomb = gzip.compress(b"\x00" * 200 * 1024 * 1024, 1)
    url = server.put(CONTENT)
    server.always = (200, bomb, {"Content-Encoding": "gzip"})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(AnswerTooLarge):
        adapter.calendars(account(url), deadline=soon())

    # Kibibytes.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_a_feed_of_too_many_components(adapter, server):
    parts = ["BEGIN:VTODO\nEND:VTODO"] * 50_001
    with pytest.raises(InvalidCalendar, match="more than 50,000 components"):
        busy(adapter, server.put(calendar(*parts)))


@pytest.mark.parametrize(
    "operation", [Operation.INSERT_EVENT, Operation.UPDATE_EVENT, Operation.DELETE_EVENT]
)
def test_a_feed_cannot_be_changed(operation):
    own = {each.name: each.default for each in DEFINITION.settings}
    assert DEFINITION.bind(own).writes is None
    assert str(SCOPES.insufficient(operation)).startswith("A subscribed calendar cannot be changed")


def test_other_calendars_and_events_do_not_exist(adapter, server):
    mine = account(server.put(CONTENT))

    found = adapter.busy(mine, [PRIMARY, "other"], *RANGE, deadline=soon())
    assert isinstance(found["other"], Failed)
    assert found["other"].reason is Reason.NOT_FOUND
    assert isinstance(adapter.events(mine, ["other"], *RANGE, deadline=soon())["other"], Failed)
    with pytest.raises(NotFound):
        adapter.event(mine, "other", "one", deadline=soon())
    with pytest.raises(EventNotFound):
        adapter.event(mine, PRIMARY, "two", deadline=soon())
    with pytest.raises(EventNotFound):
        adapter.find_event(mine, PRIMARY, "M-1", deadline=soon())


class Reports:
    """The calls that a reporter has recorded."""

    def __init__(self):
        self.told = []

    def answered(self):
        self.told.append("answered")

    def failed(self, error, pause, *, given_up):
        self.told.append(type(error).__name__)
        return pause


def test_failures_are_reported_once_for_each_attempt(adapter, server):
    url = server.put(CONTENT)
    server.replies += [(503, b"", {})]
    reports = Reports()

    assert busy(adapter, url, reporter=reports) == [NINE]
    assert reports.told == ["Unavailable", "answered"]


def test_the_memory_of_feeds_is_bounded(adapter, server, monkeypatch):
    monkeypatch.setattr(feeds, "KEPT_BYTES", 3 * len(CONTENT))
    for number in range(10):
        assert busy(adapter, server.put(CONTENT, f"/{number}")) == [NINE]
    busy(adapter, f"{server.url}/9")
    assert len(server.asked) == 10
    busy(adapter, f"{server.url}/0")
    assert len(server.asked) == 11


# The form


def opened(server, url):
    return FeedForm(Feeds(FeedSettings(allow_private=True)), allow_private=True).open(
        {"url": url}, {}, deadline=soon(5)
    )


def test_the_form_opens_a_feed(server):
    url = server.put(CONTENT)
    found = opened(server, f"  {url}#fragment ")

    assert found.account_id == address.hashed(url)
    assert (found.email, found.scope, found.credentials.reveal) == (None, ("read",), url)
    assert found.main is not None
    assert found.main.time_zone == "Europe/Berlin"
    assert url not in repr(found)


@pytest.mark.parametrize(
    ("entered", "meant"),
    [
        ("webcal://example.com/a.ics", "https://example.com/a.ics"),
        ("WebCal://example.com/a.ics?k=1", "https://example.com/a.ics?k=1"),
        ("webcals://example.com/a.ics", "https://example.com/a.ics"),
        ("https://example.com/a.ics#top", "https://example.com/a.ics"),
    ],
)
def test_addresses_of_feeds(entered, meant):
    assert address.of_feed(entered, allow_private=False) == meant


@pytest.mark.parametrize(
    "entered",
    [
        "",
        "family calendar",
        "http://example.com/a.ics",
        "ftp://example.com/a",
        "https://ada:pw@example.com/a",
    ],
)
def test_addresses_that_are_not_called(entered):
    with pytest.raises(ForbiddenUrl):
        address.of_feed(entered, allow_private=False)
    with pytest.raises(FieldRefused) as raised:
        FeedForm(Feeds(FeedSettings()), allow_private=False).open({"url": entered}, {}, deadline=soon())
    assert raised.value.field == "url"


@pytest.mark.parametrize(
    "reply",
    [
        (200, b"<html>Sign in</html>", {}),
        (200, b"BEGIN:VEVENT\r\nEND:VEVENT\r\n", {}),
        (404, b"", {}),
        (410, b"", {}),
    ],
)
def test_the_form_refuses_what_is_no_feed(server, reply):
    server.always = reply
    with pytest.raises(FieldRefused) as raised:
        opened(server, f"{server.url}/a.ics")
    assert raised.value.field == "url"
    assert raised.value.message.startswith("leads to no calendar")


def test_the_form_refuses_a_host_that_was_not_found(server):
    with pytest.raises(FieldRefused, match="names a host that was not found"):
        opened(server, "https://almanac-tests.invalid/a.ics")


def test_the_form_refuses_private_addresses():
    form = FeedForm(Feeds(FeedSettings()), allow_private=False)
    with pytest.raises(FieldRefused, match="private or loopback"):
        form.open({"url": "https://127.0.0.1/a.ics"}, {}, deadline=soon())


def test_other_failures_of_the_form_are_errors(server):
    server.always = (401, b"", {})
    with pytest.raises(AuthorizationInvalid):
        opened(server, f"{server.url}/a.ics")
    server.always = (503, b"", {"Retry-After": "60"})
    with pytest.raises(Unavailable):
        opened(server, f"{server.url}/a.ics")


def test_settings_reach_the_adapter(server):
    own = {each.name: each.default for each in DEFINITION.settings}
    bound = DEFINITION.bind(own | {"allow_private": True, "max_components": 1})
    assert bound.form is not None
    with pytest.raises(FieldRefused, match="more than 1 components"):
        bound.form.open({"url": server.put(calendar(event(LINES), event(LINES)))}, {}, deadline=soon())
    assert busy(bound.calendars, server.put(CONTENT)) == [NINE]
