"""Answers of calendarView, decoded without the fields that nothing reads."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
import pytest

from providers.microsoft import parse
from providers.microsoft.parse import BusyEvent

MOMENT = {"dateTime": "2026-12-03T09:00:00.0000000", "timeZone": "UTC"}
EVENT = {"@odata.etag": 'W/"abc=="', "start": MOMENT, "end": MOMENT, "showAs": "busy", "isAllDay": False}


def answer(*bodies: Any) -> bytes:
    parts = [{"id": str(number), "status": 200, "body": each} for number, each in enumerate(bodies)]
    return orjson.dumps({"responses": parts})


def events_of(content: bytes, part: int) -> list[BusyEvent]:
    decoded = parse.decode_view(content)
    assert decoded is not None
    return parse.view_events(decoded["responses"][part]["body"]["value"])


def test_events_have_the_fields_that_decide_and_pages_their_links():
    content = answer({"value": [EVENT], "@odata.nextLink": "https://graph.example/next"})
    (event,) = events_of(content, 0)
    assert (event.show_as, event.is_all_day, event.start.time_zone) == ("busy", False, "UTC")
    decoded = parse.decode_view(content)
    assert decoded is not None
    assert decoded["responses"][0]["body"]["@odata.nextLink"] == "https://graph.example/next"


@pytest.mark.parametrize("malformed", [{"start": None}, {"isCancelled": "no"}, {"end": {"dateTime": 9}}])
def test_a_malformed_field_concerns_no_other_field_event_or_part(malformed):
    content = answer({"value": [EVENT | malformed, EVENT]}, {"value": [EVENT]})
    assert [len(events_of(content, part)) for part in (0, 1)] == [2, 1]
    odd, good = events_of(content, 0)
    assert (odd.show_as, good) == ("busy", events_of(content, 1)[0])


def test_an_entry_that_is_no_event_is_refused():
    with pytest.raises(msgspec.ValidationError):
        events_of(answer({"value": [EVENT, None]}), 0)


@pytest.mark.parametrize(
    "body", [None, "text", [], {"value": None}, {"error": {"code": "ErrorAccessDenied"}}]
)
def test_a_part_of_another_form_is_kept_as_it_is(body):
    content = answer(body, {"value": [EVENT]})
    decoded = parse.decode_view(content)
    assert decoded is not None
    assert decoded["responses"][0]["body"] == body
    assert len(events_of(content, 1)) == 1


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'"\xff"'])
def test_what_is_no_json_object_is_not_decoded(content):
    assert parse.decode_view(content) is None
