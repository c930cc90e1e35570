"""The official clients of both vendors against the sandbox: ``make test-clients`` installs them.

Without them these files are skipped, unless they were requested: then a missing client is a failure.
"""

from __future__ import annotations

import importlib.util

import pytest

INSTALLED = all(importlib.util.find_spec(name) for name in ("googleapiclient", "msgraph"))


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Skip files that cannot be imported, unless they were requested."""
    wanted = config.option.markexpr.replace("not clients", "")
    return True if not INSTALLED and "clients" not in wanted else None
