"""Sign-in over HTTP: each request carries an API key of Almanac, which the tools then use.

The server has no key of its own and stores none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from starlette.types import ASGIApp, Receive, Scope, Send

from almanac_client import Almanac, KeyRefused, RequestFailed

# Of the ASGI scope.
CLIENT = "almanac"

_caller: ContextVar[Almanac] = ContextVar("caller")


def caller() -> Almanac:
    """The client of the request that calls the tool."""
    return _caller.get()


async def as_caller(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Let ``caller`` return the client of this request, while it is handled."""
    assert ctx.request is not None
    token = _caller.set(ctx.request.scope[CLIENT])
    try:
        return await call_next(ctx)
    finally:
        _caller.reset(token)


class RequireKey:
    """Refuses requests without a valid key, and gives the others a client with their key."""

    def __init__(self, app: ASGIApp, client: Callable[[str], Almanac]) -> None:
        self._app = app
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        key = _bearer(scope)
        if not key:
            return await _refuse(send, 401, "Send an API key of Almanac: Authorization: Bearer <API_KEY>")
        client = self._client(key)
        try:
            await anyio.to_thread.run_sync(_check, client)
        except KeyRefused as error:
            return await _refuse(send, 401, str(error))
        except RequestFailed as error:
            return await _refuse(send, 503, str(error))
        return await self._app({**scope, CLIENT: client}, receive, send)


def _check(client: Almanac) -> None:
    """Ask Almanac whether the key is valid: any key may list users."""
    next(iter(client.users.list(limit=1)), None)


def _bearer(scope: Scope) -> str:
    headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
    scheme, _, key = headers.get(b"authorization", "").partition(" ")
    key = key.strip()
    return key if scheme.lower() == "bearer" and key.isascii() and key.isprintable() else ""


async def _refuse(send: Send, status: int, sentence: str) -> None:
    headers = [(b"content-type", b"application/json")]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"error": sentence}).encode()})
