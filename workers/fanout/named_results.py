"""Reads the results of a Redis pipeline by name instead of by position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redis.client import Pipeline


class NamedResults:
    """Names for the results of some commands on a pipeline; the results of the others are not needed."""

    def __init__(self, pipe: Pipeline) -> None:
        self._pipe = pipe
        self._indexes: dict[str, int] = {}

    def name(self, name: str) -> None:
        """Name the result of the command that was queued last."""
        self._indexes[name] = len(self._pipe) - 1

    def by_name(self, results: list[Any]) -> Mapping[str, Any]:
        """The results that have a name, as returned by the pipeline's ``execute``."""
        return {name: results[index] for name, index in self._indexes.items()}
