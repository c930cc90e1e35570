"""Why a moment is, or is not, offered: from the busy periods that a lookup has read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.availability import explanation_text
from app.availability.explanation_text import Unreadable
from app.availability.failures import Failure, Failures
from app.availability.result import BusyResult
from app.availability.selection import Target
from providers.base import PRIMARY
from providers.names import ProviderName
from scheduling.explain import Covering, Explanation, Verdict, explain
from scheduling.query import Query

# Reasons for users whose busy periods the engine does not get.
CALENDAR_UNREAD = "calendarUnread"
NO_CALENDARS = "noCalendars"
# In the dashboard only: for an unknown user the API answers 404.
NO_USER = "noUser"
REASONS = (*Verdict, CALENDAR_UNREAD, NO_CALENDARS)


class Blocking(NamedTuple):
    """A busy period that, with its padding, covers the moment; and its calendar."""

    target: Target
    period: Covering


class HeldBlocking(NamedTuple):
    """Held time that, with the padding, covers the moment; and when the hold expires."""

    period: Covering
    expires_at: int


@dataclass(frozen=True, slots=True)
class Explained:
    """Why a moment is, or is not, offered for one user; ``reason`` is one of ``REASONS`` or ``NO_USER``.

    ``facts`` are None if there is no calendar, or one could not be read that counts: then nothing is free.
    ``blocking`` has the busy periods that were read, in both cases, and ``held`` the held time.
    """

    reason: str
    sentence: str
    facts: Explanation | None = None
    blocking: tuple[Blocking, ...] = ()
    held: tuple[HeldBlocking, ...] = ()

    @property
    def offered(self) -> bool:
        """Whether the moment is in a slot."""
        return self.reason == Verdict.OFFERED


def of_request(
    result: BusyResult, query: Query, at: int, request: int = 0, *, partial: bool = False
) -> Explained:
    """Explain ``at`` for one request of a result, which covers the query's busy range.

    ``partial``: unread calendars do not count, as with ``onFailure=partial``.
    """
    (facts,) = explain(query, at, *result.of_request(request))
    return _explained(result, query, request, facts, partial=partial)


def of_all_requests(result: BusyResult, query: Query, at: int) -> list[Explained]:
    """Explain ``at`` for every request of a result."""
    found = explain(query, at, *result.of_requests(np.arange(result.request_count)))
    return [_explained(result, query, n, facts, partial=False) for n, facts in enumerate(found)]


def of_no_calendars(query: Query, at: int) -> Explained:
    """The explanation for a user without connected calendars."""
    return Explained(NO_CALENDARS, explanation_text.of_no_calendars(at, query.zone))


def of_no_user(query: Query, at: int) -> Explained:
    """The explanation for a user that does not exist."""
    return Explained(NO_USER, explanation_text.of_no_user(at, query.zone))


def _explained(
    result: BusyResult, query: Query, request: int, facts: Explanation, *, partial: bool
) -> Explained:
    targets = [result.targets[index] for index in result.indexes(request)]
    calendars = [each for each in facts.covering if each.calendar < len(targets)]
    blocking = tuple(Blocking(targets[each.calendar], each) for each in calendars)
    held = tuple(_held(result, request, each) for each in facts.covering[len(calendars) :])
    failures = Failures.of(result, request)
    if failures and not (partial and failures.something_read):
        sentence = explanation_text.of_unread(facts.at, query.zone, _unread(failures))
        return Explained(CALENDAR_UNREAD, sentence, blocking=blocking, held=held)
    if not targets:
        return of_no_calendars(query, facts.at)
    sentence = explanation_text.of_verdict(facts, query, [_name(target) for target in targets])
    if held:
        expires_at = max(each.expires_at for each in held)
        sentence = f"{sentence} {explanation_text.of_held(facts.at, expires_at, query.zone)}"
    if failures:
        sentence = f"{sentence} {explanation_text.of_left_out(_unread(failures))}"
    return Explained(facts.verdict, sentence, facts, blocking, held)


def _held(result: BusyResult, request: int, period: Covering) -> HeldBlocking:
    """Held time of a request; touching holds are one period, which ends to be held with the last of them."""
    inside = [each for each in result.held[request] if each.starts < period.end and each.ends > period.start]
    return HeldBlocking(period, max(each.expires_at for each in inside))


def _unread(failures: Failures) -> Sequence[Unreadable]:
    return [Unreadable(each.connection.provider, _unread_name(each), each.failed.reason) for each in failures]


def _unread_name(failure: Failure) -> str:
    """The name of an unread calendar: its id, or ``primary`` for Microsoft's main calendar."""
    ref = failure.connection
    microsoft = ref.provider == ProviderName.MICROSOFT
    return PRIMARY if microsoft and failure.calendar_id == ref.main_calendar_id else failure.calendar_id


def _name(target: Target) -> str:
    """The name of a calendar: the account's address for a main calendar, the id for any other."""
    email = target.connection.email
    if target.key.calendar == PRIMARY:
        return email or f"the main calendar at {target.connection.provider.title()}"
    if "@" in target.shown or email is None:
        return target.shown
    return f"calendar {target.shown} of {email}"
