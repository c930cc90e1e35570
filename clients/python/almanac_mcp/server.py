"""The server, over standard input and output or over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from starlette.types import ASGIApp

from almanac_client import Almanac
from almanac_client.client import KEY_VARIABLE
from almanac_mcp import sign_in
from almanac_mcp.allowed_requests import booking_client, read_only_client
from almanac_mcp.booking_tools import BookingTools
from almanac_mcp.tools import Tools

# Where it listens, over HTTP.
PORT = 8092
PATH = "/mcp"

INSTRUCTIONS = """\
Almanac knows when people are busy and free, from their Google and Microsoft calendars.
What could not be read is named first in every answer: such a person is unknown, never free.
"""
READING = "It changes nothing.\n"
BOOKING = """\
To book: find a slot, hold it, tell the person the time with its zone, the subject and who is invited, and
book the hold only after they have agreed.
"""


def make(almanac: Callable[[], Almanac], *, booking: bool = False) -> MCPServer:
    """The server with its tools; ``almanac`` returns the client of the caller."""
    server = MCPServer(
        "almanac", title="Almanac", instructions=INSTRUCTIONS + (BOOKING if booking else READING)
    )
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
    for tool in Tools(almanac).every():
        server.add_tool(tool, annotations=reads)
    if booking:
        books = ToolAnnotations(read_only_hint=False, destructive_hint=False)
        for tool in BookingTools(almanac).every():
            server.add_tool(tool, annotations=books)
    return server


def serve(url: str, *, booking: bool = False) -> None:
    """Serve an assistant until it closes the input.

    :raise ValueError: without a key in the environment, or for an invalid address
    """
    if not os.environ.get(KEY_VARIABLE):
        advice = "a read-only key is enough: almanac keys create assistant --read-only"
        raise ValueError(f"Set {KEY_VARIABLE}; {advice}")
    http_client = booking_client() if booking else read_only_client()
    with http_client, Almanac(url, http_client=http_client) as almanac:
        make(lambda: almanac, booking=booking).run("stdio")


def serve_http(url: str, host: str, port: int, *, booking: bool = False) -> None:
    """Serve assistants over HTTP until the process is stopped.

    :raise ValueError: for an invalid address
    """
    # Imported here: only this way of serving needs a web server.
    import uvicorn

    http_client = booking_client() if booking else read_only_client()
    # An invalid address is an error at the start, not with the first request.
    Almanac(url, "checked", http_client=http_client)
    with http_client:
        app = http_app(lambda key: Almanac(url, key, http_client=http_client), booking=booking)
        uvicorn.run(app, host=host, port=port, log_level="warning")


def http_app(client: Callable[[str], Almanac], *, booking: bool = False) -> ASGIApp:
    """The application at ``PATH``; ``client`` makes the client of a key."""
    server = make(sign_in.caller, booking=booking)
    server.middleware.append(sign_in.as_caller)
    # Every request needs a key, which the pages of a browser do not have: any name of this host may be used.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, transport_security=security
    )
    return sign_in.RequireKey(app, client)
