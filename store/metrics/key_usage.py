"""When API keys were used: noted in memory, written to the database now and then."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime

from sqlalchemy.exc import SQLAlchemyError

from store.sql.database import Database
from store.sql.queries import api_keys

log = logging.getLogger(__name__)

# Each process writes the use of a key so often, in seconds.
EACH = 60.0

# Keys in one statement; the others come with the next.
MOST_AT_ONCE = 1000


class KeyUsage:
    """The keys that one process has seen; safe for threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        # Not written yet, and written within the last minute.
        self._used: dict[int, float] = {}
        self._written: dict[int, float] = {}

    def note(self, key_id: int) -> None:
        """A key was accepted just now."""
        with self._lock:
            self._used[key_id] = time.time()

    def flush(self, *, now: float | None = None) -> None:
        """Write down what is due; what the database does not take waits for the next time."""
        now = time.time() if now is None else now
        used = self._due(now)
        if not used:
            return
        try:
            with self._database.writing() as session:
                moments = {key_id: datetime.fromtimestamp(at, UTC) for key_id, at in used.items()}
                api_keys.note_use(session, moments)
        except SQLAlchemyError as error:
            log.warning("when keys were used waits for the database: %s", type(error).__name__)
            with self._lock:
                self._used = used | self._used
        else:
            self._written |= dict.fromkeys(used, now)

    def _due(self, now: float) -> dict[int, float]:
        """Take what was not written within the last minute."""
        self._written = {key_id: at for key_id, at in self._written.items() if at > now - EACH}
        with self._lock:
            due = [key_id for key_id in self._used if key_id not in self._written][:MOST_AT_ONCE]
            return {key_id: self._used.pop(key_id) for key_id in due}
