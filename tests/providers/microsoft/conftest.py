"""An account of Microsoft 365 with events, and the adapter that reads it."""

from __future__ import annotations

from typing import Any

import pytest

from providers.microsoft.client import Microsoft
from providers.sandbox.client import Sandbox
from tests.providers.microsoft.graph_calls import CALENDARS, GraphCalls
from tests.providers.sandbox.callers import graph


@pytest.fixture
def new(sandbox: Sandbox, microsoft: Microsoft, connect: Any) -> Any:
    """Make an account and the adapter that reads it."""

    def make(*events: dict[str, Any], left: float = 5.0, **more: Any) -> GraphCalls:
        more = {"calendars": CALENDARS} | more
        account = sandbox.account("microsoft", "alice@contoso.com", events=events, **more)
        return GraphCalls(microsoft, connect(account), graph(sandbox, account), left)

    return make


@pytest.fixture
def calls(new: Any) -> GraphCalls:
    made: GraphCalls = new()
    return made
