"""The explorer's form, parsed as the API parses a query, and its curl commands for the API."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from werkzeug.datastructures import MultiDict

from app.dashboard.explorer import form
from app.http.errors import ApiError
from scheduling.json_render import timestamp
from scheduling.windows import DAY, EVERY_DAY, MINUTE, Window
from tests.app.days import meeting
from tests.dashboard.curling import curl, parsed
from tests.dashboard.picture import slots_of
from tests.dashboard.visiting import words

THURSDAY = date(2026, 12, 3)
START = int(datetime(2026, 12, 3, tzinfo=UTC).timestamp() * 1000)
# A loaded machine may need this long to read all calendars, in seconds.
PATIENCE = 30


@pytest.fixture
def read(app):
    """Parse a form: ``read(users="ada", padding="10")``."""

    def made(**sent):
        with app.test_request_context():
            return form.read(MultiDict({"day": "2026-12-03", **sent}))

    return made


def test_an_empty_form_is_office_hours_of_the_working_days_of_a_week(app):
    with app.test_request_context():
        query = form.read(MultiDict({"moment": "2026-12-03T10:00"}))

    assert query.is_empty
    assert (query.first, query.days, query.zone) == (THURSDAY, 7, ZoneInfo("UTC"))
    slot_query = query.slot_query
    assert (slot_query.start, slot_query.end) == (START, START + 7 * DAY)
    assert (slot_query.duration, slot_query.padding_before, slot_query.padding_after) == (30 * MINUTE, 0, 0)
    assert (slot_query.step, slot_query.align_clock) == (None, False)
    assert (slot_query.windows, slot_query.each_day) == ((Window(frozenset(range(5)), 540, 1020),), None)


def test_each_field_is_read_as_the_api_reads_it(read):
    query = read(
        users="ada, bruno;chen ada",
        zone="Europe/Berlin",
        days="14",
        slotDuration="45",
        padding="10",
        maxOverlaps="2",
        slotStep="15",
        align="clock",
        earliestTimeEachDay="8:30",
        latestTimeEachDay="00:00",
    )

    assert query.users == ("ada", "bruno", "chen")
    slot_query = query.slot_query
    assert (slot_query.start, slot_query.end) == (START - 3_600_000, START - 3_600_000 + 14 * DAY)
    assert (slot_query.duration, slot_query.max_overlaps) == (45 * MINUTE, 2)
    assert (slot_query.padding_before, slot_query.padding_after) == (10 * MINUTE, 10 * MINUTE)
    assert (slot_query.step, slot_query.align_clock, slot_query.zone) == (15 * MINUTE, True, "Europe/Berlin")
    assert slot_query.windows == (Window(EVERY_DAY, 510, 1440),)


@pytest.mark.parametrize("users", ["ada,", " ada , ", "ada;;", "ada\n"])
def test_an_unfinished_list_of_users_is_accepted(read, users):
    assert read(users=users).users == ("ada",)


def test_the_hours_of_a_day_alone_are_those_of_every_day(read):
    """Addresses from before there were working days have no other field."""
    assert read(users="ada", latestTimeEachDay="12:00").slot_query.each_day == Window.daily(540, 720)


def test_a_weekly_window_is_read_day_by_day(read):
    query = read(
        users="ada",
        window="weekly",
        mondayFrom="09:00",
        mondayTo="12:00",
        fridayFrom="09:00",
        fridayTo="12:00",
        sundayFrom="22:00",
        sundayTo="02:00",
    )

    assert query.slot_query.windows == (
        Window(frozenset({0, 4}), 540, 720),
        Window(frozenset({6}), 1320, 120),
    )


def test_today_is_that_of_the_zone(app, monkeypatch):
    kiritimati, niue = (form.today({"zone": f"Pacific/{each}"}) for each in ("Kiritimati", "Niue"))

    assert (kiritimati - niue).days in (1, 2)
    assert form.today({"zone": "Nowhere"}) == form.today({}) == datetime.now(UTC).date()


BAD = [
    ({"organization": "Acme Inc"}, "Organization must match"),
    ({"users": "ada, <b>"}, "Users holds '<b>', which is no user's identifier"),
    ({"users": ",".join(f"user-{n}" for n in range(101))}, "Users must name at most 100 users"),
    ({"zone": "../../etc/passwd"}, "Time zone must be a time zone name, like Europe/Berlin"),
    ({"day": "2026-02-30"}, "First day must be a date"),
    ({"day": "9999-12-31"}, "First day must lie in the years 1970 to 2199"),
    ({"day": "2199-12-31"}, "The last day must lie in the years 1970 to 2199"),
    (
        {"day": "2011-12-30", "days": "1", "zone": "Pacific/Apia"},
        "First day must be one that Pacific/Apia has",
    ),
    ({"days": "8"}, "Days must be one of 1, 3, 5, 7, 14"),
    ({"latestTimeEachDay": "noon"}, "The daily window's end must be a time of day as HH:MM"),
    ({"padding": "-5"}, "Padding must be between 0 and 10080"),
    ({"window": "weekly", "fridayFrom": "10:00", "fridayTo": "10:00"}, "Friday end must differ from start"),
    (
        {"slotDuration": "1", "days": "14", "window": "none", "organization": "acme"},
        "The answer could hold more than 1000000 slots",
    ),
]


@pytest.mark.parametrize(("sent", "sentence"), BAD)
def test_a_bad_value_is_named_with_its_field(read, sent, sentence):
    with pytest.raises(ApiError) as refused:
        read(**sent)

    assert refused.value.error.startswith(sentence)


def test_few_users_may_have_larger_questions(read):
    assert read(users="ada", slotDuration="1", days="14", window="none").users == ("ada",)


@pytest.fixture
def people(sandbox, new_user):
    """Create users with a meeting each on the Thursday."""

    def make(count, slugs=()):
        hours = [
            ("09:30", "10:15"),
            ("13:00", "14:00"),
            ("10:00", "10:20"),
            ("15:05", "16:00"),
            ("08:00", "12:10"),
        ]
        accounts = [
            sandbox.account("google", f"p{n}@example.com", events=[meeting(*hours[n])]) for n in range(count)
        ]
        return [new_user(account, name=f"p{n}", slugs=slugs) for n, account in enumerate(accounts)]

    return make


@pytest.fixture
def who(people, new_organization):
    """The form's fields for the users of the question, by kind."""

    def named(kind):
        if kind == "organization":
            slug = new_organization()
            people(4, slugs=(slug,))
            return {"organization": slug}
        return {"users": ", ".join(people({"one": 1, "several": 2, "many": 5}[kind]))}

    return named


