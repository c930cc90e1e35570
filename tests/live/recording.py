"""Records what the providers answer, by the step of the suite that made the call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson
import pytest
import requests

from providers.http import transport

# Segments of paths that are no ids.
WORD = re.compile(r"[A-Za-z$]{2,20}")


@dataclass
class Exchange:
    """One answered call; ``body`` is None without JSON. ``path`` has ``{id}`` in the place of ids."""

    step: str
    method: str
    path: str
    status: int
    body: Any = field(repr=False)

    @property
    def name(self) -> str:
        return f"{self.step}: {self.method} {self.path} {self.status}"


class Recorder:
    """``exchanges`` has the first answer of each step to each call with each status.

    ``bases`` are the URLs of a provider, by what stands for each in the recorded paths.
    """

    def __init__(self, bases: Mapping[str, str]) -> None:
        self.step = ""
        self.exchanges: list[Exchange] = []
        self._bases = bases

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record every call that the adapters make inside the block."""
        exchange = transport.exchange

        def recorded(method: str, url: str, *arguments: Any, **more: Any) -> tuple[requests.Response, bytes]:
            response, content = exchange(method, url, *arguments, **more)
            self._keep(method, url, response.status_code, content)
            return response, content

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(transport, "exchange", recorded)
            yield

    def _keep(self, method: str, url: str, status: int, content: bytes) -> None:
        try:
            body = orjson.loads(content) if content else None
        except orjson.JSONDecodeError:
            body = None
        made = Exchange(self.step, method, self._path(url), status, body)
        if made.name not in {each.name for each in self.exchanges}:
            self.exchanges.append(made)

    def _path(self, url: str) -> str:
        for name, base in self._bases.items():
            if url.startswith(base):
                segments = urlsplit(url[len(base) :]).path.strip("/").split("/")
                return "/".join([name, *(_segment(unquote(each)) for each in segments if each)])
        return "{other}"


def _segment(text: str) -> str:
    return text if WORD.fullmatch(text) else "{id}"
