"""The explorer's explanations of a moment, and the events behind it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.app.days import meeting
from tests.app.two_accounts import SHOWN
from tests.dashboard.visiting import words

THURSDAY = int(datetime(2026, 12, 3, tzinfo=UTC).timestamp() * 1000)
DAY = {"day": "2026-12-03", "days": "1", "earliestTimeEachDay": "09:00", "latestTimeEachDay": "13:00"}
NOBODY = "nobody-at-all"

pytestmark = pytest.mark.usefixtures("worker")


def at(time):
    """Milliseconds of a UTC time of the Thursday."""
    hours, minutes = map(int, time.split(":"))
    return THURSDAY + (hours * 60 + minutes) * 60_000


def sentences(page):
    return [words(each) for each in page.html.select(".verdict p")]


def facts(page):
    names, values = ([words(each) for each in page.html.select(f".facts {tag}")] for tag in ("dt", "dd"))
    return list(zip(names, values, strict=True))


@pytest.fixture
def ada(sandbox, new_user):
    """Create a user with two accounts and these meetings; ``other`` are those of the second account."""

    def make(*events, other=(), **more):
        return new_user(
            sandbox.account("google", "ada@example.com", events=events, **more),
            sandbox.account("microsoft", "ada@contoso.example", events=other),
        )

    return make


@pytest.fixture
def why(signed_in):
    """Request an explanation, as a click in the picture does: ``why(user, "10:20", padding="10")``."""
    return lambda user, time, **sent: signed_in.get(
        "/explorer/why", **{"users": user, "person": user, "at": at(time), **DAY, **sent}
    )


@pytest.mark.parametrize(
    ("time", "offered", "because"),
    [
        ("09:10", True, "within a slot that is offered, from 09:00 to 09:30."),
        ("10:20", False, "not offered: ada@example.com is busy from 10:00 to 10:30."),
    ],
)
def test_the_verdict_is_a_sentence(ada, why, time, offered, because):
    user = ada(meeting("10:00", "10:30"))
    page = why(user, time)

    assert sentences(page) == [f"{user} at {time} on Thursday 3 December 2026 (UTC) is {because}"]
    assert ("yes" in page.html.select_one(".verdict")["class"]) == offered


def test_a_calendar_that_cannot_be_read_is_the_reason(sandbox, ada, why):
    user = ada(meeting("10:00", "10:30"))
    sandbox.fault(email="ada@contoso.example", status=500)

    page = why(user, "10:10")

    (sentence,) = sentences(page)
    assert (
        "is not offered: the main calendar at Microsoft could not be read (the provider did not answer"
        in sentence
    )
    # The calendars that were read still say what blocks.
    assert facts(page) == [("Busy", "from 10:00 to 10:30, in ada@example.com (Google)")]


def test_the_explanation_names_days(ada, why):
    page = why(ada(meeting("10:00", "11:00")), "10:55", padding="10", days="3", latestTimeEachDay="11:10")

    assert facts(page) == [
        ("Busy", "from 10:00 to 11:00, with padding from 09:50 to 11:10, in ada@example.com (Google)"),
        ("Hours", "from 09:00 to 11:10"),
        ("Previous slot", "from 09:00 to 09:30"),
        ("Next slot", "from 09:00 to 09:30 on Friday 4 December"),
    ]


def test_without_a_person_every_user_is_explained(signed_in, ada, new_user):
    users = [ada(meeting("10:00", "10:30")), new_user(), NOBODY]
    page = signed_in.get("/explorer/why", users=" ".join(users), at=at("10:10"), **DAY)

    assert words(page.html.select_one("p")) == "10:10 on Thursday 3 December 2026 (UTC):"
    verdicts = [words(each) for each in page.html.select(".verdict p")]
    assert [each.split(" is ")[0] for each in verdicts] == users
    assert [each.split(": ")[1] for each in verdicts] == [
        "ada@example.com is busy from 10:00 to 10:30.",
        "no calendar is connected, so nothing is offered.",
        "there is no such user.",
    ]


def test_a_person_of_another_picture_is_not_explained(signed_in, ada, new_user):
    busy, other = ada(meeting("10:00", "10:30")), new_user()
    page = signed_in.get("/explorer/grid", users=f"{other} {NOBODY}", person=busy, at=at("10:10"), **DAY)

    assert [each.split(" is ")[0] for each in sentences(page)] == [other, NOBODY]
    assert page.html.select("#person [selected]") == []


def test_a_page_that_names_a_moment_shows_its_answer(signed_in, ada):
    user = ada(meeting("10:00", "10:30"))
    sent = {"users": user, "person": user, "moment": "2026-12-03T10:10", **DAY}
    for path in ("/explorer/grid", "/explorer"):
        page = signed_in.get(path, **sent, show="1")

        assert "is busy from 10:00 to 10:30" in sentences(page)[0]
        assert page.html.find(id="moment-field")["value"] == "2026-12-03T10:10"


def test_a_moment_is_by_the_clock_of_the_zone(ada, why):
    user = ada(meeting("10:00", "10:30"))
    page = why(user, "00:00", at="", moment="2026-12-03T15:50", zone="Asia/Kathmandu", window="none")

    assert sentences(page)[0].startswith(
        f"{user} at 15:50 on Thursday 3 December 2026 (Asia/Kathmandu) is not offered"
    )


def test_ambiguous_clock_time_is_resolved_by_milliseconds(ada, signed_in):
    """When Berlin's clocks are set back, 02:30 is at 00:30 and at 01:30 UTC."""
    user = ada({"start": "2026-10-25T01:20:00Z", "end": "2026-10-25T01:40:00Z", "subject": "Second"})
    sent = {"users": user, "person": user, "day": "2026-10-25", "zone": "Europe/Berlin", "window": "none"}
    pressed = int(datetime(2026, 10, 25, 1, 30, tzinfo=UTC).timestamp() * 1000)

    page = signed_in.get("/explorer/why", **sent, at=pressed)
    assert sentences(page)[0].startswith(
        f"{user} at 02:30 (UTC+01:00) on Sunday 25 October 2026 (Europe/Berlin) is not offered"
    )
    field = page.html.find(id="moment-field")
    assert (field["value"], field["hx-swap-oob"]) == ("2026-10-25T02:30", "true")

    again = {**sent, "at": pressed, "moment": field["value"]}
    page = signed_in.get("/explorer/grid", **again)
    assert "is busy from 02:20" in sentences(page)[0]
    assert page.html.find("input", {"name": "at"})["value"] == str(pressed)
    assert "Second" in signed_in.get("/explorer/events", **again, calendar="ada@example.com").text
    # Typed, it is the first of the two.
    page = signed_in.get("/explorer/why", **again | {"at": pressed - 60_000})
    (sentence,) = sentences(page)
    assert sentence.startswith(
        f"{user} at 02:30 (UTC+02:00) on Sunday 25 October 2026 (Europe/Berlin) is offered"
    )


