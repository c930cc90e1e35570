"""Shown answers and real ones: `…` stands for anything, times and numbers for others of their kind."""

from __future__ import annotations

import json
import re
from typing import Any

MORE = "…"

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]…]', re.DOTALL)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(rf"\b\d{{1,2}} ({_MONTHS})\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?")


def shown_json(text: str) -> Any:
    """The value of JSON in which `…` stands for omitted parts."""
    open_: list[str] = []

    def spelled(token: re.Match[str]) -> str:
        if token[0] in "{[":
            open_.append(token[0])
        elif token[0] in "}]":
            open_.pop()
        elif token[0] == MORE:
            # Names are unique in an object, so one name stands for all omitted members.
            return f'"{MORE}": "{MORE}"' if open_ and open_[-1] == "{" and not _value(token) else f'"{MORE}"'
        return token[0]

    return json.loads(_TOKEN.sub(spelled, text))


def _value(token: re.Match[str]) -> bool:
    return token.string[: token.start()].rstrip().endswith(":")


def difference(shown: Any, real: Any, at: str = "answer") -> str | None:
    """Where a real answer is not of the shape that is shown; None when it is."""
    if shown == MORE:
        return None
    if isinstance(shown, dict) and isinstance(real, dict):
        return _of_objects(shown, real, at)
    if isinstance(shown, list) and isinstance(real, list):
        return _of_arrays(shown, real, at)
    return None if _alike(shown, real) else f"{at} is {real!r}, shown is {shown!r}"


def _of_objects(shown: dict[str, Any], real: dict[str, Any], at: str) -> str | None:
    missing = shown.keys() - real.keys() - {MORE}
    if missing:
        return f"{at} has no {', '.join(sorted(missing))}; it is {real}"
    if MORE not in shown and real.keys() - shown.keys():
        return f"{at} has {', '.join(sorted(real.keys() - shown.keys()))} too"
    each = (difference(shown[name], real[name], f"{at}.{name}") for name in shown if name != MORE)
    return next(filter(None, each), None)


def _of_arrays(shown: list[Any], real: list[Any], at: str) -> str | None:
    some = shown[:-1] if shown and shown[-1] == MORE else shown
    if len(real) < len(some) or (some is shown and len(real) != len(some)):
        return f"{at} has {len(real)} items, shown are {len(shown)}; it is {real}"
    pairs = enumerate(zip(some, real, strict=False))
    return next(filter(None, (difference(*pair, f"{at}[{n}]") for n, pair in pairs)), None)


def _alike(shown: Any, real: Any) -> bool:
    if isinstance(shown, str) and isinstance(real, str):
        if _TIME.fullmatch(shown):
            return _TIME.fullmatch(real) is not None and len(shown) == len(real)
        return like(shown, real)
    if type(shown) is int and type(real) is int:
        return True
    return type(shown) is type(real) and bool(shown == real)


def like(shown: str, real: str) -> bool:
    """Whether a text is the shown one, where `…` stands for any text and a day for another."""
    pattern = ".*".join(re.escape(part) for part in _DATE.sub("DATE", shown).split(MORE))
    return re.fullmatch(pattern, _DATE.sub("DATE", real), re.DOTALL) is not None
