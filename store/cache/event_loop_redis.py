"""A Redis client with little overhead, for reads on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from hiredis import pack_command
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection

Values = list[bytes | None]

# Each carries one command at a time. With more readers than that, a reader waits for a free one.
CONNECTIONS = 8


class EventLoopRedis:
    """Connections that the tasks of one event loop share; each is opened by its first command."""

    def __init__(self, url: str, *, seconds: float) -> None:
        """``seconds`` is the time in which Redis has to answer."""
        # Without a time limit of their own for each step: ``mget`` has one for all of them.
        pool: ConnectionPool = ConnectionPool.from_url(url, socket_timeout=None, socket_connect_timeout=None)
        self._seconds = seconds
        self._idle: asyncio.LifoQueue[AbstractConnection] = asyncio.LifoQueue()
        for _ in range(CONNECTIONS):
            self._idle.put_nowait(pool.make_connection())  # type: ignore[no-untyped-call]

    async def mget(self, names: Sequence[str]) -> Values:
        """The values of ``names``, in order.

        :raise redis.RedisError: when Redis is down, or has closed the connection while it was idle
        :raise TimeoutError: when Redis does not answer in time
        """
        # The stub of pack_command accepts commands of one word only.
        packed = pack_command(("MGET", *names))  # type: ignore[arg-type]
        async with asyncio.timeout(self._seconds):
            connection = await self._idle.get()
            try:
                await connection.send_packed_command(packed, check_health=False)
                return cast(Values, await connection.read_response())
            except BaseException:
                # A reply that is still unread must not be taken for the reply to the next command.
                await connection.disconnect(nowait=True)
                raise
            finally:
                self._idle.put_nowait(connection)

    async def close(self) -> None:
        """Close the connections."""
        while not self._idle.empty():
            await self._idle.get_nowait().disconnect()
