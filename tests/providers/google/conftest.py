"""The adapter of Google Calendar with an account of the sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from providers.google.client import Google
from providers.sandbox.client import Sandbox
from tests.providers.google.google_calls import CALENDARS, GoogleCalls
from tests.providers.sandbox.callers import google


@pytest.fixture
def new(sandbox: Sandbox, google_endpoints: Any, connect: Any) -> Any:
    """Make an account and the adapter that reads it."""

    def make(*events: dict[str, Any], left: float = 5.0, **more: Any) -> GoogleCalls:
        more = {"calendars": CALENDARS} | more
        account = sandbox.account("google", "alice@example.com", events=events, **more)
        return GoogleCalls(Google(google_endpoints), connect(account), google(sandbox, account), left)

    return make


@pytest.fixture
def calls(new: Any) -> GoogleCalls:
    made: GoogleCalls = new()
    return made
