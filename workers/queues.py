"""The queues, named once for tasks, command line and tests."""

from __future__ import annotations

from enum import StrEnum


class Queue(StrEnum):
    """What a worker may be asked to consume."""

    # Somebody waits for the answer; a task expires with its request's deadline.
    READS = "reads"
    # Changes at a provider: never sent twice blindly.
    WRITES = "writes"
    # What beat sends: nobody waits.
    UPKEEP = "upkeep"
    # What integrators hear from us: their receivers may be slow.
    WEBHOOKS = "webhooks"
