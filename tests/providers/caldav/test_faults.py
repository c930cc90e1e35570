"""Answers of servers that are broken, slow or hostile: nothing of them is free."""

from __future__ import annotations

import gzip
import resource
from dataclasses import replace
from random import Random

import pytest

from providers.base import PRIMARY, Failed, Read
from providers.caldav.client import CalDav
from providers.caldav.identifiers import calendar_id
from providers.caldav.server import MAX_BYTES
from providers.errors import (
    EventExists,
    EventUnreadable,
    OutcomeUnknown,
    ProviderError,
    RateLimited,
    Reason,
    TokenRejected,
    Unavailable,
)
from tests.providers.caldav.conftest import account_of, opened, soon
from tests.providers.caldav.scripted import (
    CALENDAR,
    HEAD,
    KIND,
    TAIL,
    event,
    multistatus,
    response,
    stored,
)
from tests.providers.caldav.test_servers import DAY_30, REVIEW, at, draft

ADAPTER = CalDav(allow_private=True)
REJECTED = (401, b"", {"WWW-Authenticate": 'Basic realm="x"'})


@pytest.fixture
def account(script):
    return account_of(opened(script.url, "ada", "secret"))


def outcome(account):
    """The outcome of the main calendar; an error of the whole account counts as its failure."""
    try:
        return ADAPTER.busy(account, [PRIMARY], *DAY_30, deadline=soon())[PRIMARY]
    except ProviderError as error:
        return Failed.from_error(error)


def test_an_event_is_busy(script, account):
    assert outcome(account).busy.starts.tolist() == [at(9)]


FAILED_PARTS = [
    "<d:response><d:href>/home/work/two.ics</d:href><d:status>HTTP/1.1 404 Not Found</d:status></d:response>",
    "<d:response><d:href>/home/work/</d:href><d:status>HTTP/1.1 507 Insufficient</d:status></d:response>",
    response("/home/work/two.ics", "<c:calendar-data/>", "403 Forbidden"),
    response("/home/work/two.ics", "<c:calendar-data/>", "500 Error"),
    response("/home/work/two.ics", "<d:getetag>1</d:getetag>"),
    response("/home/work/two.ics", "<c:calendar-data></c:calendar-data>"),
    response("/home/work/two.ics", "<c:calendar-data>BEGIN:VCALENDAR</c:calendar-data>"),
    response("/home/work/two.ics", "<c:calendar-data>nonsense</c:calendar-data>"),
    stored("BEGIN:VCALENDAR\nEND:VCALENDAR", "two"),
    stored(event("two").replace("BEGIN:VEVENT", "BEGIN:VEVEMT"), "two"),
    stored(event("two").replace("DTSTART", "DTSTRAT"), "two"),
    stored(event("two", "20261130T120000Z", "20261130T130000Z", "RRULE:FREQ=SOMETIMES"), "two"),
    "<d:response/>",
    stored(event("two"), "two").replace("</d:response>", "")
    + stored(event("three"), "three").replace("<d:response>", ""),
    response("/home/work/two.ics", f"<c:calendar-data>{event('two')}</c:calendar-data>" * 2),
    "<d:response><d:href>/home/work/two.ics</d:href></d:response>",
    "<d:response><d:href>/home/work/two.ics</d:href><d:status>OK</d:status></d:response>",
]


@pytest.mark.parametrize("part", FAILED_PARTS)
def test_one_failed_part_fails_the_calendar(script, account, part):
    script.say("REPORT", CALENDAR, multistatus(stored(event("one")), part))
    assert isinstance(outcome(account), Failed)


def test_an_object_at_another_host_is_not_read(script, account):
    text = f"<d:getetag>1</d:getetag><c:calendar-data>{event('two')}</c:calendar-data>"
    script.say("REPORT", CALENDAR, multistatus(response("https://other.test/two.ics", text)))
    assert isinstance(outcome(account), Failed)


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<!doctype html><title>Sign in</title>", {"Content-Type": "text/html"}),
        (200, b"", {}),
        (207, b"", {}),
        (207, b"{}", {}),
        (204, b"", {}),
        (207, HEAD.encode(), {}),
        (302, b"", {"Location": "/login"}),
        (302, b"", {"Location": "http://[/"}),
        (302, b"", {}),
        (404, b"", {}),
        (403, b"no", {}),
        (500, b"", {}),
        (503, b"", {"Retry-After": "30"}),
        (207, b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]>" + (HEAD[21:] + TAIL).encode(), {}),
    ],
)
def test_an_answer_without_events_is_not_free(script, account, answer):
    script.say("REPORT", CALENDAR, answer)
    assert isinstance(outcome(account), Failed)


