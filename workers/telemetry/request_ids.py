"""The id of the HTTP request that this thread works for, in the web tier and in the workers.

A read that several requests share has the id of its leader. This module imports nothing, so that ``logs`` can
use it in every process.
"""

from __future__ import annotations

from contextvars import ContextVar

current: ContextVar[str | None] = ContextVar("request_id", default=None)
