"""Unified events: one event in the main calendar of each account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from almanac_client.answers import Answer
from almanac_client.events import EventWording
from almanac_client.messages import Request, path
from almanac_client.operations import Operation, answer, data, nothing
from almanac_client.parameters import When, body, headers, query
from almanac_client.records import UnifiedEvent
from almanac_client.resources import Resource, TransportT, operation
from almanac_client.words import ProfileUse, Provider


class UnifiedWording(EventWording, total=False):
    """Fields of a new unified event, and the providers that notify its guests."""

    send_notifications_for: Sequence[Provider]


class UnifiedChange(UnifiedWording, total=False):
    """Fields to change in every copy of a unified event."""

    start: When
    end: When


class UnifiedEvents(Resource[TransportT]):
    """One event in the main calendar of each of a user's accounts, or of each with the given providers
    or connections.
    """

    @operation
    def create(
        self,
        user_id: str,
        *,
        start: When,
        end: When,
        provider: Sequence[Provider] = (),
        connection: Sequence[str] = (),
        if_free: bool | None = None,
        hold: str | None = None,
        padding: int | None = None,
        padding_before: int | None = None,
        padding_after: int | None = None,
        max_overlaps: int | None = None,
        minimum_notice: int | None = None,
        profile: ProfileUse | None = None,
        calendar_ids: Sequence[str] = (),
        idempotency_key: str | None = None,
        **event: Unpack[UnifiedWording],
    ) -> Operation[UnifiedEvent]:
        """Create it in every account, or in none; conditions as for events of one calendar.

        >>> almanac.unified_events.create("ada", start=at_nine, end=at_ten, subject="Review").meta_id
        """
        request = Request.create(
            path("/users/{}/calendar/events/meta", user_id),
            body(event, start=start, end=end),
            query=query(
                provider=provider,
                connection=connection,
                if_free=if_free,
                hold=hold,
                padding=padding,
                padding_before=padding_before,
                padding_after=padding_after,
                max_overlaps=max_overlaps,
                minimum_notice=minimum_notice,
                profile=profile,
                calendar_ids=list(calendar_ids),
            ),
            headers=headers(event),
            idempotency_key=idempotency_key,
        )
        return Operation(request, data(UnifiedEvent))

    @operation
    def get(
        self,
        user_id: str,
        meta_id: str,
        *,
        provider: Sequence[Provider] = (),
        connection: Sequence[str] = (),
    ) -> Operation[Answer[UnifiedEvent]]:
        """A unified event; accounts whose copy could not be read are named.

        >>> len(almanac.unified_events.get("ada", meta_id).data.events)
        """
        request = Request.get(_path(user_id, meta_id), query(provider=provider, connection=connection))
        return Operation(request, answer(UnifiedEvent))

    @operation
    def change(
        self,
        user_id: str,
        meta_id: str,
        /,
        *,
        provider: Sequence[Provider] = (),
        connection: Sequence[str] = (),
        **changes: Unpack[UnifiedChange],
    ) -> Operation[UnifiedEvent]:
        """Change the given fields of every copy; on failure, the error names the accounts that still differ.

        >>> almanac.unified_events.change("ada", meta_id, subject="Review of the plan")
        """
        where, params = _path(user_id, meta_id), query(provider=provider, connection=connection)
        request = Request("PUT", where, params, body(changes), headers(changes))
        return Operation(request, data(UnifiedEvent))

    @operation
    def delete(
        self,
        user_id: str,
        meta_id: str,
        *,
        provider: Sequence[Provider] = (),
        connection: Sequence[str] = (),
        send_notifications_for: Sequence[Provider] = (),
    ) -> Operation[None]:
        """Delete every copy; on failure, the error names the accounts that still have one.

        >>> almanac.unified_events.delete("ada", meta_id, send_notifications_for=["google"])
        """
        params = query(
            provider=provider, connection=connection, send_notifications_for=send_notifications_for
        )
        return Operation(Request("DELETE", _path(user_id, meta_id), params), nothing)


def _path(user_id: str, meta_id: str) -> str:
    return path("/users/{}/calendar/events/meta/{}", user_id, meta_id)