def test_no_events_are_free_only_in_a_calendar(script, account):
    script.say("REPORT", CALENDAR, multistatus())
    assert isinstance(outcome(account), Read)
    script.say("PROPFIND", CALENDAR, multistatus(response(CALENDAR, KIND.replace("<c:calendar/>", ""))))
    assert outcome(account).reason is Reason.NOT_FOUND


SHARED = "/home/shared/"
NO_KIND = "<d:resourcetype/><d:displayname/>"


def of_status(status):
    return f"<d:response><d:href>{SHARED}</d:href><d:status>HTTP/1.1 {status}</d:status></d:response>"


@pytest.mark.parametrize(
    ("part", "is_listed"),
    [
        (of_status("503 Service Unavailable"), True),
        (response(SHARED, NO_KIND, "500 Internal Server Error"), True),
        # Not the person's: there is no such calendar, or no access to it.
        (of_status("404 Not Found"), False),
        (of_status("403 Forbidden"), False),
        (response(SHARED, NO_KIND, "403 Forbidden"), False),
        (response(SHARED, NO_KIND, "404 Not Found"), False),
    ],
)
def test_a_collection_that_the_server_fails_to_describe_is_listed_and_fails_alone(
    script, account, part, is_listed
):
    script.say("PROPFIND", "/home/", multistatus(part, response(CALENDAR, KIND)))
    script.say("REPORT", SHARED, (503, b"", {}))

    listed = ADAPTER.calendars(account, deadline=soon())
    found = ADAPTER.busy(account, [each.id for each in listed], *DAY_30, deadline=soon())

    assert [(each.subject, each.primary) for each in listed] == [
        *([("shared", False)] if is_listed else []),
        ("work", True),
    ]
    assert {name for name, each in found.items() if isinstance(each, Failed)} == (
        {calendar_id(SHARED)} if is_listed else set()
    )


def test_a_collection_that_the_server_fails_to_describe_is_not_chosen_as_the_main_calendar(script):
    script.say("PROPFIND", "/home/", multistatus(of_status("503 Unavailable"), response(CALENDAR, KIND)))

    account = account_of(opened(script.url, "ada", "secret"))

    assert [each.primary for each in ADAPTER.calendars(account, deadline=soon())] == [False, True]


def test_a_throttle_says_when_to_come_back(script, account):
    script.say("REPORT", CALENDAR, (429, b"", {"Retry-After": "30"}))
    with pytest.raises(RateLimited) as raised:
        ADAPTER.busy(account, [PRIMARY], *DAY_30, deadline=soon())
    assert raised.value.retry_after == 30


def test_a_changed_password_ends_the_access(script, account):
    script.say("REPORT", CALENDAR, REJECTED)
    with pytest.raises(TokenRejected, match="connect the account again"):
        ADAPTER.busy(account, [PRIMARY], *DAY_30, deadline=soon())


@pytest.mark.parametrize("path", [CALENDAR, "/home/shared/"])
def test_a_rejected_password_is_not_sent_for_each_calendar(script, account, path):
    """A server may lock an account after a few attempts."""
    script.answers = {}
    paths = [path, *(f"/home/c{number}/" for number in range(5))]
    for each in [*paths, "/me/"]:
        script.say("REPORT", each, REJECTED)
        script.say("PROPFIND", each, REJECTED)
    script.requests.clear()

    with pytest.raises(TokenRejected, match="connect the account again"):
        ADAPTER.busy(account, [calendar_id(each) for each in paths], *DAY_30, deadline=soon())

    assert [path for _, path, _, _ in script.requests] == [path, "/me/"]


def test_a_calendar_that_wants_another_password_fails_alone(script, account):
    shared = [f"/home/shared{number}/" for number in range(3)]
    for each in shared:
        script.say("REPORT", each, REJECTED)
    names = [calendar_id(each) for each in [*shared, CALENDAR]]

    found = ADAPTER.busy(account, names, *DAY_30, deadline=soon())

    assert [each.reason for each in found.values() if isinstance(each, Failed)] == [Reason.ACCESS_DENIED] * 3
    assert isinstance(found[names[-1]], Read)


