"""The command ``almanac-mcp``."""

from __future__ import annotations

import argparse
import os
import sys

from almanac_client.client import URL_VARIABLE

URL = "http://127.0.0.1:8080"


def main() -> None:
    """Parse the arguments, then serve. A missing package or setting ends with one sentence."""
    parser = argparse.ArgumentParser(description="Almanac for assistants, over standard input and output.")
    default = os.environ.get(URL_VARIABLE) or URL
    parser.add_argument(
        "--url", default=default, help=f"URL of Almanac (default: ${URL_VARIABLE}, or {URL})."
    )
    url = parser.parse_args().url
    try:
        # Imported here, because it needs packages that only the extra installs.
        from almanac_mcp.server import serve
    except ModuleNotFoundError as error:
        sys.exit(f"{error.name} is missing. Install the extra: pip install 'almanac-client[mcp]'")
    try:
        serve(url)
    except ValueError as error:
        sys.exit(str(error))
