"""msgraph-sdk, pointed at the sandbox."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx

from providers.sandbox.client import Sandbox, SandboxAccount

# The SDK's generated code uses deprecated parts of its own library.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kiota_abstractions.authentication import AuthenticationProvider
    from kiota_abstractions.base_request_configuration import RequestConfiguration
    from kiota_abstractions.request_information import RequestInformation
    from msgraph import GraphRequestAdapter, GraphServiceClient
    from msgraph.generated.models.date_time_time_zone import DateTimeTimeZone
    from msgraph.graph_request_adapter import options
    from msgraph_core import GraphClientFactory

    from tests.clients.graph_models import problems

Answer = TypeVar("Answer")


class Bearer(AuthenticationProvider):  # type: ignore[misc]
    """Adds one token to every request."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def authenticate_request(
        self, request: RequestInformation, additional_authentication_context: dict[str, Any] | None = None
    ) -> None:
        request.headers.add("Authorization", f"Bearer {self.token}")


class Graph:
    """The official client, and the last answer it received."""

    def __init__(self, url: str, token: str) -> None:
        self.http = GraphClientFactory.create_with_default_middleware(options=options)
        self.http.event_hooks["response"].append(self.heard)
        adapter = GraphRequestAdapter(Bearer(token), self.http)
        adapter.base_url = f"{url}/microsoft/v1.0"
        self.client = GraphServiceClient(request_adapter=adapter)
        self.last: httpx.Response

    async def heard(self, response: httpx.Response) -> None:
        await response.aread()
        self.last = response

    async def close(self) -> None:
        """Close the connections too, which the SDK's own transport leaves open."""
        await self.http.aclose()
        await self.http._transport.transport.aclose()

    async def read(self, call: Awaitable[Answer]) -> Answer:
        """The answer of a call, each of whose properties the SDK knows."""
        answer = await call
        assert not problems(answer, json.loads(self.last.content))
        return answer


def run(sandbox: Sandbox, account: SandboxAccount, use: Callable[[Graph], Awaitable[None]]) -> None:
    """Run a coroutine with the client of an account."""

    async def connected() -> None:
        made = Graph(sandbox.url, account.access_token)
        try:
            await use(made)
        finally:
            await made.close()

    asyncio.run(connected())


def with_query(query: Any, **headers: str) -> RequestConfiguration[Any]:
    made: RequestConfiguration[Any] = RequestConfiguration(query_parameters=query)
    for name, value in headers.items():
        made.headers.add(name, value)
    return made


def when(text: str, zone: str = "Pacific Standard Time") -> DateTimeTimeZone:
    return DateTimeTimeZone(date_time=text, time_zone=zone)
