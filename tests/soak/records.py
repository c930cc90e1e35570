"""The outcomes of the requests of all clients."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass
class Records:
    """Clients may write at the same time."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    # How many users, calendars or requests were answered, and how many named as failed.
    answered: int = 0
    named: int = 0
    checked: int = 0
    outside: int = 0
    unclear: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def request(self, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self.seconds[route].append(seconds)
            self.statuses[status] += 1

    def count(self, **numbers: int) -> None:
        with self._lock:
            for name, number in numbers.items():
                setattr(self, name, getattr(self, name) + number)

    def is_wrong(self, what: str) -> None:
        with self._lock:
            self.wrong.append(what)

    @property
    def share_named(self) -> float:
        """The share named as failed, of all users, calendars and requests."""
        return self.named / max(self.answered + self.named, 1)

    @property
    def total(self) -> int:
        return sum(self.statuses.values())
