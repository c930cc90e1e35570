"""Last use of API keys: kept in memory and written to the database periodically."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime

from sqlalchemy.exc import SQLAlchemyError

from store.sql.database import Database
from store.sql.queries import api_keys

log = logging.getLogger(__name__)

# Seconds between two writes of a key's last use by one process.
EACH = 60.0

# Keys in one statement; the others are written by the next flush.
MAX_AT_ONCE = 1000


class KeyUsage:
    """The keys that one process has accepted; thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        # Held during a flush, so that no flush returns while another one is still writing.
        self._flushing = threading.Lock()
        # Times not written yet, and times of the writes of the last minute, by key id.
        self._used: dict[int, float] = {}
        self._written: dict[int, float] = {}

    def note(self, key_id: int) -> None:
        """Note that a key was accepted just now."""
        with self._lock:
            self._used[key_id] = time.time()

    def flush(self, *, now: float | None = None) -> None:
        """Write the uses that are due. If the database fails, they are kept for the next flush."""
        now = time.time() if now is None else now
        with self._flushing:
            if used := self._due(now):
                self._write(used, now)

    def _write(self, used: dict[int, float], now: float) -> None:
        try:
            with self._database.writing() as session:
                moments = {key_id: datetime.fromtimestamp(at, UTC) for key_id, at in used.items()}
                api_keys.note_use(session, moments)
        except SQLAlchemyError as error:
            log.warning("last use of API keys not written, kept for the next flush: %s", type(error).__name__)
            with self._lock:
                self._used = used | self._used
        else:
            self._written |= dict.fromkeys(used, now)

    def _due(self, now: float) -> dict[int, float]:
        """Remove and return the uses of keys that were not written within the last minute."""
        self._written = {key_id: at for key_id, at in self._written.items() if at > now - EACH}
        with self._lock:
            due = [key_id for key_id in self._used if key_id not in self._written][:MAX_AT_ONCE]
            return {key_id: self._used.pop(key_id) for key_id in due}
