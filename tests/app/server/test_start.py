"""The modules that web and worker processes load when they start."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# The HTTP client for providers, the tasks, and the code that performs jobs.
OF_WORKERS = {"providers.http.send", "requests", "workers.tasks", "workers.runtime", "workers.fanout.steps"}

# The libraries of providers and features that an installation may not use.
SELDOM_USED = {"icalendar", "providers.caldav.client", "providers.ics.client", "authlib.oidc", "limits"}


def modules_after(start: str, environment: dict[str, str]) -> set[str]:
    """The modules of a process that has imported ``start``."""
    program = f"import sys, {start}; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


def test_a_web_process_loads_nothing_that_only_workers_use(environment):
    assert modules_after("workers.main", os.environ | environment) >= OF_WORKERS
    assert not modules_after("app.wsgi", os.environ | environment) & OF_WORKERS


def test_a_worker_loads_the_libraries_of_a_provider_when_it_first_reads_an_account(environment):
    def loaded(statement: str) -> set[str]:
        return modules_after(
            f"workers.main as main; main.celery.runtime.{statement}", os.environ | environment
        )

    assert not loaded("registrations") & SELDOM_USED
    assert "icalendar" in loaded("provider('caldav')")
