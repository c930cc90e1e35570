"""The result of the last read of each connection's main calendar, by which people find a cause.

It is in Redis only, where the reporter of a worker writes it with the results of the reads: in SQL it would
cost a transaction for each read. After a loss it is unknown until the next read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

from redis import Redis
from redis.client import Pipeline

from store.lua import Script, json_argument

# The last read of a connection that is not read for this long is forgotten.
SECONDS = 90 * 86_400

_NOTE = Script("cache/scripts/last_reads.lua")
_FAILING = "last-reads-failing"
# How many connections have no last read, and for how long that counts after it was found out.
_MISSING = "last-reads-missing"
_MISSING_SECONDS = 3600
# At most this many failed accounts are counted, the oldest failures first.
_MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class LastRead:
    """A read at ``at``, in milliseconds. A failure has a ``reason`` and a ``message``.

    ``since`` is when the present run of failures began. ``provider`` is that of the account, for the counts.
    """

    at: int
    reason: str | None = None
    message: str | None = None
    since: int | None = None
    provider: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the calendar could be read."""
        return self.reason is None

    @property
    def moment(self) -> datetime:
        """The time of the read."""
        return _moment(self.at)

    @property
    def since_moment(self) -> datetime | None:
        """The time at which the present run of failures began."""
        return None if self.since is None else _moment(self.since)


class LastReads:
    """The last reads, by the ids of the rows of connections."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def note(self, pipe: Pipeline, reads: Sequence[tuple[str, LastRead]]) -> None:
        """Queue on ``pipe`` the noting of reads; their ``since`` is not used."""
        if not reads:
            return
        found = [
            (each, str(read.at), read.reason or "", read.message or "", read.provider or "")
            for each, read in reads
        ]
        keys = [*(_key(connection_id) for connection_id, _ in reads), _FAILING]
        _NOTE.queue(pipe, keys, json_argument(reads=found, seconds=SECONDS))

    def load(self, connection_ids: Sequence[str]) -> dict[str, LastRead]:
        """The last read of each connection that has one, in one round trip."""
        if not connection_ids:
            return {}
        with self._redis.pipeline(transaction=False) as pipe:
            for each in connection_ids:
                pipe.hgetall(_key(each))
            found = pipe.execute()
        return {
            each: _read({name.decode(): value.decode() for name, value in fields.items()})
            for each, fields in zip(connection_ids, found, strict=True)
            if fields
        }

    def failing(self, most: int) -> list[str]:
        """The connections whose last read failed, those first that failed for the first time last."""
        found = cast(list[bytes], self._redis.zrevrange(_FAILING, 0, most - 1))
        return [each.decode() for each in found]

    def failing_counts(self) -> Mapping[tuple[str, str], int]:
        """How many connections failed at their last read, by provider and reason, in one command."""
        wanted = [f"{_key('*')}->provider", f"{_key('*')}->reason"]
        found = self._redis.sort(_FAILING, 0, _MOST_COUNTED, by="nosort", get=wanted, groups=True)
        # The last read of a connection may have expired, or lack the provider.
        pairs = cast(list[tuple[bytes | None, bytes | None]], found)
        return Counter(
            (provider.decode(), reason.decode()) for provider, reason in pairs if provider and reason
        )

    def note_missing(self, count: int) -> None:
        """Store how many living connections have no last read."""
        self._redis.set(_MISSING, count, ex=_MISSING_SECONDS)

    def missing(self) -> int:
        """How many living connections had no last read at the last count; 0 before the first count."""
        return int(cast(bytes | None, self._redis.get(_MISSING)) or 0)

    def forget(self, connection_ids: Sequence[str]) -> None:
        """Delete the last reads of connections that were deleted."""
        if connection_ids:
            with self._redis.pipeline(transaction=False) as pipe:
                pipe.delete(*map(_key, connection_ids))
                pipe.zrem(_FAILING, *connection_ids)
                pipe.execute()


def _read(fields: dict[str, str]) -> LastRead:
    since = fields.get("since")
    return LastRead(
        int(fields["at"]), fields.get("reason"), fields.get("message"), None if since is None else int(since)
    )


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _key(connection_id: str) -> str:
    return f"last-read:{connection_id}"
