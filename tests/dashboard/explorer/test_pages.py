"""The explorer's pages: lanes, columns, unreadable users, and answers to invalid questions."""

from __future__ import annotations

import itertools
import re
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.dashboard.explorer.form import MAX_SHOWN
from scheduling.windows import MINUTE
from tests.app.days import before_thursday, meeting
from tests.dashboard.picture import layer_of, slots_of
from tests.dashboard.visiting import Browser, words

THURSDAY = int(datetime(2026, 12, 3, tzinfo=UTC).timestamp() * 1000)
DAY = {"day": "2026-12-03", "days": "1", "earliestTimeEachDay": "09:00", "latestTimeEachDay": "13:00"}


def clock(at):
    """``09:30`` of the Thursday in UTC."""
    minutes = (at - THURSDAY) // MINUTE
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def clocks(stretches):
    return [(clock(start), clock(end)) for start, end in stretches]


def said(page):
    """The messages of the picture, instead of or beside the drawing, without times of failures."""
    found = page.html.select(".notice, .empty, .lanes .unread")
    return [re.sub(r", since \d+ \w+, [\d:]+ UTC", "", words(each)) for each in found]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("in_lanes", [False, True], ids=["columns", "lanes"])
def test_each_kind_of_time_is_drawn_where_it_is(signed_in, ada, lanes, in_lanes):
    slug = lanes() if in_lanes else None
    user = ada(meeting("10:00", "11:00"), slugs=(slug,) if slug else ())
    who = {"organization": slug} if slug else {"users": user}

    page = signed_in.get("/explorer/grid", **who, **DAY, padding="15")

    assert bool(page.html.select(".lane")) == in_lanes
    assert clocks(layer_of(page, user, "busy")) == [("10:00", "11:00")]
    assert clocks(layer_of(page, user, "hatch")) == [("09:45", "11:15")]
    assert layer_of(page, user, "tolerated") == []
    assert [clock(at) for at in slots_of(page)[user]] == ["09:00", "11:15", "11:45", "12:15"]
    assert words(page.html.select_one(".count")) == "4"


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("in_lanes", [False, True], ids=["columns", "lanes"])
def test_busy_time_that_is_tolerated_is_drawn_apart(signed_in, ada, lanes, in_lanes):
    slug = lanes() if in_lanes else None
    user = ada(meeting("10:00", "11:00"), other=[meeting("10:30", "11:30")], slugs=(slug,) if slug else ())
    who = {"organization": slug} if slug else {"users": user}

    page = signed_in.get("/explorer/grid", **who, **DAY, maxOverlaps="1")

    assert clocks(layer_of(page, user, "busy")) == [("10:30", "11:00")]
    assert clocks(layer_of(page, user, "tolerated")) == [("10:00", "10:30"), ("11:00", "11:30")]
    assert layer_of(page, user, "hatch") == []
    assert "busy, tolerated" in [words(each) for each in page.html.select(".legend li")]
    assert len(slots_of(page)[user]) == 7


@pytest.mark.usefixtures("worker")
def test_what_no_window_covers_is_drawn_and_whole_days_are_a_choice(signed_in, ada):
    user = ada()
    cut = signed_in.get("/explorer/grid", users=user, **DAY)
    whole = signed_in.get("/explorer/grid", users=user, **DAY, whole="1")

    assert [each["height"] for each in cut.html.select("svg.day > rect[fill='url(#dots)']")] == ["28.0"] * 2
    assert [float(each["y"]) for each in whole.html.select("svg.day > rect[fill='url(#dots)']")] == [
        0,
        13 * 28,
    ]
    assert whole.html.find("input", {"name": "whole"}).has_attr("checked")
    assert slots_of(cut) == slots_of(whole)


