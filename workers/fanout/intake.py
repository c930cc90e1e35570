"""Decodes the jobs that a drain takes from its list, and loads their connections."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence

from store.sql.queries import connection_tokens
from workers import failures
from workers.execution import call_policy, reads
from workers.fanout import bundles
from workers.fanout.codec import DecodeError, Packed, unpack_jobs
from workers.fanout.drain_state import DrainJobs, TakenJob
from workers.fanout.finishing import Finisher
from workers.jobs import ReadBusy
from workers.runtime import Runtime

log = logging.getLogger(__name__)


class Intake:
    """Prepares taken jobs, and adds them to ``jobs.loaded``. A job that cannot be prepared fails."""

    def __init__(self, runtime: Runtime, fanout: str, jobs: DrainJobs, finisher: Finisher) -> None:
        self._runtime = runtime
        self._fanout = fanout
        self._jobs = jobs
        self._finisher = finisher
        self._ids = itertools.count()

    def take(self, messages: Sequence[bytes]) -> None:
        """Prepare the jobs in these messages from the list."""
        elements = [
            [TakenJob(next(self._ids), each.number, each.job, each.flight) for each in self._decode(data)]
            for data in messages
        ]
        taken = [each for element in elements for each in element]
        self._finisher.flights.take(each.flight for each in taken)
        try:
            self._load(taken)
            self._begin_reads(taken)
            for element in elements:
                bundles.prepare(element)
        except Exception as error:
            # Any error: the jobs are no longer on the list, so they must be answered.
            log.exception("jobs could not be prepared")
            for each in taken:
                self._finisher.fail_unstarted(each, failures.failure_from(error))
        else:
            self._jobs.loaded += sorted(taken, key=bundles.position)

    def _decode(self, data: bytes) -> Sequence[Packed]:
        """One job or a bundle; none for what cannot be decoded, as from a web server of another version."""
        try:
            return unpack_jobs(data)
        except DecodeError:
            log.exception("a job cannot be decoded")
        self._finisher.reject(data)
        return ()

    def _load(self, taken: Sequence[TakenJob]) -> None:
        """Load the connections of these jobs in one statement."""
        ids = {each.job.connection for each in taken if each.job.connection is not None}
        if not ids:
            return
        with self._runtime.stores.database.engine.connect() as connection:
            rows = connection_tokens.sealed(connection, ids)
        for each in taken:
            each.row = rows.get(each.job.connection or "")
            if each.row is not None:
                each.lease_name = each.flight or f"{self._fanout}:{each.number}"
                each.acquire_request = call_policy.acquire_request(each.job, each.row, each.lease_name)

    def _begin_reads(self, taken: Sequence[TakenJob]) -> None:
        """Begin the reads of busy periods in the cache, in one round trip."""
        busy = [
            (each.job, each.row) for each in taken if isinstance(each.job, ReadBusy) and each.row is not None
        ]
        generations = reads.begin_reads(self._runtime.stores, busy)
        for each in taken:
            each.generation = generations.get(each.job.connection or "", b"")
