"""Which calendar contains an event.

Graph looks up an event id in the whole mailbox: a path that names one calendar also finds the events of
every other calendar (https://github.com/microsoftgraph/microsoft-graph-docs/issues/391). So each read of an
event also requests its calendar: ``GET /me/calendars/{id}/events/{id}?$expand=calendar($select=id,…)``.
``calendar`` is a documented relationship of an event: https://learn.microsoft.com/en-us/graph/api/resources/event
"""

from __future__ import annotations

from typing import cast
from urllib.parse import quote

from providers.errors import ProviderError
from providers.http.json_validation import SHAPE_ERRORS
from providers.http.send import unreadable
from providers.microsoft import parse, properties
from providers.microsoft.batch import Part
from providers.microsoft.errors import PROVIDER
from providers.microsoft.mailbox import AS_TEXT, Mailbox
from providers.microsoft.payloads import GraphEvent
from providers.timestamps import DAY

# Query parameter that requests our own properties of an event, and its calendar.
EXPAND = f"$expand={quote(f'{properties.EXPANSION},calendar($select=id,isDefaultCalendar)', safe='')}"

# Ids are short, so pages have the maximum size that Graph allows.
_IDS_PER_PAGE = 1000


def lies_in(mailbox: Mailbox, calendar_id: str, record: GraphEvent) -> bool:
    """Whether an event that was read with ``EXPAND`` is in a calendar.

    When the answer names another calendar, the events of the given calendar are checked: Graph has answered
    calendar ids that are not on the list of calendars
    (https://github.com/microsoftgraph/microsoft-graph-docs/issues/6699).

    :raise NotFound, InvalidCalendarId: when the calendar does not exist
    """
    try:
        calendar = record.get("calendar") or {}
        if calendar.get("id") == calendar_id:
            return True
        if mailbox.is_main(calendar_id) and calendar.get("isDefaultCalendar") is True:
            return True
        start, _ = parse.period(record, "UTC", mailbox.operation)
        return record["id"] in _ids_around(mailbox, calendar_id, start)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, mailbox.operation) from None


def _ids_around(mailbox: Mailbox, calendar_id: str, start: int) -> set[str | None]:
    """The ids of a calendar's events within a day of ``start``, and of their series."""
    window = mailbox.view_path(calendar_id, start - DAY, start + DAY)
    part = Part("view", f"{window}&$select=id,seriesMasterId&$top={_IDS_PER_PAGE}", AS_TEXT)
    pages = mailbox.fetch([part])[part.id]
    if isinstance(pages, ProviderError):
        raise pages
    found = [each for page in pages for each in cast("list[GraphEvent]", parse.values(page))]
    return {each["id"] for each in found} | {each.get("seriesMasterId") for each in found}
