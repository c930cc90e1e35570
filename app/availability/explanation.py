"""Why a moment is, or is not, offered: from the busy periods that a lookup has read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.availability import explanation_text, hours_text
from app.availability.explanation_text import UnreadCalendar
from app.availability.failures import Failure, Failures
from app.availability.profiles import Person
from app.availability.result import BusyResult
from app.availability.selection import Target, counting_targets, main_calendar
from app.schemas.explain import CALENDAR_UNREAD, NO_CALENDARS, NO_USER
from providers import registry
from providers.base import PRIMARY
from scheduling.explain import Covering, Explanation, Verdict, explain
from scheduling.query import OfMembers, Query


class Blocking(NamedTuple):
    """A busy period that, with its padding, covers the moment; and its calendar."""

    target: Target
    period: Covering


class HeldBlocking(NamedTuple):
    """Held time that, with the padding, covers the moment; and when the hold expires."""

    period: Covering
    expires_at: int


@dataclass(frozen=True, slots=True)
class UserVerdict:
    """Why a moment is, or is not, offered for one user; ``reason`` is one of ``REASONS`` or ``NO_USER``.

    ``facts`` is None if the user has no calendar, or if a calendar that counts could not be read. Then no
    slot is offered.
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


def explain_user(
    result: BusyResult,
    query: Query,
    at: int,
    user_index: int = 0,
    *,
    partial: bool = False,
    person: Person | None = None,
) -> UserVerdict:
    """Explain ``at`` for one user of a result, which covers the query's busy range.

    ``partial``: unread calendars do not count, as with ``onFailure=partial``. ``person`` is the user if a
    profile counts; the query is that of this user.
    """
    (facts,) = explain(query, at, *result.of_user(user_index))
    return _explained(result, query, user_index, facts, partial=partial, person=person)


def explain_all_users(
    result: BusyResult,
    query: Query,
    at: int,
    own: OfMembers = None,
    people: Sequence[Person | None] = (),
) -> list[UserVerdict]:
    """Explain ``at`` for every user of a result; ``own`` is what differs for each from the query."""
    all_facts = explain(query, at, *result.of_users(np.arange(result.user_count)), own)
    return [
        _explained(
            result,
            query if own is None else query.of_member(own[n]),
            n,
            facts,
            partial=False,
            person=people[n] if people else None,
        )
        for n, facts in enumerate(all_facts)
    ]


def explain_no_calendars(query: Query, at: int) -> UserVerdict:
    """The explanation for a user without connected calendars."""
    return UserVerdict(NO_CALENDARS, explanation_text.no_calendars_sentence(at, query.zone))


def explain_missing_user(query: Query, at: int) -> UserVerdict:
    """The explanation for a user that does not exist."""
    return UserVerdict(NO_USER, explanation_text.missing_user_sentence(at, query.zone))


def _explained(
    result: BusyResult,
    query: Query,
    user_index: int,
    facts: Explanation,
    *,
    partial: bool,
    person: Person | None,
) -> UserVerdict:
    targets = [result.targets[each] for each in result.target_indexes(user_index)]
    calendars = [each for each in facts.covering if each.calendar < len(targets)]
    blocking = tuple(Blocking(targets[each.calendar], each) for each in calendars)
    # Each hold is a calendar of its own, behind those of the user.
    held = tuple(
        HeldBlocking(each, result.held[user_index][each.calendar - len(targets)].expires_at)
        for each in facts.covering[len(calendars) :]
    )
    failures = Failures.of(result, user_index)
    if failures and not (partial and failures.something_read):
        sentence = explanation_text.unread_sentence(facts.at, query.zone, _unread(failures))
        return UserVerdict(CALENDAR_UNREAD, sentence, blocking=blocking, held=held)
    if not targets:
        return explain_no_calendars(query, facts.at)
    names = [_name(target) for target in targets]
    outside = None
    if person is not None and facts.verdict is Verdict.OUTSIDE_WINDOW:
        outside = hours_text.outside_hours(person, query, facts.at)
    sentence = explanation_text.verdict_sentence(facts, query, names, outside=outside)
    if held:
        expires_at = max(each.expires_at for each in held)
        sentence = f"{sentence} {explanation_text.held_sentence(facts.at, expires_at, query.zone)}"
    if failures:
        sentence = f"{sentence} {explanation_text.left_out_sentence(_unread(failures))}"
    if person is not None and (left_out := _not_counting(targets, person)):
        sentence = f"{sentence} {explanation_text.not_counting_sentence(left_out)}"
    return UserVerdict(facts.verdict, sentence, facts, blocking, held)


def _unread(failures: Failures) -> Sequence[UnreadCalendar]:
    return [
        UnreadCalendar(each.connection.provider, _unread_name(each), each.failed.reason) for each in failures
    ]


def _unread_name(failure: Failure) -> str:
    """The name of an unread calendar: its id, or ``primary`` for a main calendar whose id says nothing."""
    ref = failure.connection
    readable = registry.definition(ref.provider).global_ids
    return PRIMARY if not readable and failure.calendar_id == ref.main_calendar_id else failure.calendar_id


def _name(target: Target) -> str:
    """The name of a calendar: the account's address for a main calendar, the id for any other."""
    email = target.connection.email
    if target.key.calendar == PRIMARY:
        return email or f"the main calendar at {registry.title(target.connection.provider)}"
    if "@" in target.shown or email is None:
        return target.shown
    return f"calendar {target.shown} of {email}"


def _not_counting(targets: Sequence[Target], person: Person) -> list[str]:
    """The names of the main calendars that the person's profile leaves out, as far as they are known."""
    profile = person.profile
    counting = {each.key for each in counting_targets(profile.connections, profile.calendars)}
    if not {each.key for each in targets} <= counting:
        # The request names the calendars itself.
        return []
    mains = map(main_calendar, profile.connections)
    return [_name(each) for each in mains if each.key not in counting]
