"""Unified events: one event in the main calendar of each account."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from almanac_client.answers import Answer
from almanac_client.events import EventWording, written
from almanac_client.parameters import When, answer, headers, query
from almanac_client.records import Provider, UnifiedEvent
from almanac_client.transport import Transport, path


class UnifiedWording(EventWording, total=False):
    """Fields of a new unified event, and the providers that notify its guests."""

    send_notifications_for: Sequence[Provider]


class UnifiedChange(UnifiedWording, total=False):
    """Fields to change in every copy of a unified event."""

    start: When
    end: When


class UnifiedEvents:
    """One event in the main calendar of each of a user's accounts, or of each with the given providers."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        user_id: str,
        *,
        start: When,
        end: When,
        provider: Sequence[Provider] = (),
        idempotency_key: str | None = None,
        **event: Unpack[UnifiedWording],
    ) -> UnifiedEvent:
        """Create it in every account, or in none.

        >>> almanac.unified_events.create("ada", start=at_nine, end=at_ten, subject="Review")["metaId"]
        """
        reply = self._transport.create(
            path("/users/{}/calendar/events/meta", user_id),
            written(event, start=start, end=end),
            query=query({}, provider=provider),
            headers=headers(event),
            idempotency_key=idempotency_key,
        )
        made: UnifiedEvent = reply.body["data"]
        return made

    def get(self, user_id: str, meta_id: str, *, provider: Sequence[Provider] = ()) -> Answer[UnifiedEvent]:
        """A unified event; accounts whose copy could not be read are named.

        >>> len(almanac.unified_events.get("ada", meta_id).data["events"])
        """
        where = path("/users/{}/calendar/events/meta/{}", user_id, meta_id)
        return answer(self._transport.get(where, query({}, provider=provider)), UnifiedEvent)

    def change(
        self,
        user_id: str,
        meta_id: str,
        /,
        *,
        provider: Sequence[Provider] = (),
        **changes: Unpack[UnifiedChange],
    ) -> UnifiedEvent:
        """Change the given fields of every copy; on failure, the error names the accounts that still differ.

        >>> almanac.unified_events.change("ada", meta_id, subject="Review of the plan")
        """
        reply = self._transport.send(
            "PUT",
            path("/users/{}/calendar/events/meta/{}", user_id, meta_id),
            query=query({}, provider=provider),
            body=written(changes),
            headers=headers(changes),
        )
        changed: UnifiedEvent = reply.body["data"]
        return changed

    def delete(
        self,
        user_id: str,
        meta_id: str,
        *,
        provider: Sequence[Provider] = (),
        send_notifications_for: Sequence[Provider] = (),
    ) -> None:
        """Delete every copy; on failure, the error names the accounts that still have one.

        >>> almanac.unified_events.delete("ada", meta_id, send_notifications_for=["google"])
        """
        params = query({}, provider=provider, send_notifications_for=send_notifications_for)
        self._transport.send(
            "DELETE", path("/users/{}/calendar/events/meta/{}", user_id, meta_id), query=params
        )
