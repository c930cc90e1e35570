"""The audit log, page by page and searched."""

from __future__ import annotations

import re

import pytest

from store.sql.queries import audit
from tests.dashboard.visiting import words

ODD = "<b onmouseover=alert(1)>x</b> שלום 📅"


@pytest.fixture
def record(stores):
    """Write into the log."""

    def write(actor, action="createKey", subject="alm_1234"):
        with stores.database.writing() as session:
            audit.record(session, actor=actor, action=action, subject=subject)

    return write


def rows(page):
    return [[words(cell) for cell in row.select("th, td:not(.end)")] for row in page.html.select("tbody tr")]


def test_it_shows_actor_action_and_time_to_the_second(signed_in, record, unique):
    record(actor := unique("actor"), "deleteWebhook", "wh_1")

    page = signed_in.get("/audit")
    when, *entry = rows(page)[0]

    assert entry == [actor, "Delete webhook", "wh_1"]
    assert when == "just now"
    exact = page.html.select_one("tbody time")["title"]
    assert re.fullmatch(r"\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d:\d\d UTC", exact)


def test_it_is_read_in_pages_the_newest_first(signed_in, record, unique):
    actor = unique("busy")
    for number in range(30):
        record(actor, subject=f"key {number}")

    first = signed_in.get("/audit", q=actor)
    rest = signed_in.get(first.html.find("a", rel="next")["href"])

    subjects = [row[3] for row in rows(first) + rows(rest)]
    assert subjects == [f"key {number}" for number in reversed(range(30))]
    assert len(rows(first)) == 25
    assert rest.html.find("a", rel="next") is None
    assert words(rest.html.select_one(".pager")) == "First page"


@pytest.mark.parametrize("text", ["Actor-of-it", "replay DELIVERY", "replayDelivery", "msg_0f"])
def test_a_search_finds_actor_action_and_subject(signed_in, record, unique, text):
    actor = unique("actor-of-it")
    record(actor, "replayDelivery", "wh_1/msg_0f1e")
    record(unique("other"))

    found = rows(signed_in.get("/audit", q=text))

    assert [actor, "Replay delivery", "wh_1/msg_0f1e"] in [row[1:] for row in found]
    assert all(text.lower().replace(" ", "") in "".join(row).lower().replace(" ", "") for row in found)


def test_a_search_has_no_wildcards(signed_in, record, unique):
    record(actor := unique("100%"))

    assert [row[1] for row in rows(signed_in.get("/audit", q="100%"))] == [actor]
    assert rows(signed_in.get("/audit", q="1%0")) == []


def test_search_without_results_shows_an_empty_state(signed_in):
    sought = f"{ODD} of nobody"
    page = signed_in.get("/audit", q=sought)

    assert words(page.html.select_one(".empty h2")) == "Nothing found"
    assert page.html.find(id="q")["value"] == sought
    assert page.html.find("b") is None


def test_records_are_text(signed_in, record):
    record(ODD, subject=ODD)

    page = signed_in.get("/audit")

    assert rows(page)[0][1:] == [ODD, "Create key", ODD]
    assert [words(each) for each in page.html.select("tbody tr:first-child bdi")] == [ODD, ODD]
    assert page.html.find("b") is None


@pytest.mark.parametrize("before", ["x", "-1", "0", "9" * 30, "1.5"])
def test_an_odd_page_is_the_first_or_the_last(signed_in, record, unique, before):
    record(unique("actor"))

    page = signed_in.get("/audit", before=before)

    assert page.status == 200
    assert (rows(page) == []) == (before == "0")


def test_it_requires_a_sign_in(visitor):
    assert visitor.get("/audit").location == "/dashboard/sign-in?after=/dashboard/audit"
