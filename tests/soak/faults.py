"""Faults of the providers: of every kind, at random, for about one call in twenty."""

from __future__ import annotations

import threading
from collections import Counter
from random import Random
from typing import Any

import requests

from providers.sandbox.client import Sandbox
from tests.soak.house import DEADLINE, PROVIDERS

SHARE = 0.05
PAUSE = 0.2

KINDS: dict[str, dict[str, Any]] = {
    "429": {"status": 429, "retry_after": 1},
    "503": {"status": 503},
    "reset": {"body": "reset"},
    "truncated": {"body": "truncated"},
    "slow": {"latency_ms": 1500},
    "too slow": {"latency_ms": (DEADLINE + 2) * 1000},
}

# The statuses that faults cause. A write may also succeed and not be readable.
READS_FAULT = {429, 502, 503}
WRITES_FAULT = READS_FAULT | {422}


class Faults:
    """A context; ``posted`` counts the faults put in force, by kind."""

    def __init__(self, sandbox: Sandbox, seed: int) -> None:
        self.posted: Counter[str] = Counter()
        self._sandbox, self._random = Sandbox(sandbox.url), Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Faults:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._sandbox.clear_faults()

    def _run(self) -> None:
        """As many as the calls since the last look are due."""
        before, due = self._sandbox.requests().total, 0.0
        while not self._over.wait(PAUSE):
            try:
                total = self._sandbox.requests().total
                due += (total - before) * SHARE
                before = total
                while due >= 1:
                    due -= 1
                    kind = self._random.choice(list(KINDS))
                    self._sandbox.fault(provider=self._random.choice(PROVIDERS), times=1, **KINDS[kind])
                    self.posted[kind] += 1
            except requests.ConnectionError:
                continue
