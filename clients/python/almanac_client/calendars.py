"""Calendars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from almanac_client.answers import Answer
from almanac_client.pages import PAGE, pages
from almanac_client.parameters import answer, query
from almanac_client.records import Calendar, Provider
from almanac_client.transport import Transport, path

# Below, ``list`` is the method.
CalendarList = list[Calendar]


class Calendars:
    """The calendars of a user."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, user_id: str, *, provider: Sequence[Provider] = ()) -> Answer[CalendarList]:
        """The calendars of all of a user's accounts, or of those with these providers.

        >>> [each["subject"] for each in almanac.calendars.list("ada").data]
        """
        reply = self._transport.get(path("/users/{}/calendar", user_id), query({}, provider=provider))
        return answer(reply, CalendarList)

    def pages(
        self, user_id: str, *, provider: Sequence[Provider] = (), limit: int = PAGE
    ) -> Iterator[Answer[CalendarList]]:
        """The same in pages; each page names the calendars that could not be read.

        >>> for page in almanac.calendars.pages("ada", limit=50): show(page.data)
        """
        where, params = path("/users/{}/calendar", user_id), query({}, provider=provider)
        for reply in pages(self._transport, where, params, limit, {}):
            yield answer(reply, CalendarList)
