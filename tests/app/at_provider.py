"""Both ends of one connected account: our API, and what the provider itself has."""

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
# The call that looks for the event of an insert that had no answer.
LOOK = {"google": "google.events.get", "microsoft": "microsoft.batch"}

NINE = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}


class AtProvider:
    """An account's events, read and written without our service."""

    def __init__(self, sandbox: Sandbox, account: SandboxAccount) -> None:
        self.account = account
        self.provider = account.provider
        by_provider = {"google": callers.google, "microsoft": callers.graph}
        self.call = by_provider[account.provider](sandbox, account)

    def events(self, calendar: str = "primary") -> list[dict[str, Any]]:
        """Every living event of a calendar, a series being one, in the provider's own words."""
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
        """What they are called, in order of the alphabet."""
        return sorted(event.get(SUBJECT[self.provider], "") for event in self.events(calendar))

    def event(self, event_id: str) -> dict[str, Any]:
        """One event of the main calendar, with our own properties."""
        path = f"{self._events('primary')}/{event_id}"
        if self.provider == "google":
            found: dict[str, Any] = self.call.get(path)
        else:
            found = self.call.get(f"{path}?{properties.EXPAND}")
        return found

    def post(self, calendar: str = "primary", **fields: Any) -> dict[str, Any]:
        """An event made by somebody else's program, on the Thursday at nine unless it says otherwise."""
        utc = {} if self.provider == "google" else {"timeZone": "UTC"}
        when = {name: {"dateTime": at.rstrip("Z") if utc else at, **utc} for name, at in NINE.items()}
        # Google takes a conference only from those who say that they know of it; Graph passes this over.
        query = {"conferenceDataVersion": "1"}
        answer = self.call("POST", self._events(calendar), json={**when, **fields}, params=query)
        assert answer.status_code in (200, 201), answer.text
        made: dict[str, Any] = answer.json()
        return made

    def patch(self, event_id: str, **fields: Any) -> None:
        """The same program, changing it."""
        answer = self.call("PATCH", f"{self._events('primary')}/{event_id}", json=fields)
        assert answer.status_code == 200, answer.text

    def delete(self, event_id: str) -> None:
        """The same program, deleting it."""
        assert self.call("DELETE", f"{self._events('primary')}/{event_id}").status_code == 204

    def _events(self, calendar: str) -> str:
        if self.provider == "google":
            return f"calendars/{quote(calendar, safe='')}/events"
        return "me/events" if calendar == "primary" else f"me/calendars/{quote(calendar, safe='')}/events"


@dataclass
class Person:
    """A user with one account; each call is about an event in one of its calendars."""

    api: Api
    user: str
    account: SandboxAccount
    there: AtProvider

    @property
    def provider(self) -> str:
        return self.account.provider

    @property
    def main(self) -> str:
        """What answers call the main calendar."""
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

    def delete(self, event_id: str, *, calendar: str = "primary", **query: str) -> TestResponse:
        return self.api.delete(self.path(event_id, calendar), query_string=query)

    def made(self, **body: Any) -> dict[str, Any]:
        """The event of a create that must succeed."""
        return one(self.create(**body), 201)


def one(answer: TestResponse, status: int = 200) -> dict[str, Any]:
    """The event, or the unified event, of an answer that must succeed."""
    assert answer.status_code == status, answer.text
    assert answer.json is not None
    found: dict[str, Any] = answer.json["data"]
    return found


def bare(event: dict[str, Any]) -> dict[str, Any]:
    """An event without the provider's own records."""
    attendees = [{n: v for n, v in each.items() if n != "original"} for each in event["attendees"]]
    return {n: v for n, v in event.items() if n != "original"} | {"attendees": attendees}