def test_a_password_that_was_stored_meanwhile_is_used(script, account):
    renewed = account.tokens.token
    account.tokens.token = replace(renewed, reveal=renewed.reveal.replace("secret", "old"))
    good = script.answers["REPORT", CALENDAR]

    def check(handler, _body):
        if "OnNlY3JldA" in handler.headers["Authorization"]:
            return good
        account.tokens.token = renewed
        return (401, b"", {})

    script.say("REPORT", CALENDAR, check)
    assert isinstance(outcome(account), Read)


@pytest.mark.parametrize("packed", [False, True])
def test_ten_mebibytes_and_a_byte_are_not_read(script, account, packed):
    _, good, _ = multistatus(stored(event("one")))
    for more, kind in ((0, Read), (1, Failed)):
        body = good + b" " * (MAX_BYTES - len(good) + more)
        headers = {"Content-Encoding": "gzip"} if packed else {}
        script.say("REPORT", CALENDAR, (207, gzip.compress(body, 1) if packed else body, headers))
        assert isinstance(outcome(account), kind)


def test_more_than_fifty_thousand_components_are_not_read(script, account):
    inner = event("one").partition("BEGIN:VEVENT")[2].partition("END:VEVENT")[0]
    for count, kind in ((50_000, Read), (50_001, Failed)):
        text = "BEGIN:VCALENDAR\n" + f"BEGIN:VEVENT{inner}END:VEVENT\n" * count + "END:VCALENDAR"
        short = text.replace("\r\n", "\n").replace("DTSTAMP:20261101T000000Z\n", "")
        assert len(short) < MAX_BYTES
        script.say("REPORT", CALENDAR, multistatus(stored(short)))
        found = outcome(account)
        assert isinstance(found, kind), found
    assert "50,000" in found.message


@pytest.mark.parametrize("rule", ["FREQ=SECONDLY", "FREQ=SECONDLY;INTERVAL=1;UNTIL=20360101T000000Z"])
def test_a_rule_of_every_second_is_not_free(script, account, rule):
    text = event("one", "20200101T000000Z", "20200101T000001Z", f"RRULE:{rule}")
    script.say("REPORT", CALENDAR, multistatus(stored(text)))
    found = outcome(account)
    assert isinstance(found, Failed) or found.busy.starts.tolist() == [DAY_30[0]]


def test_a_zone_of_nobody_blocks_its_time_wherever_it_is(script, account):
    text = event("one").replace("DTSTART:20261130T090000Z", "DTSTART;TZID=Nobody/Nowhere:20261130T090000")
    text = text.replace("DTEND:20261130T100000Z", "DTEND;TZID=Nobody/Nowhere:20261130T100000")
    script.say("REPORT", CALENDAR, multistatus(stored(text)))
    found = outcome(account)
    assert isinstance(found, Read)
    assert found.busy.starts.tolist()[0] <= at(9)
    assert found.busy.ends.tolist()[-1] >= at(10)


def test_own_refusals_are_free_and_those_of_others_are_not(script, account):
    declined = "ATTENDEE;PARTSTAT=DECLINED:mailto:{}@example.org"
    script.say(
        "REPORT",
        CALENDAR,
        multistatus(
            stored(event("one", "20261130T090000Z", "20261130T100000Z", declined.format("ADA"))),
            stored(event("two", "20261130T120000Z", "20261130T130000Z", declined.format("bob")), "two"),
        ),
    )
    assert outcome(account).busy.starts.tolist() == [at(12)]


ZONED = (
    "<c:calendar-timezone>BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nTZID:/citadel.org/Asia/Tokyo\nEND:VTIMEZONE\n"
    "END:VCALENDAR</c:calendar-timezone>"
)


@pytest.mark.parametrize("zone", [ZONED, "<c:calendar-timezone-id>Asia/Tokyo</c:calendar-timezone-id>"])
def test_days_and_floating_times_are_in_the_zone_of_the_calendar(script, account, zone):
    day = event("one").replace("DTSTART:20261130T090000Z", "DTSTART;VALUE=DATE:20261130")
    day = day.replace("DTEND:20261130T100000Z", "DTEND;VALUE=DATE:20261201")
    script.say("REPORT", CALENDAR, multistatus(stored(day)))
    script.say("PROPFIND", CALENDAR, multistatus(response(CALENDAR, zone)))
    found = ADAPTER.busy(account, [PRIMARY], at(0, day=28), at(0) + 3 * 86_400_000, deadline=soon())[PRIMARY]
    assert (found.busy.starts.tolist(), found.busy.ends.tolist()) == ([at(15, day=29)], [at(15)])
    floating = event("one", "20261130T090000", "20261130T100000")
    script.say("REPORT", CALENDAR, multistatus(stored(floating)))
    assert outcome(account).busy.starts.tolist() == [at(0)]


