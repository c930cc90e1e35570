"""Lists: sorted, filtered, paged in both directions, with the number of their rows."""

from __future__ import annotations

import pytest

from store.sql.queries import connection_rows, connections
from tests.dashboard.visiting import words

pytestmark = pytest.mark.slow

ROWS = 100


def names(page):
    return [words(each) for each in page.html.select("tbody th[scope=row]")]


def link(page, rel):
    found = page.html.find("a", rel=rel)
    return None if found is None else found["href"]


@pytest.fixture
def people(new_user, unique):
    """Users of this test, and the text that finds them."""
    mark = unique("listed")
    return mark, [new_user(name=f"{mark}-{number:03}") for number in range(2 * ROWS + 3)]


@pytest.mark.parametrize("sort", [None, "-id", "registered", "-registered"])
def test_a_list_is_read_forwards_and_backwards(signed_in, people, sort):
    mark, made = people
    query = {"q": mark} | ({"sort": sort} if sort else {})
    expected = made[::-1] if sort and sort.startswith("-") else made

    page, pages = signed_in.get("/users", **query), []
    while True:
        pages.append((names(page), words(page.html.select_one(".total"))))
        if (onward := link(page, "next")) is None:
            break
        page = signed_in.get(onward)
    assert [each for found, _ in pages for each in found] == expected
    assert [total for _, total in pages] == [
        "1\N{EN DASH}100 of 203",
        "101\N{EN DASH}200 of 203",
        "201\N{EN DASH}203 of 203",
    ]

    for found, total in pages[-2::-1]:
        page = signed_in.get(link(page, "prev"))
        assert (names(page), words(page.html.select_one(".total"))) == (found, total)
    assert link(page, "prev") is None


@pytest.mark.parametrize("sort", [None, "-registered"])
def test_the_last_page_ends_with_the_list(signed_in, people, sort):
    mark, made = people
    first = signed_in.get("/users", **({"q": mark} | ({"sort": sort} if sort else {})))

    page = signed_in.get(link(first, "last"))

    assert names(page) == (made[::-1] if sort else made)[-ROWS:]
    assert words(page.html.select_one(".total")) == "104\N{EN DASH}203 of 203"
    assert (link(page, "last"), link(page, "next")) == (None, None)
    assert names(signed_in.get(link(page, "prev"))) == (made[::-1] if sort else made)[3:103]


def test_headings_sort_and_show_the_direction(signed_in, people):
    mark, made = people
    page = signed_in.get("/users", q=mark)
    user, registered = page.html.select("th:has(a.sort)")
    assert (user["aria-sort"], registered.has_attr("aria-sort")) == ("ascending", False)

    page = signed_in.get(user.a["href"])
    assert names(page)[0] == made[-1]
    assert page.html.select("th:has(a.sort)")[0]["aria-sort"] == "descending"
    page = signed_in.get(page.html.select("th:has(a.sort)")[0].a["href"])
    assert (names(page)[0], page.answer.request.args.to_dict()) == (made[0], {"q": mark})


@pytest.mark.parametrize(
    ("path", "what"),
    [("/users", "users"), ("/organizations", "organizations"), ("/keys?sort=expires", "keys")],
)
def test_page_past_the_end_differs_from_an_empty_list(
    signed_in, new_user, new_organization, new_api, path, what
):
    new_user(), new_organization(), new_api()
    after = "9999-12-31T00:00:00%2B00:00~1" if what == "keys" else "zzzzzz"
    page = signed_in.get(f"{path}{'&' if '?' in path else '?'}after={after}")

    assert words(page.html.select_one(".empty h2")) == f"No more {what}"
    assert f"No {what[:-1]} yet" not in page.text
    assert names(signed_in.get(page.html.select_one(".empty a")["href"]))


@pytest.mark.parametrize("name", ["after", "before"])
@pytest.mark.parametrize(
    "text",
    [
        *("~", "~~~", "a~", "~abc", "2026-01-01~abc", "9999-99-99~abc", "0001-01-01T00:00:00+14:00~abc"),
        *("7", "%", "9" * 30),
    ],
)
def test_odd_positions_are_no_errors(signed_in, name, text):
    for path, sort in [
        *[("/users", each) for each in ("id", "-registered", "nothing", "-")],
        *[("/organizations", each) for each in ("id", "members")],
        ("/keys", "-expires"),
    ]:
        assert signed_in.get(path, sort=sort, **{name: text}).status == 200


def test_keys_in_every_order(signed_in, new_api):
    for _ in range(3):
        new_api()
    for sort in ("name", "-name", "created", "used", "-used", "expires", "-expires"):
        page = signed_in.get("/keys", sort=sort)
        if onward := link(page, "next"):
            assert names(signed_in.get(onward))
    assert [each["aria-sort"] for each in page.html.select("th[aria-sort]")] == ["descending"]


def test_users_are_filtered_by_the_state_of_their_connections(signed_in, sandbox, stores, new_user, unique):
    mark = unique("states")
    well = new_user(sandbox.account("google", f"{mark}1@example.com"), name=f"{mark}-well")
    ill = new_user(sandbox.account("google", f"{mark}2@example.com"), name=f"{mark}-ill")
    none = new_user(name=f"{mark}-none")
    with stores.database.writing() as session:
        for each in connection_rows.of_user(session, ill, organization_id=None):
            connections.mark_dead(session, each.id, "The grant was withdrawn")

    page = signed_in.get("/users", q=mark)
    chips = {words(each): each["href"] for each in page.html.select(".filter a")}
    assert list(chips) == [
        "All 3",
        "Connected 1",
        "Cannot be booked now 1",
        "Needs attention 2",
        "Ended 1",
        "Without calendars 0",
        "Expiring or expired 0",
        "Never connected 1",
    ]
    found = ([ill, none, well], [well], [ill], [ill, none], [ill], [], [], [none])
    for href, expected in zip(chips.values(), found, strict=True):
        page = signed_in.get(href)
        assert sorted(names(page)) == sorted(expected)
        assert len(page.html.select(".filter a[aria-current]")) == 1
    # The search keeps the filter.
    assert page.html.select_one("form.search input[name=show]")["value"] == "unconnected"


def test_the_members_of_an_organization_have_the_same_list(signed_in, new_user, new_organization):
    slug = new_organization()
    made = sorted(new_user(slugs=(slug,)) for _ in range(ROWS + 1))

    page = signed_in.get(f"/organizations/{slug}", sort="-id")
    assert names(page) == made[:0:-1]
    page = signed_in.get(link(page, "next"))
    assert (names(page), words(page.html.select_one(".total"))) == (made[:1], "101\N{EN DASH}101 of 101")
    assert names(signed_in.get(link(page, "prev"))) == made[:0:-1]
    assert "No members found" in signed_in.get(f"/organizations/{slug}", show="ended").text
