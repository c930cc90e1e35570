"""Why a moment is, or is not, offered to somebody whose calendars have been looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from app.availability import explanation_text
from app.availability.explanation_text import Unreadable
from app.availability.failures import Failure, Failures
from app.availability.lookup import BusyResult
from app.availability.selection import Target
from providers.base import PRIMARY
from providers.names import ProviderName
from scheduling.explain import Covering, Explanation, Verdict, explain
from scheduling.query import Query

# Beside the engine's verdicts: of these people it cannot tell.
CALENDAR_UNREAD = "calendarUnread"
NO_CALENDARS = "noCalendars"
# What only the dashboard is asked: the API answers 404.
NO_USER = "noUser"
REASONS = (*Verdict, CALENDAR_UNREAD, NO_CALENDARS)


class Blocking(NamedTuple):
    """A busy period that covers the moment once it is padded, and the calendar that has it."""

    target: Target
    period: Covering


@dataclass(frozen=True, slots=True)
class Explained:
    """Why somebody is, or is not, offered at a moment; ``reason`` is one of ``REASONS``.

    ``facts`` are None when a calendar that counts could not be read, or there is none: then nothing is free.
    ``blocking`` tells what was read all the same.
    """

    reason: str
    sentence: str
    facts: Explanation | None = None
    blocking: tuple[Blocking, ...] = ()

    @property
    def offered(self) -> bool:
        """Whether the moment is in a slot."""
        return self.reason == Verdict.OFFERED


def of_ask(
    picture: BusyResult, question: Query, at: int, ask: int = 0, *, partial: bool = False
) -> Explained:
    """Why one ask of a picture, drawn over the question's busy range, is or is not offered at ``at``.

    ``partial``: what could be read counts alone, as with ``onFailure=partial``.
    """
    (facts,) = explain(question, at, *picture.of_ask(ask))
    return _explained(picture, question, ask, facts, partial=partial)


def of_asks(picture: BusyResult, question: Query, at: int) -> list[Explained]:
    """The same for every ask of a picture, at once."""
    found = explain(question, at, picture.busy, picture.ask_of, picture.asks)
    return [_explained(picture, question, ask, facts, partial=False) for ask, facts in enumerate(found)]


def of_nobody(question: Query, at: int) -> Explained:
    """For somebody without connected calendars."""
    return Explained(NO_CALENDARS, explanation_text.of_no_calendars(at, question.zone))


def of_no_user(question: Query, at: int) -> Explained:
    """For somebody who is not there."""
    return Explained(NO_USER, explanation_text.of_no_user(at, question.zone))


def _explained(
    picture: BusyResult, question: Query, ask: int, facts: Explanation, *, partial: bool
) -> Explained:
    targets = [picture.targets[place] for place in picture.places(ask)]
    blocking = tuple(Blocking(targets[each.calendar], each) for each in facts.covering)
    failures = Failures.of(picture, ask)
    if failures and not (partial and failures.something_read):
        told = explanation_text.of_unread(facts.at, question.zone, _unread(failures))
        return Explained(CALENDAR_UNREAD, told, blocking=blocking)
    if not targets:
        return of_nobody(question, facts.at)
    told = explanation_text.of_verdict(facts, question, [_called(target) for target in targets])
    if failures:
        told = f"{told} {explanation_text.of_left_out(_unread(failures))}"
    return Explained(facts.verdict, told, facts, blocking)


def _unread(failures: Failures) -> Sequence[Unreadable]:
    return [Unreadable(each.connection.provider, _readable(each), each.failed.reason) for each in failures]


def _readable(failure: Failure) -> str:
    """The name of a calendar in a sentence: its id, or a phrase for Microsoft's main calendar."""
    ref = failure.connection
    microsoft = ref.provider == ProviderName.MICROSOFT
    return PRIMARY if microsoft and failure.calendar_id == ref.main_calendar_id else failure.calendar_id


def _called(target: Target) -> str:
    """What people call a calendar: a main one by the account's address, any other by its id."""
    email = target.connection.email
    if target.key.calendar == PRIMARY:
        return email or f"the main calendar at {target.connection.provider.title()}"
    if "@" in target.shown or email is None:
        return target.shown
    return f"calendar {target.shown} of {email}"
