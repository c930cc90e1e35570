"""The calendars of several accounts for one request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app import accounts, paging
from app.failures import Failures, of_account
from app.targets import refusal
from providers.base import Calendar
from providers.scopes import Operation
from store.queries.connections import ConnectionRef
from workers.jobs import Reply, ShowCalendars
from workers.queues import Queue


@dataclass(frozen=True, slots=True)
class Found:
    """The calendars of the accounts that could be read, in order; and the accounts that could not be."""

    calendars: list[Calendar]
    failures: Failures


def find(refs: Sequence[ConnectionRef]) -> Found:
    """Every calendar on the accounts' lists."""
    refused = {ref.id: failed for ref in refs if (failed := refusal(ref, Operation.LIST_CALENDARS))}
    jobs = {ref.id: ShowCalendars(ref.id) for ref in refs if ref.id not in refused}
    replies = {each: Reply(failed=failed) for each, failed in refused.items()}
    replies |= accounts.gather(jobs, Queue.READS, deadline=accounts.deadline())
    failures = Failures(
        [of_account(ref, failed) for ref in refs if (failed := replies[ref.id].failed)],
        something_read=any(reply.failed is None for reply in replies.values()),
    )
    return Found(sorted((each for ref in refs for each in replies[ref.id].calendars), key=place), failures)


def place(calendar: Calendar) -> paging.Place:
    """Google's calendars first, of each account the main one, then by name."""
    return calendar.provider, not calendar.primary, calendar.subject, calendar.id
