"""Both Python clients behind one face, so that a test is written once."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

from anyio.from_thread import BlockingPortal, start_blocking_portal

from almanac_client import Almanac, AsyncAlmanac
from almanac_client.resources import Resource

# The blocking client, and the asynchronous one under each library that it runs on.
KINDS = ("blocking", "asyncio", "trio")
END = object()


@contextmanager
def opened(kind: str, *args: Any, **named: Any) -> Iterator[Almanac]:
    """A client of a kind. The asynchronous ones wait for each coroutine, and so look like an ``Almanac``."""
    if kind == "blocking":
        with Almanac(*args, **named) as client:
            yield client
        return
    with start_blocking_portal(kind) as portal:
        asynchronous = AsyncAlmanac(*args, **named)
        try:
            yield cast(Almanac, Waiting(asynchronous, portal))
        finally:
            portal.call(asynchronous.aclose)


class Waiting:
    """An object whose coroutines are waited for."""

    def __init__(self, target: object, portal: BlockingPortal) -> None:
        self._target = target
        self._portal = portal

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if isinstance(found, Resource):
            return Waiting(found, self._portal)
        return self._waiting(found) if inspect.isroutine(found) else found

    def __repr__(self) -> str:
        return repr(self._target)

    def _waiting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            made = method(*args, **named)
            if isinstance(made, AsyncIterator):
                return self._items(made)

            async def wait() -> Any:
                return await made

            return self._portal.call(wait)

        return call

    def _items(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(items, END)

        while (item := self._portal.call(following)) is not END:
            yield item
