"""Reads the calendars of several members of one organization grant in one request."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from providers import registry
from providers.base import Account, CallReporter, Failed, Member, ReadAlone
from providers.definition import required
from providers.errors import ProviderError, SubjectRefused
from store.cache.busy_cache import now_ms
from store.coordination.provider_limits import Access
from store.sql.queries.connection_rows import Credentials
from workers.execution import identity
from workers.execution.accounts import call_reporter
from workers.execution.organization_tokens import OrganizationTokens
from workers.failures import TIMED_OUT
from workers.jobs import ReadBusy, Reply
from workers.runtime import Runtime
from workers.telemetry import request_ids

log = logging.getLogger(__name__)


class MemberRead(NamedTuple):
    """A job of a bundle, and its delegated connection."""

    job: ReadBusy
    credentials: Credentials


class MembersCallReporter:
    """The ``CallReporter`` of a request for several mailboxes, each of which has limits of its own."""

    def __init__(self, members: Sequence[CallReporter]) -> None:
        self._members = members

    def answered(self) -> None:
        """Report an answer about every member."""
        for each in self._members:
            each.answered()

    def failed(self, error: ProviderError, pause: float, *, given_up: bool) -> float | None:
        """Report a failed request for every member; the longest pause, None if any must not be called."""
        pauses = [each.failed(error, pause, given_up=given_up) for each in self._members]
        known = [each for each in pauses if each is not None]
        return max(known) if len(known) == len(pauses) else None


def perform(runtime: Runtime, reads: Sequence[MemberRead], deadline: float) -> list[Reply | ReadAlone]:
    """The reply to each read, in order; ``ReadAlone`` for a member who must be read separately.

    The reads have one grant and one range. An expected failure is in the replies, never raised.
    :func:`workers.execution.reads.begin_reads` must have been called. A member with a calendar of unknown
    cache tags is read separately, which first looks them up.
    """
    registered = [
        identity.register_listed(runtime.stores, each.credentials, each.job.calendars or ()) for each in reads
    ]
    together = [each for each, is_registered in zip(reads, registered, strict=True) if is_registered]
    replies = iter(_read(runtime, together, deadline) if together else ())
    return [next(replies) if is_registered else ReadAlone(TIMED_OUT) for is_registered in registered]


def _read(runtime: Runtime, reads: Sequence[MemberRead], deadline: float) -> list[Reply | ReadAlone]:
    job, first = reads[0]
    members = [
        Member(
            each.credentials.email or "",
            # One request that fails says no more about the provider than any other.
            call_reporter(runtime, each.credentials, Access.READS, for_provider=each is reads[0]),
            each.job.calendars or (),
        )
        for each in reads
    ]
    read_at = now_ms()
    try:
        account = _account(runtime, first, members)
        calendars = required(runtime.provider(first.provider).members, registry.title(first.provider))
        outcomes = calendars.busy_of_members(account, members, job.start, job.end, deadline=deadline)
    except SubjectRefused as error:
        # The grant is valid: each member can be read with the member's own impersonated token.
        log.warning("account that reads for a whole grant refused: %s", error.message)
        return [ReadAlone(Failed.from_error(error))] * len(reads)
    except ProviderError as error:
        log.info("provider failure: %s", error.reason, extra={"grant": first.grant, "why": error.message})
        return [Reply(read_at, failed=Failed.from_error(error))] * len(reads)
    return [each if isinstance(each, ReadAlone) else Reply(read_at, outcomes=each) for each in outcomes]


def _account(runtime: Runtime, first: Credentials, members: Sequence[Member]) -> Account:
    """The account that makes the request: that of the grant, or the application."""
    grant = first.grant or ""
    reporter: CallReporter
    if registry.impersonates(first.provider):
        # The rate limit and circuit breaker of the grant: no member's own account is used.
        reporter = call_reporter(runtime, replace(first, id=grant), Access.READS)
    else:
        reporter = MembersCallReporter([each.reporter for each in members if each.reporter is not None])
    tokens = OrganizationTokens(runtime, grant, None)
    return Account(None, first.scope, tokens, reporter, runtime.grace, request_ids.current.get())
