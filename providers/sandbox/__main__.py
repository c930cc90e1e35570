"""``python -m providers.sandbox --port 8090``."""

from __future__ import annotations

import argparse
from pathlib import Path

from providers.sandbox.server import serve


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(
        prog="python -m providers.sandbox", description="The providers, emulated"
    )
    parser.add_argument("--port", type=int, default=8090, help="0 takes a free one")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--ready-file", type=Path, help="gets the URL once the sandbox listens")
    options = parser.parse_args()
    serve(options.port, options.host, options.ready_file)


main()
