"""Loads the Lua scripts (``store/*/scripts/*.lua``) and runs them in Redis."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
from redis import Redis
from redis.client import Pipeline
from redis.exceptions import NoScriptError

STORE = Path(__file__).parent

Argument = str | bytes | int | float

_INCLUDE = re.compile(r"^-- include (\S+)$", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*--.*\n", re.MULTILINE)


class Script:
    """A Lua script, read from ``path`` below ``store/``. A line ``-- include PATH`` inserts another file."""

    def __init__(self, path: str) -> None:
        self.text = _load(path)
        self._sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()

    def run(self, redis: Redis, keys: Sequence[str], *arguments: Argument) -> Any:
        """Run the script in one round trip, in two if Redis has not cached it yet.

        :raise redis.RedisError: when Redis is down or the script fails
        """
        try:
            return redis.evalsha(self._sha, len(keys), *keys, *arguments)
        except NoScriptError:
            return redis.eval(self.text, len(keys), *keys, *arguments)

    def queue(self, pipe: Pipeline, keys: Sequence[str], *arguments: Argument) -> None:
        """Queue the script on ``pipe``, with its text: to ask for a cached script would take a round trip."""
        pipe.eval(self.text, len(keys), *keys, *arguments)


def named(**arguments: Any) -> bytes:
    """Arguments as one JSON object, for ``cjson.decode``. None values are left out."""
    return orjson.dumps({name: value for name, value in arguments.items() if value is not None})


def _load(path: str) -> str:
    """The text of a script with its includes, without comments, which Redis need not receive."""
    text = (STORE / path).read_text(encoding="utf-8")
    return _COMMENT.sub("", _INCLUDE.sub(lambda found: _load(found[1]), text))
