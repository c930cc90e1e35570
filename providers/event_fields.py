"""The values that a provider can store, of the event fields that not every provider has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from providers.errors import FieldRefused
from providers.events import Changes, Recurrence, Reminders, ShowAs, Visibility, When
from providers.recurrence import BadRecurrence


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
