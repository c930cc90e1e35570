"""The events of a Microsoft 365 mailbox, through the adapter and directly from Graph."""

from __future__ import annotations

from typing import Any

from providers.base import Account
from providers.microsoft.client import Microsoft
from providers.microsoft.oauth import MicrosoftEndpoints
from tests.providers.event_calls import MEETING, Calls
from tests.providers.sandbox.callers import Caller

MAIN, TEAM, BOSS = "AAMkAGmain=", "AAMkAGteam=", "AAMkAGboss="
CALENDARS = [
    {"id": MAIN, "primary": True},
    {"id": TEAM, "subject": "Team"},
    {"id": BOSS, "subject": "Boss", "accessRole": "reader"},
]
BATCH, VIEW, SETTINGS = "microsoft.batch", "microsoft.calendarView.list", "microsoft.mailboxSettings.get"
GET, INSERT = "microsoft.events.get", "microsoft.events.insert"
UPDATE, DELETE = "microsoft.events.update", "microsoft.events.delete"
GOOD = {
    "id": "AAMk1",
    "start": {"dateTime": "2026-12-03T09:00:00.0000000", "timeZone": "UTC"},
    "end": {"dateTime": "2026-12-03T10:00:00.0000000", "timeZone": "UTC"},
    "calendar": {"id": MAIN, "isDefaultCalendar": True},
}


class GraphCalls(Calls):
    """Direct calls to Graph, as another application would make them."""

    def post(self, calendar: str = "", **fields: Any) -> Any:
        """An event created by another application."""
        path = f"me/calendars/{calendar}/events" if calendar else "me/events"
        when = {name: {"dateTime": MEETING[name].rstrip("Z"), "timeZone": "UTC"} for name in ("start", "end")}
        answer = self.raw("POST", path, json={"subject": "Lunch", **when, **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def patch(self, event_id: str, **fields: Any) -> None:
        answer = self.raw("PATCH", f"me/events/{event_id}", json=fields)
        assert answer.status_code == 200, answer.text

    def stored(self, event_id: str, **query: str) -> Any:
        """An event as Graph stores it, in UTC and with its body as HTML."""
        return self.raw.get(f"me/events/{event_id}", **query)


def scripted(script: Any, account: Account, left: float = 1.5) -> GraphCalls:
    endpoints = MicrosoftEndpoints(graph=script.url, login=script.url, tenant="common")
    return GraphCalls(Microsoft(endpoints), account, Caller(script.url, "none"), left)
