"""Etags in both forms, and the outcome of a write that was refused because of one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from providers import etags
from providers.errors import EventChanged, EventNotFound, ProviderError, Unavailable
from providers.events import Changes, Event

EVENT = Event(*("id", "primary", "google", None, "Review", "", "", 0, 1, False, None, None, ()), original={})
RENAMED = Changes(subject="Review")


def conflict(*, repeated: bool) -> ProviderError:
    error = ProviderError("refused", operation="calendar.events.update")
    error.repeated = repeated
    return error


def raising(error: ProviderError) -> Event:
    raise error


@pytest.mark.parametrize("etag", ['"1"', 'W/"1"'])
def test_both_forms_of_an_etag_are_the_same(etag):
    assert etags.weak(etag) == 'W/"1"'
    assert etags.strong(etag) == '"1"'
    assert etags.has_etag(etag, 'W/"1"')
    assert etags.has_etag(etag, '"1"')
    assert not etags.has_etag(etag, '"2"')


def test_an_event_without_an_etag_has_no_required_one():
    assert not etags.has_etag(None, '"1"')
    assert etags.has_etag(None, None)


@pytest.mark.parametrize("text", [None, "", "1", '"', '"a" ', '"a\n"', '"ä"', 'w/"1"', f'"{"x" * 1025}"'])
def test_a_text_that_is_no_etag_is_none(text):
    assert etags.weak(text) is None


def test_refused_single_update_raises_event_changed():
    with pytest.raises(EventChanged) as raised:
        etags.after_refused_update(conflict(repeated=False), RENAMED, "Google", lambda: EVENT)
    assert not raised.value.repeated
    assert raised.value.message == "The event in Google has changed since it was read"


def test_refused_repeat_of_an_update_succeeds_if_event_has_changes():
    assert etags.after_refused_update(conflict(repeated=True), RENAMED, "Google", lambda: EVENT) is EVENT


@pytest.mark.parametrize(
    "read", [lambda: replace(EVENT, subject="Other"), lambda: raising(Unavailable("down"))]
)
def test_otherwise_it_may_have_been_written_before_the_event_changed(read):
    with pytest.raises(EventChanged, match="perhaps by this request") as raised:
        etags.after_refused_update(conflict(repeated=True), RENAMED, "Google", read)
    assert raised.value.repeated


@pytest.mark.parametrize("repeated", [True, False])
def test_an_update_of_an_event_that_was_deleted_finds_none(repeated):
    with pytest.raises(EventNotFound):
        etags.after_refused_update(
            conflict(repeated=repeated), RENAMED, "Google", lambda: raising(EventNotFound("gone"))
        )


def test_refused_repeat_of_a_delete_succeeds_if_event_is_absent():
    gone = EventNotFound("gone")
    etags.after_refused_delete(conflict(repeated=True), "Google", lambda: raising(gone))
    with pytest.raises(EventNotFound):
        etags.after_refused_delete(conflict(repeated=False), "Google", lambda: raising(gone))


@pytest.mark.parametrize("repeated", [True, False])
@pytest.mark.parametrize("read", [lambda: EVENT, lambda: raising(Unavailable("down"))])
def test_a_refused_delete_of_an_event_that_is_there_has_not_been_done(repeated, read):
    with pytest.raises(EventChanged) as raised:
        etags.after_refused_delete(conflict(repeated=repeated), "Google", read)
    assert raised.value.repeated is repeated