@pytest.mark.usefixtures("worker")
def test_a_day_in_a_column_names_its_slots_for_screen_readers(signed_in, ada):
    user = ada(meeting("10:00", "12:00"))

    page = signed_in.get("/explorer/grid", users=user, **DAY)

    label = page.html.select_one("svg.day")["aria-label"]
    assert label.strip() == f"Thursday 3 December. {user}: slots at 09:00, 09:30, 12:00, 12:30."


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("in_lanes", [False, True], ids=["columns", "lanes"])
def test_unreadable_calendar_is_named_and_no_slot_is_offered(sandbox, signed_in, ada, lanes, in_lanes):
    slug = lanes() if in_lanes else None
    user, other = ada(slugs=(slug,) if slug else ()), ada(name="bob", slugs=(slug,) if slug else ())
    sandbox.fault(email="ada@contoso.example", status=403, reason="ErrorAccessDenied")
    who = {"organization": slug} if slug else {"users": f"{user},{other}"}

    page = signed_in.get("/explorer/grid", **who, **DAY)

    why = "Microsoft (ada@contoso.example): Microsoft 365 denies access"
    (notice,) = page.notices
    if in_lanes:
        assert notice == "1 person could not be read, so nothing is offered. Each lane says why."
        lane = page.html.select_one(f'svg.lane[data-user="{user}"]')
        # A press on the lane asks why, as on any other.
        assert words(lane).startswith(f"{why}, since ")
        assert (lane["data-unread"], lane["data-axis"]) == (f"could not be read: {words(lane)}", "x")
    else:
        assert notice.startswith(f"{user} could not be read, so nothing is offered: {why}, since ")
    assert user not in slots_of(page)
    assert len(slots_of(page)[other]) == 8
    assert "unread" in [words(each) for each in page.html.select(".badge, .unread-word")]
    assert len(page.html.select(f'[data-axis][data-user="{user}"] .slot')) == 0


@pytest.mark.usefixtures("worker")
def test_all_users_may_be_unread(sandbox, signed_in, ada):
    user = ada()
    sandbox.fault(status=500)

    page = signed_in.get("/explorer/grid", users=user, **DAY)

    assert page.status == 200
    assert page.notices[0].startswith(f"{user} could not be read")
    assert words(page.html.select_one(".count")) == "0"


def test_users_without_calendars_and_unknown_users_are_named(signed_in, new_user, new_organization):
    user = new_user()
    page = signed_in.get("/explorer/grid", users=f"{user} nobody-at-all {user}x {user}y", **DAY)

    notes = [words(each) for each in page.html.select(".unread")]
    assert notes == ["There is no such user"] * 3
    (line,) = [words(each) for each in page.html.select(".picture > p.quiet")]
    assert line == f"Without a connected calendar, and so without a lane: {user} ."
    assert slots_of(page) == {}


@pytest.mark.usefixtures("worker")
def test_names_lead_to_the_pages_of_people(signed_in, ada):
    user = ada()

    page = signed_in.get("/explorer/grid", users=f"{user} nobody-a nobody-b nobody-c", **DAY)

    assert f"/dashboard/users/{user}" in [each["href"] for each in page.html.select(".lanes th a")]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("step", ["5", "10", "15"])
def test_the_labels_of_overlapping_slots_do_not_overlap(signed_in, ada, step):
    page = signed_in.get("/explorer/grid", users=ada(), **DAY, slotStep=step)

    lines = [float(each["y"]) for each in page.html.select(".slot-time")]
    assert len(lines) >= 8
    assert all(below - above >= 11.5 for above, below in itertools.pairwise(lines))


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("in_lanes", [False, True], ids=["columns", "lanes"])
def test_held_time_has_a_pattern_and_a_legend(monkeypatch, api, signed_in, ada, lanes, in_lanes):
    before_thursday(monkeypatch)
    slug = lanes() if in_lanes else None
    user = ada(slugs=(slug,) if slug else ())
    who = {"organization": slug} if slug else {"users": user}
    page = signed_in.get("/explorer/grid", **who, **DAY)
    assert "held" not in [words(each) for each in page.html.select(".legend li")]

    held = {"start": "2026-12-03T10:00:00Z", "end": "2026-12-03T10:30:00Z", "users": [user]}
    answer = api.post("/holds", held)
    assert answer.status_code == 201, answer.text
    page = signed_in.get("/explorer/grid", **who, **DAY)

    assert "held" in [words(each) for each in page.html.select(".legend li")]
    assert clocks(layer_of(page, user, "held")) == [("10:00", "10:30")]
    assert "10:00" not in [clock(at) for at in slots_of(page)[user]]


