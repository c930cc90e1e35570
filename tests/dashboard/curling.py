"""Parses the curl commands that pages show, as a shell and curl do, and sends them."""

from __future__ import annotations

import argparse
import shlex
from typing import Any
from urllib.parse import urlsplit

from werkzeug.test import TestResponse

from tests.conftest import Api


def parsed(line: str, key: str) -> argparse.Namespace:
    """The arguments of a command: ``url``, ``header`` and ``data``; an error for any others."""
    words = shlex.split(line.replace("\\\n", " ").replace("$KEY", key))
    assert words.pop(0) == "curl"
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-H", dest="header", action="append")
    parser.add_argument("-d", dest="data")
    parser.add_argument("url")
    return parser.parse_args(words)


def curl(api: Api, line: str, base: str = "http://localhost") -> TestResponse:
    """Send the request of a curl command to the application."""
    arguments = parsed(line, api.key)
    assert arguments.url.startswith(f"{base}/v1/"), arguments.url
    url = urlsplit(arguments.url)
    headers: dict[str, Any] = dict(each.split(": ", 1) for each in arguments.header)
    return api.client.open(
        url.path,
        method="GET" if arguments.data is None else "POST",
        query_string=url.query,
        headers=headers,
        data=arguments.data,
    )
