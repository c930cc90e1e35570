"""A user with two calendars in an account of each provider, and the two forms of the list of their events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.app.days import DAY
from tests.app.two_accounts import ADA as ADA

BARE = {"minDate": DAY["start"], "maxDate": DAY["end"]}
FORMS = pytest.mark.parametrize("form", [DAY, BARE], ids=["start", "minDate"])
TEAM, SIDE = "team@group.calendar.google.com", "AAMk-side"


def subjects(events: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Their subjects, in the order of the answer."""
    return [each["subject"] for each in events]
