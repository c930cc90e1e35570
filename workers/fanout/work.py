"""The work that workers take from the list of a request: single jobs, and bundles.

A worker performs the jobs of a bundle together, in one step. Each job keeps its
own lock, cache, reply and metrics. A job leaves its bundle if only this job has to wait, or if the provider
answers only for the others. It is then performed separately.

At Google a bundle is one call, made by the account that reads for the whole grant: its jobs share one permit,
and they wait together. At Microsoft each mailbox has limits of its own, so each job has its own permit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from providers import registry
from providers.base import Failed
from store.coordination.provider_limits import Access, AcquireRequest, Circuit, Permit, WaitReason
from store.coordination.single_flight import ReadTerms, SharedRead
from store.sql.queries.connection_rows import SealedConnection
from workers.execution import call_policy
from workers.failures import BROKEN
from workers.jobs import Job, ReadBusy, Reply


class FanoutRequest(NamedTuple):
    """The request whose jobs a task performs. ``deadline`` is a moment of ``time.monotonic()``.

    ``terms`` are those on which its reads are shared with other requests; None if they are not.
    """

    name: str
    deadline: float
    terms: ReadTerms | None = None

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, 0 after it."""
        return max(0.0, self.deadline - time.monotonic())


@dataclass(slots=True, eq=False)
class JobPermit:
    """The permit of a job, which it needs if it has a ``request``; jobs of a bundle may share one.

    ``probes``: it was granted as a circuit breaker's probe. ``at`` is when it asks again.
    """

    request: AcquireRequest | None = None
    granted: bool = False
    probes: bool = False
    at: float = 0.0

    @property
    def wanted(self) -> AcquireRequest | None:
        """The request, until it is granted."""
        return None if self.granted else self.request

    def answered(self, request: AcquireRequest, permit: Permit, now: float) -> None:
        """Note the answer to the request."""
        if permit.paid:
            self.request = replace(request, calls=0)
        if not permit.wait:
            self.granted, self.probes = True, permit.why is WaitReason.PROBE
        elif permit.why is not WaitReason.OPEN:
            self.at = now + permit.wait

    def given_back(self) -> list[tuple[AcquireRequest, bool]]:
        """The request to release, and whether it was a probe; none without a permit, and from then on."""
        if self.request is None or not self.granted:
            return []
        released = (self.request, self.probes)
        self.granted = self.probes = False
        return [released]


@dataclass(slots=True, eq=False)
class TakenJob:
    """A job of a request. ``name`` is that of its locks and leases; ``row`` is its connection."""

    number: int
    job: Job
    name: str
    row: SealedConnection | None = None
    # The read that other jobs may share, the name of the job whose read this one waits for, and the
    # generation with which it has the lock of the read; "" without it.
    read: SharedRead | None = None
    waits_for: str = ""
    lock_generation: str = ""
    # That of the connection's cache, looked up before the job began; None before that.
    cache_generation: bytes | None = None
    permit: JobPermit = field(default_factory=JobPermit)
    # The failure that is reported if the job gets no permit before the deadline.
    if_late: Failed = BROKEN
    # What web processes of release 0.1 wait for.
    flight: str | None = None
    # The reply was sent. A read that still runs continues only for the cache.
    answered: bool = False

    @property
    def provider(self) -> str | None:
        """The provider that the job calls; None until the connection is loaded, or if it was removed."""
        return None if self.row is None else self.row.provider


# The work of one step: one job, or a bundle.
Work = list[TakenJob]


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that has ended. ``body`` is its encoded reply.

    ``alone``: the job leaves its bundle and is performed again, with this failure if no time is left.
    """

    taken: TakenJob
    reply: Reply
    body: bytes = field(repr=False)
    alone: Failed | None = None


def divide(work: Work) -> list[Work]:
    """The parts of one element that are performed together, once their connections are loaded."""
    together = [each for each in work if _belongs(each)]
    if len(together) < 2:
        return [[each] for each in work]
    if (shared := _shared_permit(together[0])) is not None:
        for each in together:
            each.permit.request = shared
    return [together, *([each] for each in work if not _belongs(each))]


def divide_waiting(work: Work) -> list[Work]:
    """The parts of a bundle without a permit that try again together: all of it if it has one permit."""
    return [work] if _share_permit(work[0].provider) else [[each] for each in work]


def without_probes(ready: Work) -> list[Work]:
    """The parts of an element that begin: a probe of a circuit breaker is performed separately.

    It is not retried, and would take the retries of the other members. A bundle that is one probe stays.
    """
    probes = [each for each in ready if each.permit.probes]
    others = [each for each in ready if not each.permit.probes]
    if not others:
        return [ready] if ready else []
    return [others, *([each] for each in probes)]


def separate(taken: TakenJob, if_late: Failed | None = None) -> None:
    """Have a job performed separately. ``if_late`` is its failure if there is no time for that."""
    taken.if_late = if_late or taken.if_late
    if taken.row is not None:
        taken.permit.request = call_policy.acquire_request(taken.job, taken.row, taken.name)


def _belongs(taken: TakenJob) -> bool:
    """Whether the connection is still delegated by the grant for which the web tier made the bundle.

    The account must be identified, unless only its main calendar is read: that one is read by the address.
    """
    job, row = taken.job, taken.row
    if not isinstance(job, ReadBusy) or job.grant is None or job.calendars is None or row is None:
        return False
    identified = job.main_only or row.main_calendar_id is not None
    return row.grant == job.grant.id and bool(row.email) and identified


def _share_permit(provider: str | None) -> bool:
    """Whether the account of a grant makes the call of a bundle, whose jobs then share one permit."""
    return provider is not None and registry.impersonates(provider)


def _shared_permit(first: TakenJob) -> AcquireRequest | None:
    """The permit of a whole bundle; None if each job has its own."""
    if first.row is None or first.row.grant is None or not _share_permit(first.provider):
        return None
    cost = call_policy.calls(first.row.provider, first.job)
    circuit = Circuit(first.row.provider, Access.READS)
    return AcquireRequest(circuit, first.row.grant, cost, None, first.name)
