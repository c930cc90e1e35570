"""SQLite, of an installation on one host, on a full disk."""

from __future__ import annotations

import resource
from contextlib import contextmanager

import pytest

from tests.faults.installation import children
from tests.faults.measured import AT_ONCE
from tests.faults.questions import Verdict

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


@contextmanager
def full_disk(installation):
    """No process of it can write to a file."""
    parts = [each.pid for each in installation.parts.values()]
    everybody = [*parts, *(child for pid in parts for child in children(pid))]
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in everybody}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def test_the_disk_is_full(small, fault):
    what = "the disk under SQLite takes no more for five seconds"
    may = {"502", Verdict.PARTIAL}
    with fault(small, what, sees={"503"}, may=may) as case:
        with full_disk(small.installation):
            case.run_for(5.0)
            case.until_seen()
        case.wait_for_recovery(within=AT_ONCE)
