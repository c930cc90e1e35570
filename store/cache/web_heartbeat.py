"""Heartbeats of web processes, which show when none of them could take notifications from providers.

Such notifications may be lost. So every web process sends heartbeats while it accepts connections, and all
processes share the record of the last one. A heartbeat that finds the last one too long ago, or none, records
the end of a gap. Busy periods that were read before it are used no longer than those of a calendar without
notifications (``store.cache.busy_cache.BucketLoad``).
"""

from __future__ import annotations

import logging
import threading
import time

from redis import Redis
from redis.exceptions import RedisError

from store.cache.busy_cache import GAP_KEY
from store.lua import Script, json_argument

log = logging.getLogger(__name__)

WEB = "present:web"

INTERVAL = 0.5
# Seconds between two heartbeats from which on they are a gap. An absence of two seconds always is one, and a
# busy process may be late by more than a second.
GAP = 1.8
# The same before the first heartbeat of a process, when another web process would have sent one meanwhile. A
# web tier of one process takes longer to start again.
START_GAP = 0.9

_BEAT = Script("cache/scripts/web_beat.lua")


class WebHeartbeat:
    """The heartbeat of one web process. Processes that serve no requests do not start it."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._last = 0.0

    @property
    def is_late(self) -> bool:
        """Whether the process was stopped, or too busy: its next heartbeat may record a gap."""
        running = self._thread is not None and not self._over.is_set()
        return running and time.monotonic() - self._last > GAP

    def start(self) -> None:
        """Send the first heartbeat, before the process accepts connections, and start the thread."""
        self._beat(START_GAP)
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send no more heartbeats: the process accepts no more connections. Safe in a signal handler."""
        self._over.set()

    def catch_up(self) -> None:
        """Send a heartbeat now if it is late.

        Requests call it before they load the cache: after a pause of the process they may run before the
        thread of the heartbeat.

        :raise redis.RedisError: when Redis is down
        """
        if self.is_late:
            self.record()

    def record(self, gap: float = GAP) -> None:
        """Send a heartbeat; ``gap`` is the age of the last one, in seconds, from which on there was a gap.

        :raise redis.RedisError: when Redis is down
        """
        sent = time.monotonic()
        _BEAT.run(self._redis, [WEB, GAP_KEY], json_argument(gap=int(gap * 1000)))
        self._last = sent

    def _run(self) -> None:
        while not self._over.wait(INTERVAL):
            self._beat()

    def _beat(self, gap: float = GAP) -> None:
        try:
            self.record(gap)
        except RedisError as error:
            log.warning("heartbeat of the web process failed: %s", type(error).__name__)
