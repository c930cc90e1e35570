"""Events deleted from Google Calendar: one, an occurrence or a series."""

from __future__ import annotations

import pytest

from providers.errors import EventNotFound
from tests.providers.google.google_calls import DELETE, NO_EVENT


def test_an_event_that_never_was_has_not_been_deleted_by_trying_twice(sandbox, calls):
    sandbox.fault(operation=DELETE, status=503, times=1)
    with pytest.raises(EventNotFound):
        calls.delete(NO_EVENT)
    assert sandbox.requests().by_operation[DELETE] == 2
