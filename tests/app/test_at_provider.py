"""The helper that reads from providers reads all pages."""

from __future__ import annotations

import pytest

from tests.app.at_provider import AtProvider

# More than a page of either provider.
MANY = {"google": 2_600, "microsoft": 1_100}


@pytest.mark.parametrize("provider", MANY)
def test_every_page_of_events_is_read(sandbox, provider):
    events = [
        {"subject": f"{n:04}", "start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
        for n in range(MANY[provider])
    ]
    account = sandbox.account(provider, "ada@example.com", events=events)
    assert AtProvider(sandbox, account).subjects() == [each["subject"] for each in events]
