"""Busy periods, from calendarView: of several calendars of a mailbox, or of several members' mailboxes.

https://learn.microsoft.com/en-us/graph/api/calendar-list-calendarview
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from providers.base import (
    PRIMARY,
    Account,
    CallReporter,
    Failed,
    Member,
    MemberOutcome,
    Outcome,
    Period,
    Read,
    ReadAlone,
)
from providers.errors import ProviderError, RateLimited, Reason, Unavailable, Unreadable
from providers.http.calls import Bearer, token_refused_here
from providers.microsoft import parse
from providers.microsoft.batch import Answer, Batches, BatchGet, Pages, PartReply, every_page, rejected_parts
from providers.microsoft.errors import PROVIDER
from providers.microsoft.mailbox import (
    AS_TEXT,
    SETTINGS,
    Mailbox,
    calendar_path,
    settings_path,
    user_path,
    view_path,
)
from providers.microsoft.scopes import SCOPES, may_read_zone
from providers.scopes import Operation
from providers.timestamps import DAY


class MemberBatches(Batches):
    """The batches of one operation, without retries of parts.

    ``mailboxes`` has the address of each part by its id, ``reporters`` the reporter of each address.

    A mailbox that is throttled names a time to wait, and the other members must not wait for it: Graph
    limits each mailbox by itself (https://learn.microsoft.com/en-us/graph/json-batching).
    """

    def __init__(
        self,
        base: str,
        bearer: Bearer,
        operation: str,
        *,
        mailboxes: Mapping[str, str],
        reporters: Mapping[str, CallReporter | None],
        deadline: float,
    ) -> None:
        super().__init__(base, bearer, operation, deadline=deadline, decode=parse.decode_view)
        self._mailboxes = mailboxes
        self._reporters = reporters

    def _settle(self, parts: Sequence[BatchGet]) -> dict[str, Answer]:
        """Send one batch; the parts whose token was rejected are sent once more, with another token.

        An answer that cannot be parsed shows nothing about any mailbox: each member is then read separately.
        """
        try:
            answers = self._answers(parts)
        except Unreadable as error:
            return dict.fromkeys([part.id for part in parts], error)
        of_mailboxes: dict[str, list[Answer]] = {}
        for part in parts:
            of_mailboxes.setdefault(self._mailboxes[part.id], []).append(answers[part.id])
        for address, of_mailbox in of_mailboxes.items():
            if (reporter := self._reporters[address]) is not None:
                _report(reporter, of_mailbox)
        return answers

    def _answers(self, parts: Sequence[BatchGet]) -> dict[str, Answer]:
        """The answer to each part of one batch."""
        replies = self._exchange(parts)
        if isinstance(replies, ProviderError):
            return {part.id: replies for part in parts}
        answers = {part.id: self._answer(replies.get(part.id)) for part in parts}
        rejected = rejected_parts(parts, replies)
        if not rejected:
            return answers
        if self._renew(replies):
            return answers | self._answers(rejected)
        return answers | {part.id: token_refused_here(PROVIDER, self.operation) for part in rejected}

    def _replies(self, parts: Sequence[BatchGet]) -> Mapping[str, PartReply]:
        return self._batched(parts)


def _report(reporter: CallReporter, answers: Sequence[Answer]) -> None:
    """Report whether one mailbox answers: its rate limits, or the first failure while no part was answered.

    A failure is not final: the member is read separately.
    """
    failed = [each for each in answers if isinstance(each, Unavailable)]
    reported: list[Unavailable] = [each for each in failed if isinstance(each, RateLimited)]
    if len(failed) < len(answers):
        reporter.answered()
    elif not reported:
        reported = failed[:1]
    for each in reported:
        reporter.failed(each, each.retry_after or 0.0, given_up=False)


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
    views = [
        BatchGet(number, _view(mailbox.calendar_path(each), start, end)) for number, each in names.items()
    ]
    answers = mailbox.fetch([*mailbox.settings(), *views] if views else [], parse.decode_view)
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
    view = BatchGet(
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
) -> list[MemberOutcome]:
    """The calendars of several members, each calendar read as a part of one batch.

    A second batch reads the zones of those mailboxes that have busy all-day events.
    """
    operation = Operation.FREE_BUSY
    SCOPES.require(account.scopes, operation)
    wanted = dict.fromkeys((member.address, each) for member in members for each in member.calendars)
    numbers = {each: str(number) for number, each in enumerate(wanted)}
    address_of = {number: address for (address, _), number in numbers.items()}
    batches = MemberBatches(
        graph,
        Bearer.of(account),
        operation,
        mailboxes=address_of,
        reporters={each.address: each.reporter for each in members},
        deadline=deadline,
    )
    views = every_page(
        batches,
        [
            BatchGet(number, _view(calendar_path(user_path(address), calendar), start, end))
            for (address, calendar), number in numbers.items()
        ],
    )
    zones_readable = may_read_zone(account.scopes)
    no_zone = _ZoneNeeded("The zone of the mailbox was not read") if zones_readable else None
    found: dict[str, list[Period]] = {}
    failed: dict[str, ProviderError] = {}
    needed: list[str] = []
    for number, pages in views.items():
        try:
            found[number] = _periods(pages, no_zone)
        except _ZoneNeeded:
            needed.append(number)
        except ProviderError as error:
            failed[number] = error
    # One part for each mailbox, under the number of one of its calendars.
    asking = {address_of[number]: number for number in needed}
    parts = [BatchGet(number, settings_path(user_path(address))) for address, number in asking.items()]
    settings = every_page(batches, parts)
    for number in needed:
        answer = settings[asking[address_of[number]]]
        try:
            if isinstance(answer, ProviderError) and answer.retryable:
                raise answer
            found[number] = _periods(views[number], parse.mailbox_zone(answer))
        except ProviderError as error:
            failed[number] = error
    read = Read.of_each(found, start, end)
    return [
        _of_member({each: numbers[member.address, each] for each in member.calendars}, read, failed)
        for member in members
    ]


def _view(calendar: str, start: int, end: int, *, fields: str = _FIELDS) -> str:
    # Graph selects all-day events as if their dates were in UTC. An event of the UTC days [d, e) is busy
    # from d - 14 h to e + 12 h at most, so one more day on each side is enough.
    window = view_path(calendar, start - DAY, end + DAY)
    return f"{window}&$select={fields}&$top={EVENTS_PER_PAGE}"


def _periods(pages: Pages, zone: parse.Zone) -> list[Period]:
    if isinstance(pages, ProviderError):
        raise pages
    return parse.busy(pages, zone, Operation.FREE_BUSY)


def _of_member(
    numbers: Mapping[str, str], read: Mapping[str, Read], failed: Mapping[str, ProviderError]
) -> MemberOutcome:
    """The outcome of a member whose calendars have these part ids.

    A failure that a retry may overcome is left to a call for only this member. So is a calendar that was not
    found: it may be the main calendar under an earlier id.
    """
    outcomes: dict[str, Outcome] = {}
    for calendar, number in numbers.items():
        if (error := failed.get(number)) is None:
            outcomes[calendar] = read[number]
        elif error.retryable or (calendar != PRIMARY and error.reason is Reason.NOT_FOUND):
            return ReadAlone(Failed.from_error(error))
        else:
            outcomes[calendar] = Failed.from_error(error)
    return outcomes
