"""An event written to Microsoft 365 is read back unchanged."""

from __future__ import annotations

import time
from dataclasses import fields

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from providers.contents import has_changes
from providers.events import Changes, Draft
from tests.providers.changes import MAILBOX, assert_is, days, merged, texts, times

TEAMS = "https://teams.microsoft.com/"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    content=texts(),
    when=times() | days(),
    changes=st.lists(st.tuples(texts(), st.just({}) | times() | days()), max_size=2),
)
def test_what_is_written_is_read(sandbox, microsoft, connect, content, when, changes):
    account = connect(sandbox.account("microsoft", "alice@contoso.com", time_zone=MAILBOX))
    deadline = time.monotonic() + 20
    written = content | when
    draft = Draft(Changes(**written), "0" * 64, "f" * 64)
    event = microsoft.create_event(account, "primary", draft, deadline=deadline).event
    assert_is(event, written, TEAMS)
    for sent, moved in changes:
        update = Changes(**sent, **moved)
        written = merged(written, sent | moved)
        found = microsoft.update_event(account, "primary", event.id, update, deadline=deadline)
        assert_is(found, written, TEAMS)
        assert has_changes(found, update)
    found = microsoft.event(account, "primary", event.id, deadline=deadline)
    assert_is(found, written, TEAMS)


def test_every_field_of_a_change_is_tried():
    tried = {"subject", "description", "location", "attendees", "meta_id", "start", "end"}
    assert tried | {"meeting", "meeting_url", "notify"} == {field.name for field in fields(Changes)}