def starts_of(answer) -> dict[str, list[int]]:
    """The starts of each user's slots in an answer of any of the three routes; None is the only user."""
    assert answer.status_code == 200, answer.text
    data = answer.json["data"]
    entries = data if isinstance(data, list) else [data]
    found: dict[str, list[int]] = {}
    for entry in entries:
        for slot in entry["availableSlots"]:
            at = int(datetime.fromisoformat(slot["start"]).timestamp() * 1000)
            found.setdefault(slot.get("userId", entry.get("userId")), []).append(at)
    return found


def drawn_whole(browser, sent):
    """The picture once all calendars are read, when it and the API answer from the same cache."""
    give_up = time.monotonic() + PATIENCE
    while (page := browser.get("/explorer/grid", **sent)).html.select(".unread"):
        assert time.monotonic() < give_up, page.text
    assert page.status == 200
    return page


CASES = {
    "working days": {},
    "daily": {"window": "daily"},
    "zone": {"zone": "Asia/Kathmandu", "earliestTimeEachDay": "08:00"},
    "overnight": {"earliestTimeEachDay": "20:00", "latestTimeEachDay": "10:30", "slotDuration": "50"},
    "until midnight": {"earliestTimeEachDay": "09:00", "latestTimeEachDay": "00:00"},
    "none": {"window": "none", "slotDuration": "100", "days": "3"},
    "weekly": {"window": "weekly"}
    | {"thursdayFrom": "09:00", "thursdayTo": "17:00", "fridayFrom": "10:00", "fridayTo": "12:00"},
    "never": {"window": "weekly"},
    "step": {"slotStep": "45", "slotDuration": "30"},
    "align": {"align": "clock", "padding": "10"},
    "overlaps": {"maxOverlaps": "1", "padding": "15"},
    "spring": {"day": "2026-03-27", "zone": "Europe/Berlin", "window": "none", "slotDuration": "60"},
}  # fmt: skip
KINDS = ("organization", "one", "several", "many")


