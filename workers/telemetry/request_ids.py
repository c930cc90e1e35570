"""The id of the HTTP request that this thread works for, in the web tier and in the workers.

A read that several requests share belongs to the one that has it made.
"""

from __future__ import annotations

from contextvars import ContextVar

current: ContextVar[str | None] = ContextVar("request_id", default=None)
