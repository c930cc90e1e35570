"""The command ``almanac-mcp``."""

from __future__ import annotations

import argparse
import os
import sys

from almanac_client.client import URL_VARIABLE

URL = "http://127.0.0.1:8080"


def main() -> None:
    """Parse the arguments, then serve. A missing package or setting ends with one sentence."""
    parser = argparse.ArgumentParser(description="Almanac for assistants, by the Model Context Protocol.")
    default = os.environ.get(URL_VARIABLE) or URL
    parser.add_argument(
        "--url", default=default, help=f"URL of Almanac (default: ${URL_VARIABLE}, or {URL})."
    )
    parser.add_argument("--book", action="store_true", help="Add tools that hold and book.")
    parser.add_argument(
        "--http",
        action="store_true",
        help="Serve over HTTP; each request carries an API key. Without it: standard input and output.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="The address to listen on, with --http.")
    parser.add_argument("--port", type=int, default=8092, help="The port to listen on, with --http.")
    given = parser.parse_args()
    try:
        # Imported here, because it needs packages that only the extra installs.
        from almanac_mcp.server import serve, serve_http
    except ModuleNotFoundError as error:
        sys.exit(f"{error.name} is missing. Install the extra: pip install 'almanac-client[mcp]'")
    try:
        if given.http:
            serve_http(given.url, given.host, given.port, booking=given.book)
        else:
            serve(given.url, booking=given.book)
    except ValueError as error:
        sys.exit(str(error))
