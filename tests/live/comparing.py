"""Compares recorded answers with those of the sandbox: the same fields, of the same types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Recorded = dict[str, Any]

# Differences that are known and do no harm, by the call and the field: each with its reason.
ACCEPTED: dict[str, str] = {}


def differences(recorded: Iterable[Recorded], sandbox: Iterable[Recorded]) -> list[str]:
    """A sentence for each call or field in which the sandbox differs."""
    theirs = {each["name"]: each["body"] for each in recorded}
    ours = {each["name"]: each["body"] for each in sandbox}
    found = [f"{name}: the sandbox was not called so" for name in theirs.keys() - ours.keys()]
    found += [f"{name}: the provider was not called so" for name in ours.keys() - theirs.keys()]
    for name in theirs.keys() & ours.keys():
        found += [f"{name}: {each}" for each in _fields(theirs[name], ours[name])]
    return sorted(each for each in found if each not in ACCEPTED)


def _fields(theirs: Any, ours: Any) -> Iterator[str]:
    there, here = types(theirs), types(ours)
    for field in sorted(there.keys() | here.keys()):
        if field not in here:
            yield f"{field} is missing in the sandbox"
        elif field not in there:
            yield f"{field} is in the sandbox alone"
        # A field without a value tells no type.
        elif not (kinds := there[field] - {"null"}) or not (mine := here[field] - {"null"}):
            continue
        elif kinds != mine:
            yield f"{field} is {' or '.join(sorted(kinds))}, in the sandbox {' or '.join(sorted(mine))}"


def types(value: Any) -> dict[str, set[str]]:
    """The types of every field, by its path; entries of lists and of objects by ids are one field."""
    found: dict[str, set[str]] = {}
    for path, kind in _walk(value, ""):
        found.setdefault(path, set()).add(kind)
    return found


def _walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            yield path, "object"
            for name, each in value.items():
                yield from _walk(each, f"{path}.{'*' if _is_replaced(name) else name}")
        case list():
            yield path, "array"
            for each in value:
                yield from _walk(each, f"{path}[]")
        case bool():
            yield path, "boolean"
        case str():
            yield path, "string"
        case None:
            yield path, "null"
        case _:
            yield path, "number"


def _is_replaced(name: str) -> bool:
    return name.startswith(("text-", "person-", "https://"))
