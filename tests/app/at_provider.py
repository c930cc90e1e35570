"""Both sides of a connected account: the API, and the events at the provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from werkzeug.test import TestResponse

from providers.microsoft import properties
from providers.sandbox.client import Sandbox, SandboxAccount
from tests.conftest import Api
from tests.providers.sandbox import callers

SUBJECT = {"google": "summary", "microsoft": "subject"}
INSERT = {"google": "google.events.insert", "microsoft": "microsoft.events.insert"}
GET = {"google": "google.events.get", "microsoft": "microsoft.events.get"}
UPDATE = {"google": "google.events.patch", "microsoft": "microsoft.events.update"}
DELETE = {"google": "google.events.delete", "microsoft": "microsoft.events.delete"}
# The call that looks for the event after an insert without an answer.
LOOK = {"google": "google.events.get", "microsoft": "microsoft.batch"}

NINE = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}


class AtProvider:
    """An account's events, read and written without Almanac."""

    def __init__(self, sandbox: Sandbox, account: SandboxAccount) -> None:
        self.account = account
        self.provider = account.provider
        by_provider = {"google": callers.google, "microsoft": callers.graph}
        self.call = by_provider[account.provider](sandbox, account)

    def events(self, calendar: str = "primary") -> list[dict[str, Any]]:
        """All events of a calendar that are not deleted, a series being one, as the provider returns them."""
        google = self.provider == "google"
        query = {"maxResults": "2500"} if google else {"$top": "1000"}
        found: list[dict[str, Any]] = []
        while query:
            page = self.call.get(self._events(calendar), **query)
            found += page["items" if google else "value"]
            query = self._next(page, query)
        return found

    def _next(self, page: dict[str, Any], query: dict[str, str]) -> dict[str, str]:
        """The query of the next page; empty after the last."""
        if self.provider == "google":
            token = page.get("nextPageToken")
            return {**query, "pageToken": token} if token else {}
        return dict(parse_qsl(urlsplit(page.get("@odata.nextLink", "")).query))

    def subjects(self, calendar: str = "primary") -> list[str]:
        """Their subjects, in alphabetical order."""
        return sorted(event.get(SUBJECT[self.provider], "") for event in self.events(calendar))

    def event(self, event_id: str) -> dict[str, Any]:
        """One event of the main calendar, with Almanac's private properties."""
        path = f"{self._events('primary')}/{event_id}"
        if self.provider == "google":
            found: dict[str, Any] = self.call.get(path)
        else:
            found = self.call.get(f"{path}?{properties.EXPAND}")
        return found

    def post(self, calendar: str = "primary", **fields: Any) -> dict[str, Any]:
        """Create an event as another program does: by default on Thursday at nine."""
        utc = {} if self.provider == "google" else {"timeZone": "UTC"}
        when = {name: {"dateTime": at.rstrip("Z") if utc else at, **utc} for name, at in NINE.items()}
        # Google ignores a conference without this parameter; Graph ignores the parameter.
        query = {"conferenceDataVersion": "1"}
        answer = self.call("POST", self._events(calendar), json={**when, **fields}, params=query)
        assert answer.status_code in (200, 201), answer.text
        made: dict[str, Any] = answer.json()
        return made

    def patch(self, event_id: str, **fields: Any) -> None:
        """Change an event as another program does."""
        answer = self.call("PATCH", f"{self._events('primary')}/{event_id}", json=fields)
        assert answer.status_code == 200, answer.text

    def delete(self, event_id: str) -> None:
        """Delete an event as another program does."""
        assert self.call("DELETE", f"{self._events('primary')}/{event_id}").status_code == 204

    def _events(self, calendar: str) -> str:
        if self.provider == "google":
            return f"calendars/{quote(calendar, safe='')}/events"
        return "me/events" if calendar == "primary" else f"me/calendars/{quote(calendar, safe='')}/events"


@dataclass
class Person:
    """A user with one account; each call concerns an event in one of its calendars."""

    api: Api
    user: str
    account: SandboxAccount
    there: AtProvider

    @property
    def provider(self) -> str:
        return self.account.provider

    @property
    def main(self) -> str:
        """The id of the main calendar in answers."""
        assert self.account.main_calendar_id is not None
        return self.account.main_calendar_id

    def path(self, event_id: str | None = None, calendar: str = "primary") -> str:
        ids = [calendar] if event_id is None else [calendar, event_id]
        return "/".join(
            [f"/users/{self.user}/calendar/events/{self.provider}", *(quote(each, safe="") for each in ids)]
        )

    def create(self, *, calendar: str = "primary", headers: Any = None, **body: Any) -> TestResponse:
        return self.api.post(self.path(calendar=calendar), NINE | body, headers=headers)

    def get(self, event_id: str, *, calendar: str = "primary") -> TestResponse:
        return self.api.get(self.path(event_id, calendar))

    def update(
        self, event_id: str, *, calendar: str = "primary", headers: Any = None, **body: Any
    ) -> TestResponse:
        return self.api.put(self.path(event_id, calendar), body, headers=headers)

    def delete(
        self, event_id: str, *, calendar: str = "primary", headers: Any = None, **query: str
    ) -> TestResponse:
        return self.api.delete(self.path(event_id, calendar), query_string=query, headers=headers)

    def book(
        self, body: Any = None, *, calendar: str = "primary", headers: Any = None, **query: str
    ) -> TestResponse:
        """Create an event if its time is free, or held."""
        condition = query if "hold" in query else {"ifFree": "true"} | query
        return self.api.post(
            self.path(calendar=calendar), NINE | (body or {}), query_string=condition, headers=headers
        )

    def move(
        self, event_id: str, body: Any, *, calendar: str = "primary", headers: Any = None, **query: str
    ) -> TestResponse:
        """Give an event another time, if that is free."""
        condition = {"ifFree": "true"} | query
        return self.api.put(self.path(event_id, calendar), body, query_string=condition, headers=headers)

    def made(self, **body: Any) -> dict[str, Any]:
        """The event of a create that must succeed."""
        return one(self.create(**body), 201)


def one(answer: TestResponse, status: int = 200) -> dict[str, Any]:
    """The event, or the unified event, of an answer that must succeed."""
    assert answer.status_code == status, answer.text
    assert answer.json is not None
    found: dict[str, Any] = answer.json["data"]
    return found


def conflicts(answer: TestResponse) -> list[tuple[str, str]]:
    """The clock times of the conflicts of a refused booking."""
    assert answer.status_code == 409, answer.json
    assert answer.json is not None
    assert answer.json["code"] == "slotTaken"
    return [(each["start"][11:16], each["end"][11:16]) for each in answer.json["conflicts"]]


# The fields of an event that the provider sets, and no client.
SET_BY_PROVIDER = {
    *("original", "status", "showAs", "organizer", "webLink", "recurringEventId", "updatedAt", "etag"),
    *("visibility", "reminders", "timeZone", "seriesId", "originalStart"),
}


def bare(event: dict[str, Any]) -> dict[str, Any]:
    """An event without the fields that the provider sets."""
    attendees = [{n: v for n, v in each.items() if n != "original"} for each in event["attendees"]]
    return {n: v for n, v in event.items() if n not in SET_BY_PROVIDER} | {"attendees": attendees}
