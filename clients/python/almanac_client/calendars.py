"""Calendars."""

from __future__ import annotations

from collections.abc import Sequence

from almanac_client.answers import Answer
from almanac_client.messages import Request, path
from almanac_client.operations import PAGE, Listing, Operation, answer, answers
from almanac_client.parameters import query
from almanac_client.records import Calendar
from almanac_client.resources import Resource, TransportT, listing, operation
from almanac_client.words import Provider

# Below, ``list`` is the method.
CalendarList = list[Calendar]


class Calendars(Resource[TransportT]):
    """The calendars of a user."""

    @operation
    def list(
        self, user_id: str, *, provider: Sequence[Provider] = (), connection: Sequence[str] = ()
    ) -> Operation[Answer[CalendarList]]:
        """The calendars of all of a user's accounts, or of those with these providers or connections.

        >>> [each.subject for each in almanac.calendars.list("ada").data]
        """
        request = Request.get(
            path("/users/{}/calendar", user_id), query(provider=provider, connection=connection)
        )
        return Operation(request, answer(CalendarList))

    @listing
    def pages(
        self,
        user_id: str,
        *,
        provider: Sequence[Provider] = (),
        connection: Sequence[str] = (),
        limit: int = PAGE,
    ) -> Listing[Answer[CalendarList]]:
        """The same in pages; each page names the calendars that could not be read.

        >>> for page in almanac.calendars.pages("ada", limit=50): show(page.data)
        """
        request = Request.get(
            path("/users/{}/calendar", user_id), query(provider=provider, connection=connection)
        )
        return Listing(request, limit, answers(CalendarList))