@pytest.mark.usefixtures("worker")
def test_the_periods_of_a_person_have_their_calendars(signed_in, ada):
    user = ada(meeting("10:00", "11:00"))
    page = signed_in.get("/explorer/periods", person=user, users=user, **DAY)

    found = [(clock(start), clock(end), *rest) for start, end, *rest in page.answer.json]
    assert ("10:00", "11:00", "busy", "ada@example.com (Google)") in found
    assert ("09:00", "09:30", "slot", "") in found
    for person in ("nobody-at-all", "", "<b>"):
        assert signed_in.get("/explorer/periods", person=person, users=user, **DAY).answer.json == []


def test_members_are_filtered_and_sorted(signed_in, new_user, new_organization):
    slug = new_organization()
    one, two = (new_user(name=name, slugs=(slug,)) for name in ("anna", "bert"))

    def shown(**sent):
        page = signed_in.get("/explorer/grid", organization=slug, **DAY, **sent)
        assert page.html.find(id="find")["value"] == sent.get("find", "")
        return page, [words(each) for each in page.html.select(".picture > p .person")]

    assert shown(find="BER")[1] == [two]
    page, users = shown(find="xyz")
    assert users == []
    assert "No member of this organization matches this filter." in page.text
    page, users = shown(find="n", sort="unread")
    assert users == [one]
    assert one in page.html.find(id="curl").get_text()
    assert two not in page.html.find(id="curl").get_text()


def test_the_week_before_and_after_are_links(signed_in, new_user):
    page = signed_in.get("/explorer/grid", users=new_user(), **DAY, padding="5", moment="2026-12-03T10:00")

    links = {
        words(each) or each["aria-label"]: urlsplit(each["href"]) for each in page.html.select(".in-time a")
    }
    days = [parse_qs(each.query)["day"] for each in links.values()]
    assert (days[0], days[2]) == (["2026-11-26"], ["2026-12-10"])
    assert all(parse_qs(each.query)["padding"] == ["5"] for each in links.values())
    assert all("moment" not in parse_qs(each.query) for each in links.values())


def test_by_default_working_days_are_shown_and_the_others_on_request(signed_in, new_user):
    user = new_user()
    week = {"users": user, "day": "2026-12-03"}

    heads = [words(each)[:3] for each in signed_in.get("/explorer/grid", **week).html.select(".day-head")]
    assert heads == ["Thu", "Fri", "Mon", "Tue", "Wed"]
    assert len(signed_in.get("/explorer/grid", **week, whole="1").html.select(".day-head")) == 7


def test_now_is_a_line(signed_in, new_user):
    today = datetime.now(UTC).date()
    sent = {"users": new_user(), "window": "none", "days": "3"}

    assert len(signed_in.get("/explorer/grid", **sent, day=f"{today}").html.select("line.now")) == 1
    assert signed_in.get("/explorer/grid", **sent, day="2030-01-01").html.select(".now") == []


def test_an_organization_that_is_not_there_or_is_empty(signed_in, new_organization):
    page = signed_in.get("/explorer/grid", organization="nothing-here")
    assert page.notices == ["Organization not found. Fix this to see availability."]

    (sentence,) = said(signed_in.get("/explorer/grid", organization=new_organization()))
    assert sentence.startswith("This organization has no members yet")


