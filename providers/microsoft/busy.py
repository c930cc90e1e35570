"""Busy periods, from calendarView: of several calendars of a mailbox, or of several members' mailboxes.

https://learn.microsoft.com/en-us/graph/api/calendar-list-calendarview
"""

from __future__ import annotations

from collections.abc import Sequence

from providers.base import PRIMARY, Account, Failed, Member, MemberOutcome, Outcome, Period, Read, ReadAlone
from providers.errors import ProviderError
from providers.http.send import Bearer
from providers.microsoft import calendar_view, parse
from providers.microsoft.batch import Part
from providers.microsoft.mailbox import (
    AS_TEXT,
    SETTINGS,
    Mailbox,
    calendar_path,
    settings_path,
    user_path,
    view_path,
)
from providers.microsoft.member_batches import MemberBatches
from providers.microsoft.pages import Pages, every_page
from providers.names import ProviderName
from providers.scopes import Operation, has_scope, require
from providers.timestamps import DAY

# Events on a page: the maximum; the default is 10.
EVENTS_PER_PAGE = 1000

_FIELDS = "start,end,showAs,isAllDay,isCancelled,responseStatus"


class _ZoneNeeded(ProviderError):
    """A mailbox has a busy all-day event, and its zone was not read."""


def of_calendars(mailbox: Mailbox, calendar_ids: Sequence[str], start: int, end: int) -> dict[str, Outcome]:
    """The outcome for every calendar, each read as a part of a batch.

    The mailbox's zone is a part of the first batch. If it is not known, all-day events cover their days in
    every zone; when reading it fails for now, only calendars with busy all-day events fail.
    """
    names = {str(number): each for number, each in enumerate(dict.fromkeys(calendar_ids))}
    views = [Part(number, _view(mailbox.calendar_path(each), start, end)) for number, each in names.items()]
    answers = mailbox.fetch([*mailbox.settings(), *views] if views else [], calendar_view.decode)
    zone = parse.mailbox_zone(answers.get(SETTINGS))
    found: dict[str, list[Period]] = {}
    failed: dict[str, Failed] = {}
    for number, each in names.items():
        try:
            found[each] = _periods(answers[number], zone)
        except ProviderError as error:
            failed[each] = Failed.from_error(error)
    return {**Read.of_each(found, start, end), **failed}


def without(mailbox: Mailbox, calendar_id: str, event_id: str, start: int, end: int) -> Read:
    """The busy periods of one calendar as if an event, or one occurrence of a series, were not in it."""
    view = Part(
        PRIMARY, _view(mailbox.calendar_path(calendar_id), start, end, fields=f"id,{_FIELDS}"), AS_TEXT
    )
    answers = mailbox.fetch([*mailbox.settings(), view])
    pages = answers[view.id]
    if isinstance(pages, ProviderError):
        raise pages
    zone = parse.mailbox_zone(answers.get(SETTINGS))
    periods = parse.busy(pages, zone, mailbox.operation, without=event_id)
    return Read.of_each({calendar_id: periods}, start, end)[calendar_id]


def of_members(
    graph: str, account: Account, members: Sequence[Member], start: int, end: int, *, deadline: float
) -> dict[str, MemberOutcome]:
    """The main calendars of several members by address, each read as a part of one batch.

    A second batch reads the zones of those mailboxes that have busy all-day events.
    """
    operation = Operation.FREE_BUSY
    require(ProviderName.MICROSOFT, account.scopes, operation)
    unique = {each.address: each for each in members}.values()
    by_id = {str(number): each for number, each in enumerate(unique)}
    batches = MemberBatches(
        graph,
        Bearer.of(account),
        operation,
        reporters={number: each.reporter for number, each in by_id.items()},
        deadline=deadline,
    )
    views = every_page(
        batches,
        [
            Part(number, _view(calendar_path(user_path(each.address), PRIMARY), start, end))
            for number, each in by_id.items()
        ],
    )
    may_read_zones = has_scope(ProviderName.MICROSOFT, account.scopes, "MailboxSettings.Read")
    no_zone = _ZoneNeeded("The zone of the mailbox was not read") if may_read_zones else None
    found: dict[str, list[Period]] = {}
    failed: dict[str, MemberOutcome] = {}
    needed: list[str] = []
    for number, pages in views.items():
        address = by_id[number].address
        try:
            found[address] = _periods(pages, no_zone)
        except _ZoneNeeded:
            needed.append(number)
        except ProviderError as error:
            failed[address] = _failed(error)
    parts = [Part(number, settings_path(user_path(by_id[number].address))) for number in needed]
    for number, settings in every_page(batches, parts).items():
        address = by_id[number].address
        try:
            if isinstance(settings, ProviderError) and settings.retryable:
                raise settings
            found[address] = _periods(views[number], parse.mailbox_zone(settings))
        except ProviderError as error:
            failed[address] = _failed(error)
    return {**Read.of_each(found, start, end), **failed}


def _view(calendar: str, start: int, end: int, *, fields: str = _FIELDS) -> str:
    # Graph selects all-day events as if their dates were in UTC. An event of the UTC days [d, e) is busy
    # from d - 14 h to e + 12 h at most, so one more day on each side is enough.
    window = view_path(calendar, start - DAY, end + DAY)
    return f"{window}&$select={fields}&$top={EVENTS_PER_PAGE}"


def _periods(pages: Pages, zone: parse.Zone) -> list[Period]:
    if isinstance(pages, ProviderError):
        raise pages
    return parse.busy(pages, zone, Operation.FREE_BUSY)


def _failed(error: ProviderError) -> Failed | ReadAlone:
    """A member's outcome; a failure that a retry may overcome is left to a call for only this member."""
    failed = Failed.from_error(error)
    return ReadAlone(failed) if error.retryable else failed
