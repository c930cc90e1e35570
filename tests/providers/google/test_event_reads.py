"""One event of Google Calendar, read by its id or found by its metaId."""

from __future__ import annotations

from typing import Any

import pytest

from providers.errors import Unavailable
from providers.google import parse_events
from providers.timestamps import DAY
from tests.providers.event_calls import END, MEETING
from tests.providers.google.google_calls import GOOD, scripted


@pytest.mark.parametrize("answer", [[], {}, GOOD | {"id": 7}, GOOD | {"start": 7}, {"id": "abcde1"}], ids=str)
def test_an_answer_that_is_no_event_is_unreadable(script, scripted_account, answer):
    script.say(body=answer)
    with pytest.raises(Unavailable, match="unreadable"):
        scripted(script, scripted_account).event("abcde1")


def carried(meta_id: str) -> dict[str, Any]:
    return {"extendedProperties": {"private": {parse_events.META_ID: meta_id}}}


def test_of_several_the_first_created_is_found_over_all_pages(script, scripted_account):
    created = {
        number: GOOD | carried("m") | {"id": f"abcde{number}", "created": f"2026-12-0{number}T08:00:00Z"}
        for number in (3, 2, 1)
    }
    script.say(body={"timeZone": "UTC", "items": [created[2]], "nextPageToken": "a"})
    script.say(body={"timeZone": "UTC", "items": [], "nextPageToken": "b"})
    script.say(body={"timeZone": "UTC", "items": [created[3], created[1], GOOD | carried("M")]})
    assert scripted(script, scripted_account).find("m").id == "abcde1"
    paths = [each["path"] for each in script.requests]
    assert all("privateExtendedProperty=metaId%3Dm" in path for path in paths)
    assert ["pageToken=" in path for path in paths] == [False, True, True]


@pytest.mark.parametrize("page", [{"items": ["odd"]}, {"items": [GOOD | {"extendedProperties": 7}]}], ids=str)
def test_what_cannot_be_read_is_not_the_same_as_not_found(script, scripted_account, page):
    script.say(body={"timeZone": "UTC"} | page)
    with pytest.raises(Unavailable, match="unreadable"):
        scripted(script, scripted_account).find("m")


def test_a_series_is_found_as_a_whole(new):
    calls = new(MEETING | {"recurrence": "RRULE:FREQ=DAILY;COUNT=3"})
    first, second, _ = calls.listed(END - DAY, END + 3 * DAY)
    series = first.original["recurringEventId"]
    assert calls.update(series, meta_id="m").id == series
    calls.patch(second.id, summary="Moved")
    assert calls.find("m").id == series
