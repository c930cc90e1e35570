"""A user's calendars and next events. The browser loads both from the providers after the page itself."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from flask.typing import ResponseReturnValue

from app.availability import connections
from app.availability.failures import Failures
from app.availability.parameters import Freshness
from app.availability.selection import CalendarSelector
from app.dashboard import account_page
from app.dashboard.blueprint import blp, page
from app.dashboard.overview import unread
from app.dashboard.users import get_user
from app.events import lists
from app.http.authentication import authentication
from app.schemas.timestamps import EPOCH, MILLISECOND
from providers import registry
from providers.base import Calendar
from providers.errors import Reason
from providers.events import Event
from scheduling.windows import DAY, zone_exists
from store.sql.models import User
from store.sql.queries.connection_rows import ConnectionRef

DAYS = 7
MAX_EVENTS = 100
ROLES = {
    "owner": "everything",
    "writer": "read and change events",
    "reader": "read events",
    "freeBusyReader": "free and busy times",
}
_SIGN_IN_AGAIN = "Connect the account again, on the page of the user."
_GRANT_MORE = "Connect the account again, on the page of the user, and grant the requested access."
_TRY_AGAIN = "Reload the page in a moment."
_ASK = "Ask the administrator of that account for the reason."
WHAT_TO_DO = {
    Reason.AUTHORIZATION_INVALID: _SIGN_IN_AGAIN,
    Reason.INSUFFICIENT_SCOPES: _GRANT_MORE,
    Reason.ACCESS_DENIED: _ASK,
    Reason.MAILBOX_UNAVAILABLE: _ASK,
    Reason.NOT_FOUND: "It may have been deleted at the provider.",
    Reason.INVALID_CALENDAR_ID: "It may have been deleted at the provider.",
    Reason.PROVIDER_NOT_CONFIGURED: "Enter the provider's client id and secret under Providers.",
    Reason.RATE_LIMITED: _TRY_AGAIN,
    Reason.PROVIDER_ERROR: _TRY_AGAIN,
    Reason.TOO_MANY_CALENDARS: "Hide some of its calendars at the provider.",
}


@dataclass(frozen=True, slots=True)
class ListedEvent:
    """An event as the list shows it, in the time zone of its mailbox."""

    subject: str
    provider: str
    calendar: str
    start: datetime
    end: datetime
    all_day: bool

    @property
    def hours(self) -> str:
        """The start and end time; the end includes its day when that differs."""
        if self.all_day:
            return "all day"
        end = f"{self.end:%H:%M}" if self.end.date() == self.start.date() else f"{self.end:%a %H:%M}"
        return f"{self.start:%H:%M} to {end}"


@blp.get("/users/<custom_id>/calendars")
def user_calendars(custom_id: str) -> ResponseReturnValue:
    """The calendars of a user's accounts."""
    row = get_user(custom_id)
    found = lists.find_calendars(connections.of_user(authentication(), custom_id, {"provider": ()}))
    return page(
        "user_calendars.html",
        id=custom_id,
        calendars=found.calendars,
        failed=failed_calendars(found.failures),
        roles=ROLES,
        title=registry.title,
        account=account_names(row),
        what_to_do=advice_for(row),
    )


@blp.get("/users/<custom_id>/events")
def user_events(custom_id: str) -> ResponseReturnValue:
    """The events of the next days in a user's calendars."""
    row = get_user(custom_id)
    refs = connections.of_user(authentication(), custom_id, {"provider": ()})
    listed = lists.find_calendars(refs)
    start = int(time.time() * 1000)
    selector = CalendarSelector((), primary_only=False)
    found = lists.find_events(refs, selector, start, start + DAYS * DAY, Freshness())
    entries = _entries(found.events[:MAX_EVENTS], listed.calendars)
    return page(
        "user_events.html",
        id=custom_id,
        days=[(day, list(each)) for day, each in groupby(entries, key=lambda entry: entry.start.date())],
        more=len(found.events) - len(entries),
        failed=failed_calendars(found.failures),
        zones=sorted({str(entry.start.tzinfo) for entry in entries}),
        title=registry.title,
        what_to_do=advice_for(row),
    )


def account_names(user: User) -> Mapping[str, str]:
    """The name of each connection by its public id: the provider, with the address if there are several."""
    count = Counter(each.provider for each in user.connections)
    return {
        each.public_id: registry.title(each.provider)
        + (f" ({each.label or each.email or 'unknown'})" if count[each.provider] > 1 else "")
        for each in user.connections
    }


def advice_for(user: User) -> Callable[[str, Reason], str]:
    """What to do when a connection of a user, by its public id, could not be read for a reason."""
    delegated = {each.public_id for each in user.connections if each.grant_id is not None}
    renewals = {each.public_id: account_page.renewal(each) for each in user.connections}

    def advice(connection_id: str, reason: Reason) -> str:
        if connection_id in delegated and reason in unread.BY_GRANT:
            return unread.BY_GRANT[reason]
        renewal = renewals.get(connection_id) if reason == Reason.AUTHORIZATION_INVALID else ""
        return renewal or WHAT_TO_DO[reason]

    return advice


def _entries(
    events: Iterable[tuple[str, Event]], listed: Sequence[tuple[ConnectionRef, Calendar]]
) -> list[ListedEvent]:
    """Events in the time zone of their account's primary calendar; in UTC if that was not read."""
    names = {(each.provider, each.id): each.subject for _, each in listed}
    main_zones = {ref.id: each.time_zone for ref, each in listed if each.primary}
    # A calendar that several accounts list is read through the first one.
    zones = {(each.provider, each.id): main_zones.get(ref.id) for ref, each in reversed(listed)}
    found = [
        ListedEvent(
            subject=event.subject,
            provider=event.provider,
            calendar=names.get((event.provider, calendar_id), calendar_id),
            start=_local(event.start, zones.get((event.provider, calendar_id))),
            end=_local(event.end, zones.get((event.provider, calendar_id))),
            all_day=event.all_day,
        )
        for calendar_id, event in events
    ]
    return sorted(found, key=lambda entry: (entry.start.date(), not entry.all_day, entry.start))


def _local(moment: int, zone: str | None) -> datetime:
    return (EPOCH + moment * MILLISECOND).astimezone(
        ZoneInfo(zone if zone is not None and zone_exists(zone) else "UTC")
    )


def failed_calendars(failures: Failures) -> list[dict[str, Any]]:
    """The calendars that could not be read, for the template."""
    return failures.calendars() if failures else []
