"""The feeds that this process has read: parsed once, and requested again only after a while."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

import numpy as np

from providers.base import Account, Read
from providers.http.calls import late
from providers.ical.bounds import InvalidCalendar, Limits
from providers.ical.busy import busy_periods
from providers.ical.calendar import CalendarText, read
from providers.ics import address
from providers.ics.fetching import PROVIDER, fetch
from providers.scopes import Operation
from scheduling.intervals import Intervals, merge

# Text of feeds to keep in a process. Parsed, a feed takes about four times as much.
KEPT_BYTES = 16 * 1024 * 1024
# Ranges whose busy periods are kept for a feed, and what they begin and end with: requests of the same weeks
# share them.
_RANGES = 8
_BLOCK = 28 * 86_400_000


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """``seconds``: the least time between two requests to a feed."""

    seconds: int = 300
    limits: Limits = field(default_factory=Limits)
    allow_private: bool = False


@dataclass(slots=True, eq=False)
class Feed:
    """A feed as it was read at ``read_at``, in seconds of ``time.monotonic()``."""

    calendar: CalendarText
    digest: bytes
    validators: Mapping[str, str]
    read_at: float
    _ranges: OrderedDict[tuple[object, ...], Intervals] = field(default_factory=OrderedDict)

    def busy(
        self, start: int, end: int, own: frozenset[str], zone: ZoneInfo | None, *, deadline: float
    ) -> Read:
        """The busy periods in ``[start, end)``, without expanding the series again for each request.

        ``zone`` is that of days and of times without one if the feed states none.

        :raise InvalidCalendar: see :func:`providers.ical.busy.busy_periods`
        """
        wide = start // _BLOCK * _BLOCK, -(-end // _BLOCK) * _BLOCK
        try:
            found = self._merged(*wide, own, zone, deadline)
        except InvalidCalendar:
            # What cannot be understood may lie beside the range.
            found = self._merged(start, end, own, zone, deadline)
        first = found.ends.searchsorted(start, "right")
        last = found.starts.searchsorted(end, "left")
        rows = slice(first, max(first, last))
        starts, ends = np.maximum(found.starts[rows], start), np.minimum(found.ends[rows], end)
        return Read(Intervals(starts, ends).take(starts < ends))

    def _merged(
        self, start: int, end: int, own: frozenset[str], zone: ZoneInfo | None, deadline: float
    ) -> Intervals:
        key = start, end, own, zone
        found = self._ranges.get(key)
        if found is None:
            periods = busy_periods(self.calendar, start, end, own_addresses=own, zone=zone, deadline=deadline)
            rows = np.array(periods, np.int64).reshape(-1, 2)
            found = merge(rows[:, 0].copy(), rows[:, 1].copy())
            self._ranges[key] = found
            while len(self._ranges) > _RANGES:
                self._ranges.popitem(last=False)
        return found


class Feeds:
    """Reads feeds; two accounts with one address share it. Thread-safe."""

    def __init__(self, settings: FeedSettings, now: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._now = now
        self._kept: OrderedDict[str, Feed] = OrderedDict()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}
        self._lock = threading.Lock()

    def read(self, url: str, account: Account | None, operation: Operation, *, deadline: float) -> Feed:
        """The feed at an address, as it is now, or was less than ``seconds`` ago.

        :raise ProviderError: when it cannot be read
        """
        name = address.hashed(url)
        with self._lock:
            own, users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = own, users + 1
        try:
            # One request for all who want the feed now.
            if not own.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise late(PROVIDER, operation)
            try:
                return self._read(name, url, account, operation, deadline)
            finally:
                own.release()
        finally:
            with self._lock:
                own, users = self._locks.pop(name)
                if users > 1:
                    self._locks[name] = own, users - 1

    def age(self, feed: Feed) -> float:
        """How many seconds ago a feed was as it is."""
        return self._now() - feed.read_at

    def _read(
        self, name: str, url: str, account: Account | None, operation: Operation, deadline: float
    ) -> Feed:
        with self._lock:
            known = self._kept.get(name)
        began = self._now()
        if known is not None and began - known.read_at < self._settings.seconds:
            return known
        limits = self._settings.limits
        content = fetch(
            url,
            known.validators if known else {},
            account,
            operation,
            allow_private=self._settings.allow_private,
            max_bytes=limits.size,
            deadline=deadline,
        )
        if known is not None and content is None:
            known.read_at = began
            return known
        assert content is not None
        digest = hashlib.sha256(content.body).digest()
        if known is not None and known.digest == digest:
            known.validators, known.read_at = content.validators, began
            return known
        try:
            calendar = read(content.body, limits=limits, deadline=deadline)
        except InvalidCalendar as error:
            raise InvalidCalendar(error.message, operation=operation) from None
        feed = Feed(calendar, digest, content.validators, began)
        self._keep(name, feed)
        return feed

    def _keep(self, name: str, feed: Feed) -> None:
        with self._lock:
            self._kept[name] = feed
            self._kept.move_to_end(name)
            total = sum(len(each.calendar.text) for each in self._kept.values())
            while total > KEPT_BYTES and self._kept:
                _, dropped = self._kept.popitem(last=False)
                total -= len(dropped.calendar.text)
