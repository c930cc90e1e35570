"""The event calls of Google Calendar, and the calendars, operations and events of their tests."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

from providers.base import Account
from providers.events import Changes, Moment
from providers.google.client import Google
from tests.providers.addresses import google_at
from tests.providers.event_calls import MEETING, NINE, TEN, Calls
from tests.providers.sandbox.callers import Caller

TEAM, BOSS, DESK = "c_team@group.calendar.google.com", "boss@example.com", "desk@example.com"
HOLIDAYS = "en.german#holiday@group.v.calendar.google.com"
CALENDARS = [
    {"primary": True},
    {"id": TEAM, "subject": "Team"},
    {"id": BOSS, "subject": "Boss", "accessRole": "freeBusyReader"},
    {"id": DESK, "subject": "Desk", "accessRole": "reader"},
]
NO_EVENT = "nosuchevent0"
LIST, GET, INSERT = "google.events.list", "google.events.get", "google.events.insert"
PATCH, PUT, DELETE = "google.events.patch", "google.events.update", "google.events.delete"


class GoogleCalls(Calls):
    """Direct calls to Google, as another application would make them."""

    def post(self, calendar: str = "primary", **fields: Any) -> Any:
        when = {name: {"dateTime": MEETING[name]} for name in ("start", "end")}
        path = f"calendars/{quote(calendar, safe='')}/events"
        query = {"conferenceDataVersion": "1"}
        answer = self.raw("POST", path, json={"summary": "Lunch", **when, **fields}, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def patch(self, event_id: str, **fields: Any) -> None:
        answer = self.raw("PATCH", f"calendars/primary/events/{event_id}", json=fields)
        assert answer.status_code == 200, answer.text

    def stored(self, event_id: str) -> Any:
        """An event as Google stores it."""
        return self.raw.get(f"calendars/primary/events/{event_id}")


def scripted(script: Any, account: Account, left: float = 1.5) -> GoogleCalls:
    return GoogleCalls(Google(google_at(script.url)), account, Caller(script.url, "none"), left)


def midnights(zone: str, *days: int) -> list[int]:
    """The starts of days of December 2026."""
    return [int(datetime(2026, 12, day, tzinfo=ZoneInfo(zone)).timestamp() * 1000) for day in days]


GOOD: dict[str, Any] = {
    "id": "abcde1",
    "start": {"dateTime": "2026-12-03T09:00:00Z"},
    "end": {"dateTime": "2026-12-03T10:00:00Z"},
}
FULL = Changes(
    subject="Old",
    description="Old",
    location="Old",
    start=Moment(NINE),
    end=Moment(TEN),
    attendees=("bob@example.com",),
    meeting=True,
    meta_id="m",
)
