"""Converts Python types and schemas of the document into one form, for comparison."""

from __future__ import annotations

import collections.abc
import inspect
import types
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from zoneinfo import ZoneInfo

import msgspec

PLAIN = {
    str: "string",
    datetime: "string",
    date: "string",
    time: "string",
    ZoneInfo: "string",
    int: "integer",
    bool: "boolean",
    types.NoneType: "null",
    dict: "object",
}
LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Iterator)

Form = frozenset[Any]


def of_hint(hint: Any) -> Form:
    """The form of a type annotation: the set of its alternatives."""
    origin = get_origin(hint)
    if origin is NotRequired:
        return of_hint(get_args(hint)[0])
    if origin in (Union, types.UnionType):
        return frozenset().union(*map(of_hint, get_args(hint)))
    if origin is Literal:
        return frozenset(("word", word) for word in get_args(hint))
    if origin in LISTS:
        return frozenset({("array", of_hint(get_args(hint)[0]))})
    if is_typeddict(hint) or (isinstance(hint, type) and issubclass(hint, msgspec.Struct)):
        return frozenset({("object", hint.__name__)})
    return frozenset({PLAIN[origin or hint]})


def of_schema(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Form:
    """The form of a schema."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if "enum" in schemas[name]:
            return frozenset(("word", word) for word in schemas[name]["enum"])
        if "properties" not in schemas[name]:
            return frozenset({"object"})
        return frozenset({("object", name)})
    if "const" in schema:
        return frozenset({("word", schema["const"])})
    if any_of := schema.get("anyOf") or schema.get("oneOf"):
        return frozenset().union(*(of_schema(each, schemas) for each in any_of))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return frozenset(
        ("array", of_schema(schema["items"], schemas)) if kind == "array" else kind for kind in kinds
    )


def takes(taken: Form, documented: Form) -> bool:
    """Whether a parameter accepts every documented type; it may accept more."""
    return all(any(_takes_one(mine, theirs) for mine in taken) for theirs in documented)


def _takes_one(mine: Any, theirs: Any) -> bool:
    if mine == theirs:
        return True
    both = isinstance(mine, tuple) and isinstance(theirs, tuple)
    return both and mine[0] == theirs[0] == "array" and takes(mine[1], theirs[1])


def parameters(method: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a method's parameters; a TypedDict in ``**`` is replaced by its fields."""
    hints = get_type_hints(method, include_extras=True)
    found: dict[str, Any] = {}
    for name in inspect.signature(method).parameters:
        if get_origin(hints[name]) is Unpack:
            found |= get_type_hints(get_args(hints[name])[0])
        else:
            found[name] = hints[name]
    return found
