"""Another encryption key, in the steps of docs/operate/backup.md, while clients ask and write."""

from __future__ import annotations

import os
import subprocess

import pytest

from store.config.settings import new_secrets
from tests.app.cli.test_commands import ALMANAC
from tests.faults.measured import AFTER_A_START
from tests.faults.questions import Verdict
from tests.faults.witness import CUT_OFF, REFUSED

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


def test_another_encryption_key(small, fault):
    what = "the encryption key is replaced: three restarts, and `almanac db reseal`"
    may = {"502", "503", Verdict.PARTIAL, CUT_OFF}
    old, new = small.installation.settings.encryption_keys, new_secrets()[1]
    with fault(small, what, sees={REFUSED}, may=may) as case:
        written = small.installation.environment["ALMANAC_ENCRYPTION_KEYS"]
        assert len(old) == 1
        restart(small, f"{written},{new}")
        restart(small, f"{new},{written}")
        case.run_for(1.0)
        told = almanac(small, "db", "reseal")
        assert "Everything is encrypted with the first key" in told
        assert new not in told
        assert written not in told
        restart(small, new)
        case.wait_for_recovery(within=AFTER_A_START)


def restart(world, keys):
    """All parts, with other keys."""
    installation = world.installation
    installation.environment["ALMANAC_ENCRYPTION_KEYS"] = keys
    for part in ("worker1", "worker2", "web"):
        installation.stop(part)
        installation.start(part)


def almanac(world, *words):
    ran = subprocess.run(
        [str(ALMANAC), *words],
        env=world.installation.environment | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
