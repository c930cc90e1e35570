"""Bundles: reads of several members of one organization grant, which one request to the provider answers.

Together the jobs of a bundle read at most as many calendars as one request can. A member's calendar list is
known before. The web tier puts the jobs of a bundle into one element of the work list, and a worker performs
them together (``workers.fanout.work``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from providers import registry
from workers.fanout.codec import Packed, pack_job, pack_jobs
from workers.jobs import Job, ReadBusy


def elements(jobs: Iterable[Packed]) -> list[bytes]:
    """The elements of a work list for these jobs: bundles, and single jobs."""
    groups: dict[Hashable, list[list[Packed]]] = {}
    for each in jobs:
        size, key = _size_and_key(each)
        chunks = groups.setdefault(key, [[]])
        if chunks[-1] and sum(map(_calendars, [*chunks[-1], each])) > size:
            chunks.append([])
        chunks[-1].append(each)
    return [_element(chunk) for chunks in groups.values() for chunk in chunks]


def _size_and_key(packed: Packed) -> tuple[int, Hashable]:
    """How many calendars fit into the element of this job, and what its jobs have in common."""
    job: Job = packed.job
    if not isinstance(job, ReadBusy) or job.grant is None or job.calendars is None:
        return 0, packed.number
    return registry.definition(job.grant.provider).costs.calendars_of_members, (
        job.grant.id,
        job.start,
        job.end,
    )


def _calendars(packed: Packed) -> int:
    job: Job = packed.job
    return len(job.calendars or ()) if isinstance(job, ReadBusy) else 0


def _element(jobs: Sequence[Packed]) -> bytes:
    if len(jobs) == 1:
        return pack_job(jobs[0].number, jobs[0].job)
    return pack_jobs(jobs)
