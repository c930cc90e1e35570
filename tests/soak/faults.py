"""Faults of the providers: of every kind, at random, for about one call in twenty.

Half of them are undocumented answers of real providers (``providers.sandbox.wild``).
Of these only a refused part fails anything, and only its mailbox.
"""

from __future__ import annotations

import threading
from collections import Counter
from random import Random
from typing import Any

import requests

from providers.sandbox.client import Sandbox
from tests.soak.installation import DEADLINE, SUBJECT, SoakInstallation

SHARE = 0.05
PAUSE = 0.2

PART = "one mailbox of a grant"

KINDS: dict[str, dict[str, Any]] = {
    "429": {"status": 429, "retry_after": 1},
    "503": {"status": 503},
    "reset": {"body": "reset"},
    "truncated": {"body": "truncated"},
    "slow": {"latency_ms": 1500},
    "too slow": {"latency_ms": (DEADLINE + 2) * 1000},
}
# A part of a batch has a status of its own; it cannot be cut off.
OF_PARTS = ("429", "503")

VIEW, FREE_BUSY = "microsoft.calendarView.list", "google.freebusy.query"
REFUSED = "refusedPart"
# The kinds of wild answers, and the calls that they are given to.
WILD: tuple[tuple[str, str], ...] = (
    *((kind, each) for kind in ("loneSurrogate", "byteOrderMark", "oddEvent") for each in (VIEW, FREE_BUSY)),
    *((kind, "google.calendarList.list") for kind in ("loneSurrogate", "duplicate", "hiddenMain")),
    *((kind, "microsoft.calendars.list") for kind in ("loneSurrogate", "duplicate", "brokenPart")),
    ("byteOrderMark", "microsoft.batch"),
    ("duplicate", VIEW),
    ("brokenPart", VIEW),
    ("secondReply", VIEW),
    ("brokenPart", "microsoft.mailboxSettings.get"),
    (REFUSED, VIEW),
    (REFUSED, "microsoft.mailboxSettings.get"),
    ("noZone", "microsoft.mailboxSettings.get"),
    ("otherSignIn", VIEW),
)

# The calls that a fault may hit, by how often. Bundles are a small part of the calls of their provider.
TARGETS: dict[str, dict[str, str]] = {
    "Google": {"provider": "google"},
    "Microsoft": {"provider": "microsoft"},
    "a bundle of Google": {"email": SUBJECT, "operation": "google.freebusy.query"},
    "a batch of Microsoft": {"operation": "microsoft.batch"},
    # With the address of a member; most reads of it are parts of a batch.
    PART: {"operation": "microsoft.calendarView.list"},
}
WEIGHTS = (8, 8, 1, 1, 2)

# The statuses that faults cause. A write may also succeed and not be readable.
READS_FAULT = {429, 502, 503}
WRITES_FAULT = READS_FAULT | {422}


class Faults:
    """A context; ``posted`` counts the faults put in force, by kind, and ``at`` by the calls they are for.

    ``struck`` is how many have changed or delayed a call; it is known at the end.
    """

    def __init__(self, soak_installation: SoakInstallation, seed: int) -> None:
        self.posted: Counter[str] = Counter()
        self.at: Counter[str] = Counter()
        self.struck = 0
        self._sandbox, self._random = Sandbox(soak_installation.sandbox.url), Random(seed)
        self._mailboxes = soak_installation.mailboxes_by_grant()
        self._refusable = [each.account.email for each in soak_installation.refusable()]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Faults:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.struck = self._sandbox.requests().struck
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
                    self._post()
            except requests.ConnectionError:
                continue

    def _post(self) -> None:
        if self._random.random() < 0.5:
            return self._post_wild()
        return self._post_fault()

    def _post_wild(self) -> None:
        kind, operation = self._random.choice(WILD)
        refuses = (kind, operation) == (REFUSED, VIEW)
        email = self._random.choice(self._refusable) if refuses else None
        self._sandbox.fault(times=1, operation=operation, email=email, wild=kind)
        self.posted[kind] += 1
        self.at["an answer of a kind that nobody documents"] += 1

    def _post_fault(self) -> None:
        (target,) = self._random.choices(list(TARGETS), WEIGHTS)
        kind = self._random.choice(OF_PARTS if target == PART else tuple(KINDS))
        where = dict(TARGETS[target])
        if target == PART:
            where["email"] = self._random.choice(self._mailboxes)
        self._sandbox.fault(times=1, **where, **KINDS[kind])
        self.posted[kind] += 1
        self.at[target] += 1
