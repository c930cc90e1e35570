"""Loads the Lua scripts (``store/*/scripts/*.lua``) and runs them in Redis by their digests.

Redis forgets scripts when it restarts. A script that it does not know is sent again with its text.
"""

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

# The texts of all scripts by digest.
_TEXTS: dict[str, str] = {}

_INCLUDE = re.compile(r"^-- include (\S+)$", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*--.*\n", re.MULTILINE)


class Script:
    """A Lua script, read from ``path`` below ``store/``. A line ``-- include PATH`` inserts another file."""

    def __init__(self, path: str) -> None:
        self.text = _load(path)
        self._sha = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()
        _TEXTS[self._sha] = self.text

    def run(self, redis: Redis, keys: Sequence[str], *arguments: Argument) -> Any:
        """Run the script in one round trip, in two if Redis does not know it.

        :raise redis.RedisError: when Redis is down or the script fails
        """
        try:
            return redis.evalsha(self._sha, len(keys), *keys, *arguments)
        except NoScriptError:
            return redis.eval(self.text, len(keys), *keys, *arguments)

    def queue(self, pipe: Pipeline, keys: Sequence[str], *arguments: Argument) -> None:
        """Queue the script on ``pipe``, with its text on a pipeline that is not of a :class:`ScriptRedis`."""
        known = isinstance(pipe, _ScriptPipeline)
        command = ("EVALSHA", self._sha) if known else ("EVAL", self.text)
        pipe.execute_command(*command, len(keys), *keys, *arguments)  # type: ignore[no-untyped-call]


class ScriptRedis(Redis):
    """A Redis client whose pipelines may contain scripts that Redis does not know."""

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        """A new pipeline."""
        return _ScriptPipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)


class _ScriptPipeline(Pipeline):
    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Execute all commands, and once more those scripts that Redis did not know.

        Those run after the other commands: a command must stay correct without the scripts before it.
        """
        commands = list(self.command_stack)
        results = super().execute(raise_on_error=False)
        unknown = [number for number, result in enumerate(results) if isinstance(result, NoScriptError)]
        for number in unknown:
            _, digest, *rest = commands[number][0]
            self.execute_command("EVAL", _TEXTS[digest], *rest)  # type: ignore[no-untyped-call]
        for number, result in zip(unknown, super().execute(raise_on_error=False), strict=True):
            results[number] = result
        if raise_on_error:
            self.raise_first_error(commands, results)  # type: ignore[no-untyped-call]
        return results


def json_argument(**arguments: Any) -> bytes:
    """Arguments as one JSON object, for ``cjson.decode``. None values are left out."""
    return orjson.dumps({name: value for name, value in arguments.items() if value is not None})


def _load(path: str) -> str:
    """The text of a script with its includes, without comments, which Redis need not receive."""
    text = (STORE / path).read_text(encoding="utf-8")
    return _COMMENT.sub("", _INCLUDE.sub(lambda found: _load(found[1]), text))
