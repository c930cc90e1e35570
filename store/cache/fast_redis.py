"""The shortest way to Redis, for what every request reads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, cast

from hiredis import pack_command
from redis import Redis
from redis.connection import AbstractConnection
from redis.exceptions import ConnectionError, ResponseError

Values = list[bytes | None]


class FastRedis:
    """A connection for each thread, kept open.

    The client's own pool, retries and hooks take three quarters of the time of a small read.
    """

    def __init__(self, redis: Redis) -> None:
        self._pool = redis.connection_pool
        self._own = threading.local()

    def mget(self, names: Sequence[str]) -> Values:
        """The values of ``names``, in order.

        :raise redis.RedisError: when Redis is down
        """
        (values,) = self.ask(("MGET", *names))
        return cast(Values, values)

    def ask(self, *commands: tuple[str | int, ...]) -> list[Any]:
        """The replies to commands that do no harm when they are sent twice, in one round trip.

        :raise redis.RedisError: when Redis is down, or refuses one
        """
        connection = self._connection()
        try:
            return self._read(connection, commands)
        except ConnectionError:
            # It may have been closed while nobody asked. After an error it connects anew by itself.
            return self._read(connection, commands)

    def _connection(self) -> AbstractConnection:
        kept: AbstractConnection | None = getattr(self._own, "connection", None)
        if kept is None:
            pool = self._pool
            kept = self._own.connection = pool.connection_class(**pool.connection_kwargs)
        return kept

    def _read(self, connection: AbstractConnection, commands: Sequence[tuple[str | int, ...]]) -> list[Any]:
        # Its type knows commands of one word only.
        packed = [pack_command(each) for each in commands]  # type: ignore[arg-type]
        connection.send_packed_command(packed, check_health=False)  # type: ignore[no-untyped-call]
        try:
            return [connection.read_response() for _ in commands]
        except ResponseError:
            # The replies to the others must not be taken for those to the next question.
            connection.disconnect()  # type: ignore[no-untyped-call]
            raise