def test_floating_times_are_in_the_zone_of_the_person_if_the_calendar_has_none(script, account):
    script.say("REPORT", CALENDAR, multistatus(stored(event("one", "20261130T180000", "20261130T190000"))))
    assert outcome(account).busy.starts.tolist() == [at(18)]
    assert outcome(replace(account, time_zone="Asia/Tokyo")).busy.starts.tolist() == [at(9)]


def test_the_zone_is_asked_for_only_when_it_matters(script, account):
    before = script.count("PROPFIND", CALENDAR)
    outcome(account)
    assert script.count("PROPFIND", CALENDAR) == before


# Writes.


def created(account, content=REVIEW):
    return ADAPTER.create_event(account, PRIMARY, draft(content), deadline=soon())


def address(script):
    (path,) = {path for method, path, *_ in script.requests if method == "PUT"}
    return path


@pytest.fixture
def storing(script):
    """The scripted server keeps the object that is put, if ``If-None-Match`` and ``If-Match`` allow it."""
    kept: dict[str, str] = {}

    def put(handler, body):
        if handler.headers.get("If-None-Match") == "*" and kept:
            return (412, b"", {})
        kept["text"] = body.decode()
        return (201, b"", {})

    class Anything(dict):
        def get(self, key, default=None):
            return put if key[0] == "PUT" else super().get(key, default)

    script.answers = Anything(script.answers)
    script.say("REPORT", CALENDAR, lambda *_: multistatus(*(stored(each) for each in kept.values())))
    return kept


def test_a_create_whose_answer_is_lost_is_found(script, account, storing, monkeypatch):
    original = script.answers.get(("PUT", ""))

    def lost(handler, body):
        original(handler, body)
        return (500, b"", {})

    type(script.answers).get = lambda self, key, default=None: (
        lost if key[0] == "PUT" else dict.get(self, key, default)
    )
    found = created(account)
    assert found.made
    assert storing["text"].count("BEGIN:VEVENT") == 1


def test_a_create_without_an_answer_and_an_event_is_unclear(script, account):
    script.say("REPORT", CALENDAR, multistatus())

    class Failing(dict):
        def get(self, key, default=None):
            return (503, b"", {}) if key[0] == "PUT" else super().get(key, default)

    script.answers = Failing(script.answers)
    with pytest.raises(OutcomeUnknown):
        created(account)


def test_another_event_at_the_address_is_a_conflict(script, account, storing):
    created(account)
    other = replace(draft(), fingerprint="0" * 64)
    with pytest.raises(EventExists):
        ADAPTER.create_event(account, PRIMARY, other, deadline=soon())


def test_a_written_event_that_cannot_be_read_says_so(script, account, storing):
    script.say("REPORT", CALENDAR, (500, b"", {}))
    with pytest.raises(EventUnreadable):
        created(account)


def test_an_event_without_a_version_is_not_overwritten(script, account):
    text = f"<c:calendar-data>{event('one')}</c:calendar-data>"
    script.say("REPORT", CALENDAR, multistatus(response(f"{CALENDAR}one.ics", text)))
    with pytest.raises(Unavailable):
        ADAPTER.update_event(account, PRIMARY, "one", replace(REVIEW, subject="New"), deadline=soon())
    assert not [each for each in script.requests if each[0] == "PUT"]


# Mutations.

GOOD = multistatus(
    stored(event("one", "20261130T090000Z", "20261130T100000Z", "SUMMARY:A &amp; B")),
    stored(event("two", "20261130T120000Z", "20261130T130000Z", "RRULE:FREQ=DAILY;COUNT=3"), "two"),
)[1]
PIECES = [
    b"<",
    b">",
    b"&",
    b"&#0;",
    b"</d:response>",
    b"<d:response>",
    b"]]>",
    b"\x00",
    b"\xff",
    b"200",
    b"404",
]