@pytest.mark.usefixtures("worker")
@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_curl_command_gives_exactly_the_slots_of_the_picture(api, signed_in, who, kind, case):
    sent = {"day": "2026-12-02", "days": "5", **who(kind), **CASES[case]}
    page = drawn_whole(signed_in, sent)

    answer = curl(api, page.html.find(id="curl").get_text())

    drawn, found = slots_of(page), starts_of(answer)
    if kind == "one":
        (found,) = [{user: found.get(None, [])} for user in drawn]
    assert drawn == {user: found.get(user, []) for user in drawn}
    assert set(found) <= set(drawn)
    assert words(page.html.select_one(".count")) == str(sum(map(len, found.values())))
    assert (case == "never") == (not any(found.values()))


@pytest.mark.usefixtures("worker")
def test_the_weekly_hours_are_those_of_the_form(api, signed_in, who):
    sent = {"day": "2026-12-02", **who("several"), **CASES["weekly"]}
    page = drawn_whole(signed_in, sent)

    answer = curl(api, page.html.find(id="curl").get_text())

    assert [entry["schedules"] for entry in answer.json["data"]] == [
        [
            {"days": ["thursday"], "start": "09:00", "end": "17:00"},
            {"days": ["friday"], "start": "10:00", "end": "12:00"},
        ]
    ] * 2


MOMENTS = [START + minutes * MINUTE for minutes in (7 * 60, 9 * 60 + 40, 9 * 60 + 20, 13 * 60, 16 * 60 + 50)]


@pytest.mark.usefixtures("worker")
@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", KINDS)
def test_curl_command_returns_the_sentence_of_the_page(api, signed_in, who, kind, case):
    sent = {"day": "2026-12-02", "days": "5", **who(kind), **CASES[case]}
    grid = drawn_whole(signed_in, sent)
    person = next(iter(slots_of(grid)))
    for at in MOMENTS:
        page = signed_in.get("/explorer/why", **sent, person=person, at=at)

        answer = curl(api, page.html.find(id="why-curl").get_text())

        assert answer.status_code == 200, answer.text
        assert answer.json["data"]["at"] == timestamp(at)
        assert words(page.html.select_one(".verdict p")) == f"{person} at {answer.json['data']['sentence']}"


@pytest.mark.usefixtures("worker")
def test_one_call_explains_all_members_of_an_organization(api, signed_in, who):
    sent = {"day": "2026-12-02", **who("organization"), "window": "daily"}
    drawn_whole(signed_in, sent)
    page = signed_in.get("/explorer/why", **sent, at=MOMENTS[1])

    answer = curl(api, page.html.find(id="why-curl").get_text())

    verdicts = [words(each) for each in page.html.select(".verdict p")]
    members = answer.json["data"]["members"]
    assert [(m["userId"], m["sentence"].partition(" is ")[2]) for m in members] == [
        tuple(each.split(" is ", 1)) for each in verdicts
    ]


@pytest.mark.usefixtures("worker")
def test_there_is_no_curl_command_to_explain_several_users(signed_in, who):
    sent = {"day": "2026-12-02", **who("several")}
    drawn_whole(signed_in, sent)
    page = signed_in.get("/explorer/why", **sent, at=MOMENTS[1])

    assert len(page.html.select(".verdict")) == 2
    assert page.html.find(id="why-curl") is None


EVIL = ["'; rm -rf ~; '", '"$(id)"', "a b\nc", "`id`", "\\", "$HOME", "--output=/tmp/x", "ada/../../etc"]


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_escapes_the_quoting_of_a_curl_command(read, evil):
    query = read(users="ada", window="daily")
    line = query.explain_curl(f"http://ha{evil}st", evil, MOMENTS[0])

    command = parsed(line, "alm_x")
    assert command.header == ["Authorization: Bearer alm_x", "x-timezone: UTC"]
    assert command.url.startswith(f"http://ha{evil}st/v1/users/")
    assert command.url.partition("/v1/users/")[2].count("/") == 2


def test_the_curl_command_uses_the_public_address(new_app, browser_of, administrator):
    at = new_app(public_url="https://almanac.example/base")
    page = browser_of(administrator, at=at).get("/explorer/grid", users="nobody-here")

    command = parsed(page.html.find(id="curl").get_text(), "alm_x")
    assert command.url.startswith("https://almanac.example/base/v1/users/nobody-here/scheduling?start=")