@pytest.mark.parametrize(
    "sent",
    [
        {"moment": "soon"},
        {"moment": "2026-02-30T10:00"},
        {"moment": "0001-01-01T00:00"},
        {"at": "soon"},
        {"at": "9" * 400},
        {"at": "-1"},
        {"at": "1.5"},
        {"at": "nan", "moment": "2026-12-03T10:10"},
    ],
)
def test_an_invalid_moment_is_an_error_sentence(signed_in, sent):
    for path in ("/explorer/why", "/explorer/events", "/explorer/grid"):
        page = signed_in.get(path, users=NOBODY, person=NOBODY, **DAY, **sent)

        assert page.status == 200
        assert page.notices[-1] == "The moment must be a date and a time."


SUBJECTS = ["<b onmouseover=alert(1)>x</b>", "שלום", "Budget 📅", ""]


def test_the_events_behind_a_moment_are_named_as_text(ada, signed_in, why):
    user = ada(
        *(meeting("10:00", "10:30", subject=subject) for subject in SUBJECTS),
        meeting("11:00", "11:30", subject="Another"),
        other=[meeting("10:15", "10:45", subject="At Contoso")],
    )
    button = why(user, "10:20").html.select_one("[hx-vals]")
    assert button["hx-get"] == "/dashboard/explorer/events"

    page = signed_in.get(
        "/explorer/events",
        users=user,
        person=user,
        at=at("10:20"),
        **DAY,
        calendar=[SHOWN["google"], SHOWN["microsoft"]],
    )

    listed = sorted(words(each) for each in page.html.select("li"))
    names = [subject or "(no title)" for subject in SUBJECTS]
    assert listed == sorted(
        [f"{name} , 10:00 to 10:30 in ada@example.com" for name in names]
        + [f"At Contoso , 10:15 to 10:45 in {SHOWN['microsoft']}"]
    )
    assert page.html.select("[onmouseover]") == []
    assert all(each["dir"] == "auto" for each in page.html.select("li strong"))


def test_events_of_a_padded_moment_are_the_ones_it_avoids(ada, signed_in):
    user = ada(meeting("10:00", "10:30", subject="Before"))
    sent = {"users": user, "person": user, **DAY, "padding": "15", "calendar": "ada@example.com"}

    assert "Before" in signed_in.get("/explorer/events", at=at("10:44"), **sent).text
    assert "Before" not in signed_in.get("/explorer/events", at=at("10:46"), **sent).text


def test_missing_scope_for_events_is_explained(sandbox, new_user, signed_in):
    scope = "https://www.googleapis.com/auth/calendar.freebusy"
    account = sandbox.account("google", "eve@example.com", scope=scope, events=[meeting("10:00", "10:30")])
    user = new_user(account)
    sent = {"users": user, "person": user, "at": at("10:10"), **DAY, "calendar": "eve@example.com"}
    assert "eve@example.com is busy" in sentences(signed_in.get("/explorer/why", **sent))[0]

    page = signed_in.get("/explorer/events", **sent)

    (notice,) = page.notices
    assert notice.startswith("eve@example.com : ")
    assert len(notice) > 30
    assert page.html.select("li") == []