@pytest.mark.slow
def test_a_large_organization_has_pages_and_says_what_they_cover(api, signed_in, new_organization, unique):
    slug = new_organization()
    users = sorted(unique("member") for _ in range(MAX_SHOWN + 3))
    for user in users:
        assert api.post("/users", {"id": user, "organizationSlugs": [slug]}).status_code == 201

    page = signed_in.get("/explorer/grid", organization=slug, day="2026-12-03")

    assert "people 1\N{EN DASH}100 of 103" in words(page.html.find(id="picture"))
    assert "0 slots of these 100 people" in words(page.html.select_one("p[role=status]"))
    assert "and 80 more" in page.text
    curl = page.html.find(id="curl").get_text()
    assert (users[0] in curl, users[MAX_SHOWN] in curl, slug in curl) == (True, False, False)
    (further,) = page.html.select(".pager a")
    assert parse_qs(urlsplit(further["href"]).query)["day"] == ["2026-12-03"]
    rest = signed_in.get(further["href"])
    assert [words(each) for each in rest.html.select(".person")] == users[MAX_SHOWN:]
    assert "people 101\N{EN DASH}103 of 103" in words(rest.html.find(id="picture"))
    assert [words(each) for each in rest.html.select(".pager a")] == ["Previous people"]


@pytest.mark.usefixtures("worker")
def test_it_shows_the_age_of_the_data_and_can_read_again(sandbox, signed_in, ada):
    user = ada()
    signed_in.get("/explorer/grid", users=user, **DAY)
    sandbox.forget_requests()

    page = signed_in.get("/explorer/grid", users=user, **DAY)
    assert re.search(r"8 slots · read just now · [\d.]+ ms", words(page.html.select_one("p[role=status]")))
    assert sandbox.requests().total == 0

    anew = page.html.find("button", string=re.compile("Refresh"))
    assert (anew["hx-get"], anew["hx-include"]) == ("/dashboard/explorer/grid?fresh=1", "#question")
    page = signed_in.get("/explorer/grid", users=user, **DAY, fresh="1")
    assert sandbox.requests().total > 0
    assert "fresh" not in page.headers["HX-Replace-Url"]


def test_the_address_follows_the_controls(signed_in):
    sent = {**DAY, "users": "nobody-here", "zone": "Asia/Tokyo", "moment": "", "padding": "5"}
    page = signed_in.get("/explorer/grid", **sent)

    where = urlsplit(page.headers["HX-Replace-Url"])
    assert where.path == "/dashboard/explorer"
    assert parse_qs(where.query) == {name: [each] for name, each in sent.items() if each}


def test_page_is_shown_before_calendars_are_read(signed_in, new_user):
    page = signed_in.get("/explorer", users=new_user(), moment="2026-12-03T10:00", person="x", **DAY)

    assert page.heading == "Explorer"
    (loading,) = page.html.select(".loading")
    assert (words(loading), loading["role"]) == ("Press Show to read the calendars.", "status")
    grid = page.html.find(id="grid")
    assert (grid["hx-trigger"], grid["hx-get"]) == ("load", "/dashboard/explorer/grid")
    kept = {each["name"]: each["value"] for each in page.html.select("input[type=hidden][form=question]")}
    assert kept == {"moment": "2026-12-03T10:00", "person": "x"}
    assert page.html.find(id="reading")["role"] == "status"


def test_without_a_script_the_button_brings_the_picture(signed_in, new_user):
    user = new_user()
    page = signed_in.get("/explorer", users=user, show="1", **DAY)

    assert page.html.select_one("[data-picture]") is not None
    assert page.html.select("[hx-trigger=load]") == []
    assert page.html.find(id="users")["value"] == user


def test_days_that_a_clock_changes_have_hours_of_their_own(signed_in, new_user):
    sent = {"users": new_user(), "day": "2026-03-28", "days": "3", "zone": "Europe/Berlin", "window": "none"}
    page = signed_in.get("/explorer/grid", **sent)

    heads = [words(each) for each in page.html.select(".day-head")]
    assert heads[1] == "Sun 29 Mar 23 hours: clocks change"
    axis = [words(each) for each in page.html.select(".hours text")]
    assert axis[:3] == ["01:00", "02:00", "03:00"]
    own = [[words(each) for each in day.select(".own")] for day in page.html.select("svg.day")]
    assert (own[0], own[2]) == ([], [])
    assert (own[1][0], own[1][-1]) == ("03:00", "23:00")


