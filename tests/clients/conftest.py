"""The official clients of both vendors against the sandbox: ``make test-clients`` installs them.

Without them these files are passed over, unless they are what was asked for: then a missing client fails.
"""

from __future__ import annotations

import importlib.util

import pytest

INSTALLED = all(importlib.util.find_spec(name) for name in ("googleapiclient", "msgraph"))


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Pass over what cannot be imported, when it would not be run anyway."""
    wanted = config.option.markexpr.replace("not clients", "")
    return True if not INSTALLED and "clients" not in wanted else None
