"""A line that a page shows to be pasted into a shell, taken apart as a shell and curl would, and sent."""

from __future__ import annotations

import argparse
import shlex
from typing import Any
from urllib.parse import urlsplit

from werkzeug.test import TestResponse

from tests.conftest import Api


def parsed(line: str, key: str) -> argparse.Namespace:
    """What curl is told: ``url``, ``header`` and ``data``; anything else would be a fault."""
    words = shlex.split(line.replace("\\\n", " ").replace("$KEY", key))
    assert words.pop(0) == "curl"
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-H", dest="header", action="append")
    parser.add_argument("-d", dest="data")
    parser.add_argument("url")
    return parser.parse_args(words)


def curl(api: Api, line: str, base: str = "http://localhost") -> TestResponse:
    """Send what the line says to the application."""
    told = parsed(line, api.key)
    assert told.url.startswith(f"{base}/v1/"), told.url
    where = urlsplit(told.url)
    headers: dict[str, Any] = dict(each.split(": ", 1) for each in told.header)
    return api.client.open(
        where.path,
        method="GET" if told.data is None else "POST",
        query_string=where.query,
        headers=headers,
        data=told.data,
    )