ODD = [
    "0",
    "1",
    "14",
    "weekly",
    "none",
    "clock",
    "24:00",
    "23:59",
    "00:00",
    "9999-12-31",
    "0001-01-01",
    "1970-01-01",
    "2199-12-31",
    "2026-W01",
    "2011-12-30",
    "Pacific/Apia",
    "Etc/GMT+12",
    "../etc/passwd",
    "Europe/Berlin",
    "2026-12-03T10:00",
    "2026-12-03T10:00+99:00",
    "٣",
    "<b>x</b>",
    "שלום",
]
NAMES = [
    "organization",
    "users",
    "zone",
    "day",
    "days",
    "window",
    "earliestTimeEachDay",
    "latestTimeEachDay",
    "slotDuration",
    "padding",
    "maxOverlaps",
    "slotStep",
    "align",
    "mondayFrom",
    "mondayTo",
    "whole",
    "show",
    "person",
    "moment",
    "at",
    "calendar",
    "fresh",
    "other",
]
odd = st.one_of(
    st.text(max_size=12),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from([*ODD, "", " ", "\ud83d", "\r\nX: y"]),
)


@pytest.fixture(scope="module")
def fuzzed(app, administrator):
    """A signed-in browser, shared by all examples."""
    browser = Browser(app.test_client())
    assert browser.sign_in(administrator).status == 303
    return browser


@pytest.mark.slow
@given(sent=st.dictionaries(st.sampled_from(NAMES), odd, max_size=6), named=st.booleans())
@settings(max_examples=60)
def test_any_query_gives_a_sentence_or_a_picture(fuzzed, sent, named):
    who = {"users": "nobody-here"} if named else {}
    query = {name: each.encode("utf-8", "replace").decode() for name, each in {**sent, **who}.items()}
    for path in ("/explorer/grid", "/explorer/why", "/explorer/events", "/explorer"):
        page = fuzzed.get(path, **query)

        if any("\0" in each for each in query.values()):
            assert page.status == 404
            continue
        assert page.status == 200, page.text
        assert len(page.text.strip()) > 0 or path == "/explorer/why"
        assert "<b>x" not in page.text
        for notice in page.html.select(".notice"):
            assert len(words(notice)) > 10


NEW_YORK = "New York , 5 hours behind \N{MINUS SIGN}5 h"


def zones_shown(page):
    """The visible text of each zone together with what is read aloud."""
    return [words(each) for each in page.html.select(".person-zone")]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", ["google", "microsoft"])
@pytest.mark.parametrize("in_lanes", [False, True], ids=["columns", "lanes"])
def test_the_zone_of_a_person_is_beside_the_name_at_once(
    sandbox, signed_in, new_user, lanes, in_lanes, provider
):
    account = sandbox.account(provider, "ada@example.com", time_zone="America/New_York")
    slug = lanes() if in_lanes else None
    user = new_user(account, slugs=(slug,) if slug else (), identified=False)
    who = {"organization": slug} if slug else {"users": user}

    # The first read of a calendar stores its zone.
    page = signed_in.get("/explorer/grid", **who, **DAY)

    assert zones_shown(page) == [NEW_YORK]
    (zone,) = page.html.select(".person-zone")
    assert zone["title"].startswith("America/New_York: 5 hours behind, now ")
    name = zone.find_parent("th") if in_lanes else zone.find_parent("span")
    assert words(name).startswith(user)
    assert zones_shown(signed_in.get("/explorer/grid", **who, **DAY, zone="America/Toronto")) == []
    assert len(zones_shown(signed_in.get("/explorer/grid", **who, **DAY, zone="Europe/Berlin"))) == 1
