"""Redis clients with little overhead, for commands that every request sends, mostly reads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, cast

from hiredis import pack_command
from redis import Redis
from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection as AsyncConnection
from redis.connection import AbstractConnection
from redis.exceptions import ConnectionError, ResponseError

Values = list[bytes | None]


class FastRedis:
    """One open connection for each thread.

    The pool, retries and hooks of redis-py's client take three quarters of the time of a small read.
    """

    def __init__(self, redis: Redis) -> None:
        self._pool = redis.connection_pool
        self._own = threading.local()

    def mget(self, names: Sequence[str]) -> Values:
        """The values of ``names``, in order.

        :raise redis.RedisError: when Redis is down
        """
        (values,) = self.execute(("MGET", *names))
        return cast(Values, values)

    def execute(self, *commands: tuple[str | int, ...]) -> list[Any]:
        """Send commands in one round trip and return their replies.

        They may be sent twice, so a repetition must do no harm.

        :raise redis.RedisError: when Redis is down, or a command fails
        """
        connection = self._connection()
        try:
            return self._read(connection, commands)
        except ConnectionError:
            # Redis may have closed it while it was idle. After an error it reconnects by itself.
            return self._read(connection, commands)

    def _connection(self) -> AbstractConnection:
        kept: AbstractConnection | None = getattr(self._own, "connection", None)
        if kept is None:
            pool = self._pool
            kept = self._own.connection = pool.connection_class(**pool.connection_kwargs)
        return kept

    def _read(self, connection: AbstractConnection, commands: Sequence[tuple[str | int, ...]]) -> list[Any]:
        # The stub of pack_command accepts commands of one word only.
        packed = [pack_command(each) for each in commands]  # type: ignore[arg-type]
        connection.send_packed_command(packed, check_health=False)  # type: ignore[no-untyped-call]
        try:
            return [connection.read_response() for _ in commands]
        except ResponseError:
            # Replies that are still unread must not be taken for replies to the next commands.
            connection.disconnect()  # type: ignore[no-untyped-call]
            raise


# Each carries the commands of one request at a time. With more requests than that, one waits for a free one.
CONNECTIONS = 8


class EventLoopRedis:
    """Connections that the tasks of one event loop share; each is opened by its first command."""

    def __init__(self, url: str, *, seconds: float) -> None:
        """``seconds`` is the time in which Redis has to answer."""
        # Without a time limit of their own for each step: ``execute`` has one for all of them.
        pool: ConnectionPool = ConnectionPool.from_url(url, socket_timeout=None, socket_connect_timeout=None)
        self._seconds = seconds
        self._idle: asyncio.LifoQueue[AsyncConnection] = asyncio.LifoQueue()
        for _ in range(CONNECTIONS):
            self._idle.put_nowait(pool.make_connection())  # type: ignore[no-untyped-call]

    async def execute(self, *commands: tuple[str | int, ...]) -> list[Any]:
        """Send commands in one round trip and return their replies.

        :raise redis.RedisError: when Redis is down, or has closed the connection while it was idle
        :raise TimeoutError: when Redis does not answer in time
        """
        # The stub of pack_command accepts commands of one word only.
        packed = [pack_command(each) for each in commands]  # type: ignore[arg-type]
        async with asyncio.timeout(self._seconds):
            connection = await self._idle.get()
            try:
                await connection.send_packed_command(packed, check_health=False)
                return [await connection.read_response() for _ in commands]
            except BaseException:
                # A reply that is still unread must not be taken for the reply to another command.
                await connection.disconnect(nowait=True)
                raise
            finally:
                self._idle.put_nowait(connection)

    async def close(self) -> None:
        """Close the connections."""
        while not self._idle.empty():
            await self._idle.get_nowait().disconnect()
