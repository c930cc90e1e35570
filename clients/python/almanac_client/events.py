"""Events in calendars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict, Unpack
from zoneinfo import ZoneInfo

from almanac_client.answers import Answer
from almanac_client.bodies import AttendeeBody, MeetingUrl
from almanac_client.messages import Request, path
from almanac_client.operations import PAGE, Listing, Operation, answer, answers, data, nothing, whole
from almanac_client.parameters import AccountReading, When, body, headers, matching, query
from almanac_client.records import ChangesAnswer, Event
from almanac_client.resources import Resource, TransportT, listing, operation
from almanac_client.words import InvitationResponse, ProfileUse, Provider, SeriesScope, ShowAs, Visibility

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
    show_as: ShowAs
    visibility: Visibility
    # Minutes before the start; None: those of the calendar.
    reminders: Sequence[int] | None
    # Lines of RFC 5545, such as RRULE:FREQ=WEEKLY;COUNT=10.
    recurrence: Sequence[str]
    # The zone of the event; ``zone`` by default.
    time_zone: str | ZoneInfo
    zone: str | ZoneInfo


class NewEvent(EventWording, total=False):
    """Fields of a new event; ``id`` is only for Google, with the characters a-v and 0-9."""

    id: str
    send_notifications: bool


class EventChange(EventWording, total=False):
    """Fields to change in an existing event."""

    start: When
    end: When
    send_notifications: bool


class EventSearch(AccountReading, total=False):
    """Which events of a list are wanted; ``q`` is a text of the subject, description or an attendee."""

    q: str
    updated_since: When


class Events(Resource[TransportT]):
    """Events in the calendars of a user."""

    @operation
    def list(
        self, user_id: str, *, start: When, end: When, **which: Unpack[EventSearch]
    ) -> Operation[Answer[EventList]]:
        """The events of all calendars, series expanded, sorted by start.

        >>> [each.subject for each in almanac.events.list("ada", start=monday, end=friday).data]
        """
        where, params = path("/users/{}/calendar/events", user_id), query(which, start=start, end=end)
        return Operation(Request.get(where, params, headers(which)), answer(EventList))

    @listing
    def pages(
        self,
        user_id: str,
        *,
        start: When,
        end: When,
        limit: int = PAGE,
        **which: Unpack[EventSearch],
    ) -> Listing[Answer[EventList]]:
        """The same in pages; each page names the calendars that could not be read.

        >>> for page in almanac.events.pages("ada", start="2026-01-01", end="2026-12-31"): show(page.data)
        """
        where, params = path("/users/{}/calendar/events", user_id), query(which, start=start, end=end)
        return Listing(Request.get(where, params, headers(which)), limit, answers(EventList))

    @operation
    def changes(
        self,
        user_id: str,
        *,
        start: When | None = None,
        end: When | None = None,
        cursor: str | None = None,
        **which: Unpack[AccountReading],
    ) -> Operation[ChangesAnswer]:
        """All events from ``start`` on, or the changes since an earlier answer, by its ``cursor``.

        ``CursorExpired`` is raised when a provider no longer knows that: begin again without ``cursor``.

        >>> answer = almanac.events.changes("ada", start="2026-11-23")
        >>> answer = almanac.events.changes("ada", cursor=answer.cursor)
        """
        where = path("/users/{}/calendar/changes", user_id)
        params = query(which, start=start, end=end, cursor=cursor)
        return Operation(Request.get(where, params, headers(which)), whole(ChangesAnswer))

    @operation
    def create(
        self,
        user_id: str,
        provider: Provider,
        calendar_id: str,
        *,
        start: When,
        end: When,
        if_free: bool | None = None,
        hold: str | None = None,
        padding: int | None = None,
        padding_before: int | None = None,
        padding_after: int | None = None,
        max_overlaps: int | None = None,
        minimum_notice: int | None = None,
        profile: ProfileUse | None = None,
        calendar_ids: Sequence[str] = (),
        accounts: Sequence[Provider] = (),
        connection: Sequence[str] = (),
        idempotency_key: str | None = None,
        **event: Unpack[NewEvent],
    ) -> Operation[Event]:
        """Create an event; dates make it an all-day event. ``primary`` is the account's main calendar.

        Of several accounts with the provider, the one that has the calendar is used, or ``connection``.

        With ``if_free`` or a ``hold``, only in time that is free or held; ``Conflict`` is raised otherwise.
        ``if_free`` reads the calendar of the event, and the main ones of all accounts, or ``calendar_ids``,
        or those of ``accounts``.

        >>> almanac.events.create("ada", "google", "primary", start=at_nine, end=at_ten, subject="Review")
        """
        request = Request.create(
            path("/users/{}/calendar/events/{}/{}", user_id, provider, calendar_id),
            body(event, start=start, end=end),
            query=query(
                if_free=if_free,
                hold=hold,
                padding=padding,
                padding_before=padding_before,
                padding_after=padding_after,
                max_overlaps=max_overlaps,
                minimum_notice=minimum_notice,
                profile=profile,
                calendar_ids=list(calendar_ids),
                provider=list(accounts),
                connection=list(connection),
            ),
            headers=headers(event),
            idempotency_key=idempotency_key,
        )
        return Operation(request, data(Event))

    @operation
    def get(
        self,
        user_id: str,
        provider: Provider,
        calendar_id: str,
        event_id: str,
        *,
        connection: Sequence[str] = (),
    ) -> Operation[Event]:
        """An event.

        >>> almanac.events.get("ada", "google", "primary", event.id).start
        """
        where = _path(user_id, provider, calendar_id, event_id)
        return Operation(Request.get(where, query(connection=connection)), data(Event))

    @operation
    def change(
        self,
        user_id: str,
        provider: Provider,
        calendar_id: str,
        event_id: str,
        *,
        connection: Sequence[str] = (),
        if_match: str | None = None,
        scope: SeriesScope | None = None,
        if_free: bool | None = None,
        padding: int | None = None,
        padding_before: int | None = None,
        padding_after: int | None = None,
        max_overlaps: int | None = None,
        minimum_notice: int | None = None,
        profile: ProfileUse | None = None,
        **changes: Unpack[EventChange],
    ) -> Operation[Event]:
        """Change the given fields of an event; with ``if_match``, only if it still has this ``etag``.

        With ``if_free``, it gets a new time only if that is free, and its own old time counts as free;
        ``Conflict`` is raised otherwise.

        ``scope`` extends the change to the series of an occurrence; ``following`` returns the new series.

        >>> almanac.events.change("ada", "google", "primary", event.id, location="Room 4")
        """
        request = Request(
            "PUT",
            _path(user_id, provider, calendar_id, event_id),
            query(
                connection=connection,
                scope=scope,
                if_free=if_free,
                padding=padding,
                padding_before=padding_before,
                padding_after=padding_after,
                max_overlaps=max_overlaps,
                minimum_notice=minimum_notice,
                profile=profile,
            ),
            body(changes),
            headers(changes) | matching(if_match),
        )
        return Operation(request, data(Event))

    @operation
    def respond(
        self,
        user_id: str,
        provider: Provider,
        calendar_id: str,
        event_id: str,
        *,
        response: InvitationResponse,
        comment: str | None = None,
        notify: bool | None = None,
        connection: Sequence[str] = (),
    ) -> Operation[Event]:
        """Answer the invitation to an event as the account; ``notify``: whether the organizer gets a message.

        >>> almanac.events.respond("ada", "google", "primary", event.id, response="accepted")
        """
        where = f"{_path(user_id, provider, calendar_id, event_id)}/response"
        answered = body(response=response, comment=comment, notify=notify)
        return Operation(Request("POST", where, query(connection=connection), answered), data(Event))

    @operation
    def delete(
        self,
        user_id: str,
        provider: Provider,
        calendar_id: str,
        event_id: str,
        *,
        connection: Sequence[str] = (),
        send_notifications: bool | None = None,
        scope: SeriesScope | None = None,
        if_match: str | None = None,
    ) -> Operation[None]:
        """Delete an event; with ``if_match``, only if it still has this ``etag``.

        ``scope`` extends the deletion to the series of an occurrence, or to this one and the following.

        >>> almanac.events.delete("ada", "google", "primary", event.id, send_notifications=True)
        """
        where, params = (
            _path(user_id, provider, calendar_id, event_id),
            query(connection=connection, send_notifications=send_notifications, scope=scope),
        )
        return Operation(Request("DELETE", where, params, headers=matching(if_match)), nothing)


def _path(user_id: str, provider: str, calendar_id: str, event_id: str) -> str:
    return path("/users/{}/calendar/events/{}/{}/{}", user_id, provider, calendar_id, event_id)
