"""Marks of event writes under way, which keep reads that overlap a write out of the cache.

A worker may be killed after the provider has received a write. Nothing then invalidates the cache. So a mark
is set before the provider is called. While it lasts, reads under the tags of the write get a generation that
is never stored (``BusyCache.begin_reads``), and what was cached before is kept no longer than the mark. It
ends when the outcome of the write is known and the cache invalidated, else shortly after the deadline.
"""

from __future__ import annotations

import logging
import secrets

from redis import Redis
from redis.exceptions import RedisError

from store.cache.busy_buckets import mark_key, readers_key
from store.cache.busy_cache import generation_argument
from store.cache.cache_tags import Tags
from store.lua import Script, json_argument

log = logging.getLogger(__name__)

# Seconds after the deadline of a write by which the provider has executed it, if it ever does.
MARGIN_SECONDS = 5.0

_MARK = Script("cache/scripts/mark_write.lua")
_UNMARK = Script("cache/scripts/unmark_write.lua")


class WriteMarks:
    """The marks of several writes to one mailbox do not end each other."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    def begin(self, tags: Tags, connection_id: str, seconds: float) -> str:
        """Mark the tags of a write that ends within ``seconds``; returns the name of the write.

        :raise redis.RedisError: when Redis is down; the provider must not be called then
        """
        write = secrets.token_hex(8)
        names = _unique(tags)
        arguments = generation_argument(
            mailboxes=len(dict.fromkeys(tags.mailboxes)),
            connections=[connection_id],
            write=write,
            milliseconds=int((max(0.0, seconds) + MARGIN_SECONDS) * 1000),
        )
        _MARK.run(self._redis, [*map(readers_key, names), *map(mark_key, names)], arguments)
        return write

    def end(self, tags: Tags, write: str) -> None:
        """End the mark of a write whose outcome is known, after the cache was invalidated."""
        try:
            _UNMARK.run(self._redis, [*map(mark_key, _unique(tags))], json_argument(write=write))
        except RedisError as error:
            log.warning("mark of a write not removed, it expires by itself: %s", type(error).__name__)


def _unique(tags: Tags) -> list[str]:
    """Each tag once, those of mailboxes first."""
    return [*dict.fromkeys(tags.mailboxes), *dict.fromkeys(tags.calendars)]
