"""The audit log, page by page and searched."""

from __future__ import annotations

import re

import pytest

from store.sql.queries import audit
from tests.dashboard.visiting import words


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


@pytest.mark.parametrize("before", ["x", "-1", "0", "9" * 30, "1.5"])
def test_an_odd_page_is_the_first_or_the_last(signed_in, record, unique, before):
    record(unique("actor"))

    page = signed_in.get("/audit", before=before)

    assert page.status == 200
    assert (rows(page) == []) == (before == "0")
