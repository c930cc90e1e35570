"""The slots that people share, in the explorer and in the API call that it shows."""

from __future__ import annotations

import pytest

from tests.app.days import meeting, starts
from tests.dashboard.curling import curl
from tests.dashboard.visiting import words

pytestmark = pytest.mark.usefixtures("worker")
DAY = {"day": "2026-12-03", "days": "1", "earliestTimeEachDay": "09:00", "latestTimeEachDay": "12:00"}


@pytest.fixture
def person(sandbox, new_user):
    """Create a user with these meetings."""

    def make(*events, name="ada", slugs=()):
        account = sandbox.account("google", f"{name}@example.com", events=events)
        return new_user(account, name=name, slugs=slugs)

    return make


def shared(page):
    """The start of each slot, with the number of people and their names."""
    return [
        (*words(each).split(), each["title"].split(", ")) for each in page.html.select(".together tbody li")
    ]


def test_the_slots_of_all_are_shown_and_the_api_answers_the_same(signed_in, api, person, new_organization):
    slug = new_organization()
    ada = person(meeting("09:00", "10:00"), slugs=(slug,))
    bruno = person(meeting("10:30", "11:00"), name="bruno", slugs=(slug,))

    page = signed_in.get("/explorer/grid", organization=slug, **DAY, together="all")

    both = sorted([ada, bruno])
    assert shared(page) == [("10:00", "2", both), ("11:00", "2", both), ("11:30", "2", both)]
    assert "3 slots in which all 2 people are free" in words(page.html.select_one(".together"))
    answer = curl(api, page.html.find(id="curl").get_text())
    assert starts(answer) == ["10:00", "11:00", "11:30"]


def test_members_who_never_connected_do_not_count(signed_in, api, person, new_user, new_organization):
    slug = new_organization()
    ada = person(meeting("09:00", "11:00"), slugs=(slug,))
    new_user(slugs=(slug,))

    page = signed_in.get("/explorer/grid", organization=slug, **DAY, together="all")

    assert shared(page) == [("11:00", "1", [ada]), ("11:30", "1", [ada])]
    assert starts(curl(api, page.html.find(id="curl").get_text())) == ["11:00", "11:30"]


def test_shared_slots_are_the_top_lane(signed_in, person, new_organization):
    slug = new_organization()
    for name in ("ada", "bob", "eve", "mia"):
        person(meeting("09:00", "10:00"), name=name, slugs=(slug,))

    page = signed_in.get("/explorer/grid", organization=slug, **DAY, together="all")

    first = page.html.select_one(".lanes tbody tr")
    assert [words(each) for each in first.find_all(["th", "td"])[:2]] == ["Together", "4"]
    lane = first.select_one("svg.lane")
    # A press asks for all people.
    assert (lane["data-user"], bool(lane.select_one(".slot")["d"])) == ("", True)


def test_fewer_may_be_required_of_named_users(signed_in, api, person):
    ada, bruno = person(meeting("09:00", "11:00")), person(meeting("10:00", "12:00"), name="bruno")

    page = signed_in.get("/explorer/grid", users=f"{ada} {bruno}", **DAY, together="1", slotDuration="60")

    assert shared(page) == [("09:00", "1", [bruno]), ("11:00", "1", [ada])]
    assert starts(curl(api, page.html.find(id="curl").get_text())) == ["09:00", "11:00"]


def test_unreadable_person_is_not_free(signed_in, person, new_user):
    page = signed_in.get("/explorer/grid", users=f"{person()} {new_user()}", **DAY, together="all")

    assert shared(page) == []
    assert "A person who could not be read is not free" in words(page.html.select_one(".together"))


def test_nothing_is_shown_without_a_requirement(signed_in, person):
    assert not signed_in.get("/explorer/grid", users=person(), **DAY).html.select(".together")


@pytest.mark.parametrize(
    ("together", "complaint"),
    [
        ("0", "Free together must be all, or a number from 1 to 100"),
        ("most", "Free together must be all, or a number from 1 to 100"),
        ("2", "Free together must be at most 1, the number of people"),
    ],
)
def test_a_wrong_requirement_is_named(signed_in, person, together, complaint):
    page = signed_in.get("/explorer/grid", users=person(), **DAY, together=together)

    assert complaint in words(page.html.select_one(".notice"))
