"""Reads what has changed in several calendars since a cursor."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from app.availability.connections import renamed
from app.availability.failures import Failure, Failures
from app.availability.parameters import Freshness
from app.availability.selection import CalendarSelector, Target, distinct, id_at_provider, shown_as
from app.events import lists, worker_calls
from app.events.change_cursor import Cursor, Name, digest
from app.http.errors import ApiError, Invalid
from app.schemas.changes import MAX_CALENDARS_OF_CHANGES
from app.schemas.error_codes import Code
from app.services import services
from providers import registry
from providers.base import PRIMARY, Failed
from providers.changes import ChangePage, token_expired
from providers.errors import Problem
from providers.scopes import Operation
from store.cache.busy_cache import CalendarKey
from store.sql.queries.connection_rows import ConnectionRef
from workers.failures import BROKEN
from workers.jobs import ReadChanges, Reply

Value = TypeVar("Value")

EXPIRED = "The provider no longer knows what has changed since this cursor: begin again without it"


@dataclass(frozen=True, slots=True)
class ChangeList:
    """A page of changes of each calendar, the calendars that could not be read, and the next cursor."""

    pages: list[tuple[Target, ChangePage]]
    failures: Failures
    cursor: Cursor

    @property
    def more(self) -> bool:
        """Whether a calendar has more changes already."""
        return any(page.more for _, page in self.pages)


def find(refs: Sequence[ConnectionRef], cursor: Cursor, freshness: Freshness) -> ChangeList:
    """The changes since a cursor; of a calendar that is not in it, all events of the range.

    A calendar that could not be read keeps its place.

    :raise Invalid: for too many calendars
    :raise ApiError: if the provider of one no longer knows what has changed
    """
    deadline = services().deadline()
    selector = CalendarSelector(cursor.calendar_ids, primary_only=False)
    selection = lists.select(refs, selector, freshness, deadline)
    if len(selection.targets) > MAX_CALENDARS_OF_CHANGES:
        message = f"calendarIds is required: there are more than {MAX_CALENDARS_OF_CHANGES} calendars"
        raise Invalid(message, param="calendarIds")
    known = _targets(refs, cursor)
    targets = _with_places(selection, known.values(), by_id=not selector.everything)
    tokens = {known[name].key: token for name, token in cursor.tokens.items() if name in known}
    digests = {known[name].key: found for name, found in cursor.digests.items() if name in known}
    jobs = {
        str(number): ReadChanges(*each.key, cursor.start, cursor.end, tokens.get(each.key))
        for number, each in enumerate(targets)
    }
    replies = worker_calls.read(jobs, until=deadline).values()
    failures, pages = selection.failures, []
    for target, reply in zip(renamed(targets), replies, strict=True):
        page = _page(target, reply, digests.get(target.key))
        if isinstance(page, Failed):
            failures.append(Failure(target.shown, target.connection, page))
        else:
            pages.append((target, page))
            tokens[target.key] = page.sync_token
            digests.pop(target.key, None)
    if expired := [each for each in failures if each.failed.problem is Problem.CURSOR_EXPIRED]:
        failed = Failures(expired, something_read=False).calendars()
        entries = [each | {"code": Code.CURSOR_EXPIRED} for each in failed]
        raise ApiError(EXPIRED, Code.CURSOR_EXPIRED, extra_fields={"failedCalendars": entries})
    kept = {each.key for each in targets}
    kept |= {each.key for each in known.values() if each.connection.id in selection.failed_connections}
    following = msgspec.structs.replace(
        cursor, tokens=_by_name(refs, tokens, kept), digests=_by_name(refs, digests, kept)
    )
    return ChangeList(pages, Failures(failures, something_read=bool(pages)), following)


def _with_places(selection: lists.Selection, known: Collection[Target], *, by_id: bool) -> list[Target]:
    """The calendars to read: those of a cursor, by the connections that it has for them, and the other ones.

    Without the list of an account, an id may be taken for one of another account. And a calendar that has
    left the list may be readable: otherwise its failure tells that it is gone.
    """
    failed = selection.failed_connections
    found = {each.key: each for each in known if each.connection.id not in failed}
    placed = {each.key.calendar for each in known} - {PRIMARY} if by_id else set()
    found |= {
        each.key: each for each in selection.targets if each.key in found or each.key.calendar not in placed
    }
    return distinct(list(found.values()), Operation.LIST_EVENTS)


def _targets(refs: Sequence[ConnectionRef], cursor: Cursor) -> dict[Name, Target]:
    """The calendars in a cursor whose connections are there; the main one of an account has the alias."""
    connections = {ref.public_id: ref for ref in refs}
    found: dict[Name, Target] = {}
    for connection_id, calendar in (*cursor.tokens, *cursor.digests):
        if (ref := connections.get(connection_id)) is not None:
            key = CalendarKey(ref.id, id_at_provider(ref, calendar))
            found[connection_id, calendar] = Target(ref, key, shown_as(ref, key.calendar))
    return found


def _page(target: Target, reply: Reply, known: bytes | None) -> ChangePage | Failed:
    """The page of a calendar.

    ``known`` is the digest of the sync token that its place had. It was read from the beginning then, and an
    equal token means that nothing has changed.
    """
    page = reply.changes
    if reply.failed is not None or page is None:
        return reply.failed or BROKEN
    if known is None:
        return page
    if digest(page.sync_token) != known:
        service = registry.service(target.connection.provider)
        return Failed.from_error(token_expired(service, Operation.LIST_EVENTS))
    return ChangePage((), (), page.sync_token)


def _by_name(
    refs: Sequence[ConnectionRef], values: Mapping[CalendarKey, Value], kept: Set[CalendarKey]
) -> dict[Name, Value]:
    """The values of the calendars that are ``kept``.

    Main calendars have their real ids, as far as they are known: another one may become the main one.
    """
    by_id = {ref.id: ref for ref in refs}
    found: dict[Name, Value] = {}
    for key, each in values.items():
        if key in kept:
            ref = by_id[key.connection]
            main = ref.main_calendar_id if key.calendar == PRIMARY else None
            found[ref.public_id, main or key.calendar] = each
    return found
