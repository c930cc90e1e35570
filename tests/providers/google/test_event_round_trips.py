"""An event written to Google Calendar is read back unchanged."""

from __future__ import annotations

import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from providers.contents import has_changes
from providers.events import Changes, Draft
from tests.providers.changes import MAILBOX, SECOND, assert_is, days, merged, texts, times

MEET = "https://meet.google.com/"

# Google keeps whole seconds.
WHEN = times(SECOND) | days()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(content=texts(), when=WHEN, changes=st.lists(st.tuples(texts(), st.just({}) | WHEN), max_size=2))
def test_what_is_written_is_read(sandbox, google, connect, content, when, changes):
    account = connect(sandbox.account("google", "alice@example.com", time_zone=MAILBOX))
    deadline = time.monotonic() + 20
    written = content | when
    draft = Draft(Changes(**written), "0" * 64, "f" * 64)
    event = google.create_event(account, "primary", draft, deadline=deadline).event
    assert_is(event, written, MEET)
    for sent, moved in changes:
        update = Changes(**sent, **moved)
        written = merged(written, sent | moved)
        found = google.update_event(account, "primary", event.id, update, deadline=deadline)
        assert_is(found, written, MEET)
        assert has_changes(found, update)
    found = google.event(account, "primary", event.id, deadline=deadline)
    assert_is(found, written, MEET)
    if meta_id := written.get("meta_id"):
        assert google.find_event(account, "primary", meta_id, deadline=deadline) == found
