"""Events in calendars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from almanac_client.answers import Answer
from almanac_client.pages import PAGE, pages
from almanac_client.parameters import AccountReading, When, answer, camel, headers, query, timestamp
from almanac_client.records import AttendeeBody, Event, MeetingUrl, Provider
from almanac_client.transport import Transport, path

# Below, ``list`` is the method.
EventList = list[Event]


class EventWording(TypedDict, total=False):
    """Fields of any event; missing ones stay unchanged.

    ``meeting`` is True for a Meet or Teams link, or the address of an external meeting.
    """

    subject: str
    description: str
    location: str
    attendees: Sequence[AttendeeBody]
    meeting: Literal[True] | MeetingUrl
    meta_id: str
    zone: str


class NewEvent(EventWording, total=False):
    """Fields of a new event; ``id`` is only for Google, with the characters a-v and 0-9."""

    id: str
    send_notifications: bool


class EventChange(EventWording, total=False):
    """Fields to change in an existing event."""

    start: When
    end: When
    send_notifications: bool


class Events:
    """Events in the calendars of a user."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, user_id: str, *, start: When, end: When, **which: Unpack[AccountReading]
    ) -> Answer[EventList]:
        """The events of all calendars, series expanded, sorted by start.

        >>> [each["subject"] for each in almanac.events.list("ada", start=monday, end=friday).data]
        """
        params = query(which, start=start, end=end)
        reply = self._transport.get(path("/users/{}/calendar/events", user_id), params, headers(which))
        return answer(reply, EventList)

    def pages(
        self,
        user_id: str,
        *,
        start: When,
        end: When,
        limit: int = PAGE,
        **which: Unpack[AccountReading],
    ) -> Iterator[Answer[EventList]]:
        """The same in pages; each page names the calendars that could not be read.

        >>> for page in almanac.events.pages("ada", start="2026-01-01", end="2026-12-31"): show(page.data)
        """
        where, params = path("/users/{}/calendar/events", user_id), query(which, start=start, end=end)
        for reply in pages(self._transport, where, params, limit, headers(which)):
            yield answer(reply, EventList)

    def create(
        self,
        user_id: str,
        provider: Provider,
        calendar_id: str,
        *,
        start: When,
        end: When,
        idempotency_key: str | None = None,
        **event: Unpack[NewEvent],
    ) -> Event:
        """Create an event; dates make it an all-day event. ``primary`` is the account's main calendar.

        >>> almanac.events.create("ada", "google", "primary", start=at_nine, end=at_ten, subject="Review")
        """
        reply = self._transport.create(
            path("/users/{}/calendar/events/{}/{}", user_id, provider, calendar_id),
            written(event, start=start, end=end),
            headers=headers(event),
            idempotency_key=idempotency_key,
        )
        made: Event = reply.body["data"]
        return made

    def get(self, user_id: str, provider: Provider, calendar_id: str, event_id: str) -> Event:
        """An event.

        >>> almanac.events.get("ada", "google", "primary", event["id"])["start"]
        """
        found: Event = self._transport.get(_path(user_id, provider, calendar_id, event_id)).body["data"]
        return found

    def change(
        self,
        user_id: str,
        provider: Provider,
        calendar_id: str,
        event_id: str,
        **changes: Unpack[EventChange],
    ) -> Event:
        """Change the given fields of an event.

        >>> almanac.events.change("ada", "google", "primary", event["id"], location="Room 4")
        """
        where = _path(user_id, provider, calendar_id, event_id)
        reply = self._transport.send("PUT", where, body=written(changes), headers=headers(changes))
        changed: Event = reply.body["data"]
        return changed

    def delete(
        self,
        user_id: str,
        provider: Provider,
        calendar_id: str,
        event_id: str,
        *,
        send_notifications: bool | None = None,
    ) -> None:
        """Delete an event.

        >>> almanac.events.delete("ada", "google", "primary", event["id"], send_notifications=True)
        """
        where = _path(user_id, provider, calendar_id, event_id)
        self._transport.send("DELETE", where, query=query({}, send_notifications=send_notifications))


def written(event: Mapping[str, Any], **edges: When) -> dict[str, Any]:
    """The body that writes an event."""
    fields = {name: value for name, value in {**event, **edges}.items() if name != "zone"}
    edge: dict[str, Any] = {name: timestamp(fields[name]) for name in ("start", "end") if name in fields}
    return {camel(name): value for name, value in (fields | edge).items()}


def _path(user_id: str, provider: str, calendar_id: str, event_id: str) -> str:
    return path("/users/{}/calendar/events/{}/{}/{}", user_id, provider, calendar_id, event_id)
