"""The server, over standard input and output."""

from __future__ import annotations

import argparse
import os
import sys

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from almanac_client import Almanac
from almanac_mcp.read_only import OnlyReads
from almanac_mcp.tools import Tools

URL = "http://127.0.0.1:8080"
KEY = "ALMANAC_API_KEY"
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
    key = os.environ.get(KEY)
    if not key:
        raise ValueError(f"Set {KEY}; a read-only key is enough: almanac keys create assistant --read-only")
    with OnlyReads() as session, Almanac(url, key, session=session) as almanac:
        make(almanac).run("stdio")


def main() -> None:
    """The command ``almanac-mcp``."""
    parser = argparse.ArgumentParser(description="Almanac for assistants, over standard input and output.")
    parser.add_argument("--url", default=URL, help=f"Where Almanac is (default: {URL}).")
    try:
        serve(parser.parse_args().url)
    except ValueError as error:
        sys.exit(str(error))
