"""Fixtures: calendars in use that have channels."""

from __future__ import annotations

import pytest

from store.cache.busy_cache import CalendarKey
from tests.workers.upkeep.watching import MEETING, confirm
from workers.upkeep import channel_opening


@pytest.fixture
def watched(reached, sandbox, connected, unique):
    """A calendar in use with a meeting tomorrow at nine, and a confirmed channel."""

    def make(provider: str, *, used: bool = True, confirmed: bool = True) -> CalendarKey:
        account = sandbox.account(provider, f"{unique('ada')}@example.com", events=[MEETING])
        key = CalendarKey(connected(account), "primary")
        if used:
            reached.stores.channel_usage.use([key])
        assert channel_opening.open_one(reached, key)
        if confirmed:
            confirm(reached, key)
        sandbox.forget_requests()
        return key

    return make
