"""The queues, named once for tasks, command line and tests."""

from __future__ import annotations

from enum import StrEnum


class Queue(StrEnum):
    """The queues that a worker can consume."""

    # A request waits for the answer; a task expires at the deadline of its request.
    READS = "reads"
    # Changes at a provider, which must not be repeated without a check.
    WRITES = "writes"
    # Scheduled and background tasks; no request waits for them.
    UPKEEP = "upkeep"
    # Webhooks; the endpoints of API clients may be slow.
    WEBHOOKS = "webhooks"


# The header of a task with the terms on which its reads are shared (``single_flight.ReadTerms``).
TERMS = "almanac_terms"

# The task that performs the jobs of one request, by queue.
DRAIN = {Queue.READS: "reads.drain", Queue.WRITES: "writes.drain"}

# Webhook endpoints that one process serves at once. Endpoints that hang must leave threads for reads.
MAX_WEBHOOK_ENDPOINTS = 32
