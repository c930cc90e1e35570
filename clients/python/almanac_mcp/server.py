"""The server, over standard input and output."""

from __future__ import annotations

import os

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from almanac_client import Almanac
from almanac_client.client import KEY_VARIABLE
from almanac_mcp.read_only import read_only_client
from almanac_mcp.tools import Tools

INSTRUCTIONS = """\
Almanac knows when people are busy and free, from their Google and Microsoft calendars. It changes nothing.
What could not be read is named first in every answer: such a person is unknown, never free.
"""


def make(almanac: Almanac) -> MCPServer:
    """The server with its tools, on a read-only client."""
    server = MCPServer("almanac", title="Almanac", instructions=INSTRUCTIONS)
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True)
    for tool in Tools(almanac).every():
        server.add_tool(tool, annotations=reads)
    return server


def serve(url: str) -> None:
    """Serve an assistant until it closes the input.

    :raise ValueError: without a key in the environment, or for an invalid address
    """
    if not os.environ.get(KEY_VARIABLE):
        advice = "a read-only key is enough: almanac keys create assistant --read-only"
        raise ValueError(f"Set {KEY_VARIABLE}; {advice}")
    with read_only_client() as http_client, Almanac(url, http_client=http_client) as almanac:
        make(almanac).run("stdio")