def mutated(random: Random) -> bytes:
    """The answer with a few changes."""
    body = bytearray(GOOD)
    for _ in range(random.randint(1, 4)):
        at_byte = random.randrange(len(body))
        match random.randrange(5):
            case 0:
                del body[at_byte : at_byte + random.randint(1, 40)]
            case 1:
                body[at_byte] = random.randrange(256)
            case 2:
                body[at_byte:at_byte] = random.choice(PIECES)
            case 3:
                body[at_byte:at_byte] = body[at_byte : at_byte + random.randint(1, 400)]
            case _:
                del body[at_byte:]
        body = body or bytearray(b"x")
    return bytes(body)


def check_mutated(script, account, random, count):
    for _ in range(count):
        body = mutated(random)
        script.say("REPORT", CALENDAR, (207, body, {}))
        found = outcome(account)
        if isinstance(found, Read) and STATED in body:
            assert any(start <= at(9) and end >= at(10) for start, end in found.busy.pairs()), body
        try:
            ADAPTER.events(account, [PRIMARY], *DAY_30, deadline=soon())
            ADAPTER.event(account, PRIMARY, "one", deadline=soon())
        except ProviderError:
            continue
        finally:
            script.requests.clear()


# The first event as far as it makes busy time.
STATED = GOOD.partition(b"BEGIN:VCALENDAR")[2].partition(b"END:VCALENDAR")[0]


@pytest.mark.slow
def test_mutated_answers_are_busy_or_failed(script, account):
    """Over a real socket: an event that is still in the answer is busy, or the calendar fails."""
    check_mutated(script, account, Random(38), 1000)


@pytest.mark.fuzz
@pytest.mark.timeout(1800)
def test_many_mutated_answers_are_busy_or_failed(script, account):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check_mutated(script, account, Random(3800), 20_000)
    # Kibibytes.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


IN_BERLIN = "<c:calendar-timezone-id>Europe/Berlin</c:calendar-timezone-id>"


def test_the_zone_of_an_imported_object_is_not_that_of_the_calendar(script, account):
    imported = event("two").replace("VERSION:2.0", "VERSION:2.0\r\nX-WR-TIMEZONE:America/New_York")
    floating = event("one", "20261130T090000", "20261130T100000")
    script.say("REPORT", CALENDAR, multistatus(stored(imported, "two"), stored(floating)))
    script.say("PROPFIND", CALENDAR, multistatus(response(CALENDAR, f"{KIND}{IN_BERLIN}")))
    found = outcome(account)
    assert (found.busy.starts.tolist(), found.busy.ends.tolist()) == ([at(8)], [at(10)])


@pytest.mark.parametrize("uid", ["UID;X:two", 'UID;X=a"b:two', "UID;X=;=:two"])
def test_a_damaged_line_of_a_uid_fails_neither_the_list_nor_the_busy_time(script, account, uid):
    damaged = event("two", "20261130T120000Z", "20261130T130000Z").replace("UID:two", uid)
    script.say("REPORT", CALENDAR, multistatus(stored(damaged, "two", '"2"'), stored(event("one"))))
    assert outcome(account).busy.starts.tolist() == [at(9), at(12)]
    found = ADAPTER.events(account, [PRIMARY], *DAY_30, deadline=soon())[PRIMARY]
    assert isinstance(found, tuple)
    assert [(each.start, each.etag) for each in found if each.id == "one"] == [(at(9), 'W/"1"')]


def test_events_of_a_list_have_the_versions_of_their_objects(script, account):
    whole = event("three", "20261130T140000Z", "20261130T150000Z", "SUMMARY:\u00e4 and", "  more\r\n")
    objects = (stored(event("one")), stored(whole.replace("\r\n", "\n"), "three", '"3"'))
    second = event("two", "20261130T120000Z", "20261130T130000Z", "RRULE:FREQ=DAILY;COUNT=2")
    script.say("REPORT", CALENDAR, multistatus(*objects, stored(f"\r\n{second}\r\n", "two", '"2"')))
    found = ADAPTER.events(account, [PRIMARY], *DAY_30, deadline=soon())[PRIMARY]
    assert [(each.recurring_event_id or each.id, each.etag) for each in found] == [
        ("one", 'W/"1"'),
        ("two", 'W/"2"'),
        ("three", 'W/"3"'),
    ]
