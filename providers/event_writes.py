"""Parts of event writes for all adapters: fields, unknown outcomes, and zones that a provider does not know.

Not every provider has every field of an event. A value that it cannot store is refused before the write.

After a create whose answer was lost, the adapter looks for the event before it reports a failure. An update
or a delete is safe to repeat, so the adapter only reports that its outcome is unknown.

Providers' databases of zones are of different ages: one knows ``Europe/Kyiv``, another only ``Europe/Kiev``
or Windows' ``FLE Standard Time``. A write tries other spellings of a zone that the provider refuses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from providers.errors import (
    AccessDenied,
    AuthorizationInvalid,
    EventExists,
    EventRefused,
    FieldRefused,
    LocalResourceExhausted,
    OutcomeUnknown,
    ProviderError,
    RateLimited,
    Unavailable,
    ZoneRefused,
)
from providers.events import (
    Changes,
    CreateResult,
    Draft,
    Event,
    Recurrence,
    Reminders,
    ShowAs,
    Visibility,
    When,
)
from providers.recurrence import BadRecurrence
from scheduling.zones import iana_zone


@dataclass(frozen=True, slots=True)
class EventFields:
    """The values that a provider can store.

    ``show_as`` has the word that is stored for each word. ``reminders`` is the greatest number of reminders,
    and ``default_reminders`` says whether an event can have those of its calendar. ``optional_resources``: an
    attendee can be a resource and optional. ``recurrence`` checks a recurrence for parts that the provider
    does not have, given the start of the series if that is written too.
    """

    show_as: Mapping[ShowAs, ShowAs] = field(default_factory=dict)
    visibility: Collection[Visibility] = ()
    reminders: int = 0
    default_reminders: bool = False
    optional_resources: bool = False
    recurrence: Callable[[Recurrence, When | None], None] = lambda given, start: None

    def fit(self, changes: Changes, title: str, *, new: bool) -> Changes:
        """The changes with the values that are stored; ``title`` is the provider's, ``new`` means a create.

        :raise FieldRefused: for a value that has no equivalent
        """
        shown = changes.show_as
        if shown is not None and (shown := self.show_as.get(shown)) is None:
            raise FieldRefused("showAs", f"cannot be {changes.show_as}: {title} does not store it")
        if changes.visibility is not None and changes.visibility not in self.visibility:
            raise FieldRefused("visibility", f"cannot be {changes.visibility}: {title} does not store it")
        if not self.optional_resources and any(
            each.optional and each.resource for each in changes.guests or ()
        ):
            raise FieldRefused("attendees", f"must not be both optional and resource at {title}")
        if changes.recurrence is not None:
            try:
                self.recurrence(changes.recurrence, changes.start)
            except BadRecurrence as error:
                raise FieldRefused("recurrence", str(error)) from None
        return replace(changes, show_as=shown, reminders=self._reminders(changes.reminders, title, new=new))

    def _reminders(self, reminders: Reminders | None, title: str, *, new: bool) -> Reminders | None:
        if reminders is None:
            return None
        if reminders.minutes is None:
            if not (self.default_reminders or new):
                raise FieldRefused("reminders", f"must not be null: {title} has no reminders of a calendar")
            # A new event without reminders gets what the provider adds to it.
            return None if new else reminders
        if len(reminders.minutes) > self.reminders:
            raise FieldRefused("reminders", f"must have at most {self.reminders} elements at {title}")
        return reminders


# Google's limits on reminders, which the API has for all providers:
# https://developers.google.com/workspace/calendar/api/v3/reference/events#reminders.overrides
MAX_REMINDERS = 5
MAX_REMINDER_MINUTES = 40_320

# Every word is stored as it is.
ALL_SHOWN: Mapping[ShowAs, ShowAs] = {each: each for each in ShowAs}

# Seconds reserved for the lookup after a create without an answer, and the largest share of the time left
# that it may take.
# With the usual deadline two attempts of the insert still fit before it.
LOOKUP_SECONDS = 1.5
LOOKUP_SHARE = 0.2


def insert_deadline(deadline: float) -> float:
    """The deadline of the insert, with time reserved for the lookup."""
    left = max(0.0, deadline - time.monotonic())
    return deadline - min(LOOKUP_SECONDS, left * LOOKUP_SHARE)


def is_unclear(error: ProviderError) -> bool:
    """Whether a failed write may have been executed.

    A write that was rejected, rate limited or never sent has no effect, unless an earlier attempt of the
    same write got no answer.
    """
    if isinstance(error, RateLimited | LocalResourceExhausted) or error.unsent:
        return error.repeated
    return error.repeated or isinstance(error, Unavailable)


def with_outcome(error: ProviderError) -> ProviderError:
    """The failure of a write, as ``OutcomeUnknown`` if the write may have been executed.

    Other errors say enough: that the event does not exist, that it has changed, that its content is refused,
    or that the grant has ended.
    """
    if not (is_unclear(error) and isinstance(error, Unavailable | AccessDenied)):
        return error
    unknown = OutcomeUnknown(error.message, operation=error.operation)
    unknown.repeated = error.repeated
    return unknown


def found_after_failure(error: ProviderError, lookup: Callable[[], CreateResult | None]) -> CreateResult:
    """The event of an insert that failed with ``error``, if it exists; ``lookup`` finds it.

    :raise OutcomeUnknown: when the insert may have been executed and the event is not found
    :raise AuthorizationInvalid: with ``repeated`` set, when the grant ended before the lookup
    :raise ProviderError: ``error`` itself when the insert had no effect
    """
    if not is_unclear(error):
        raise error
    try:
        found = lookup()
    except EventExists:
        raise
    except AuthorizationInvalid as lost:
        lost.repeated = True
        raise
    except ProviderError:
        found = None
    if found is None:
        raise OutcomeUnknown(error.message, operation=error.operation) from None
    return found


Json = dict[str, Any]

_EDGES = ("start", "end")


def write_with_known_zone(
    body: Json | None, other_name: Callable[[str], str | None], write: Callable[[Json | None], Json]
) -> Json:
    """The answer to ``write``: with the body, else with other names of its zones, else with times in UTC.

    A series of times is never in UTC instead.

    :raise ZoneRefused: when the provider refuses every spelling
    """
    for spelling in _spellings(body, other_name):
        try:
            return write(spelling)
        except ZoneRefused as error:
            refused = error
    raise refused


def _spellings(body: Json | None, other_name: Callable[[str], str | None]) -> Iterator[Json | None]:
    yield body
    zones = {name: edge["timeZone"] for name, edge in _edges(body).items() if edge.get("timeZone")}
    if not zones:
        return
    others = {name: other_name(zone) for name, zone in zones.items()}
    if any(others.values()):
        yield _changed(body, {name: {"timeZone": zone} for name, zone in others.items() if zone})
    if body and body.get("recurrence") and not body.get("isAllDay"):
        # In UTC a series would follow another clock, and be at another time after the clock has changed.
        return
    yield _changed(body, {name: _in_utc(_edges(body)[name], body) for name in zones})


def _edges(body: Json | None) -> dict[str, Json]:
    return {name: body[name] for name in _EDGES if isinstance(body.get(name), dict)} if body else {}


def _changed(body: Json | None, edges: dict[str, Json]) -> Json:
    whole = body or {}
    return whole | {name: whole[name] | change for name, change in edges.items()}


def _in_utc(edge: Json, body: Json | None) -> Json:
    """The same instant in UTC; the same day, for an event of whole days."""
    text, zone = edge.get("dateTime"), iana_zone(edge["timeZone"])
    if text is None or zone is None or (body or {}).get("isAllDay"):
        return {"timeZone": "UTC"}
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        # Google's times have an offset already.
        return {"timeZone": "UTC"}
    instant = moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).replace(tzinfo=None)
    return {"dateTime": instant.isoformat(timespec="milliseconds"), "timeZone": "UTC"}


def made_by(draft: Draft, event: Event, service: str, operation: str) -> CreateResult:
    """The existing event, if the create of this draft made it.

    :raise EventExists: otherwise
    """
    created = draft.match_existing(event)
    if created is None:
        raise exists(service, operation)
    return created


def exists(service: str, operation: str) -> EventExists:
    """The error of a create whose id another event has."""
    return EventExists(f"{service} already has another event for this", operation=operation)


def not_invited(service: str, operation: str) -> EventRefused:
    """The error of a response to an event of which the account is no attendee."""
    return EventRefused(f"{service} has no invitation of this account to the event", operation=operation)


def kept_changing(service: str, operation: str) -> Unavailable:
    """The error of a write whose event others changed before each attempt."""
    return Unavailable(f"{service} says that others are changing the event just now", operation=operation)
