"""Finds the operation of a call by its verb and path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from providers.sandbox.exchange import Answer

# Placeholder for one segment of a path, passed to the operation.
ANY = "{}"


@dataclass(frozen=True, slots=True)
class Route:
    """One operation: the token needs one of ``scopes``; ``calendar`` is the index of the calendar id.

    ``calendar`` is None where the path has no calendar id; ``primary`` means the main calendar then.
    """

    method: str
    path: tuple[str, ...]
    operation: str
    handle: Callable[..., Answer]
    scopes: frozenset[str]
    calendar: int | None = None
    primary: bool = False

    def match(self, path: list[str]) -> list[str] | None:
        """The values of the placeholders, or None when the path does not match."""
        found = []
        for ours, theirs in zip(self.path, path, strict=True):
            if ours is ANY:
                found.append(theirs)
            elif ours.lower() != theirs.lower():
                return None
        return found


class Routes:
    """The operations of one provider."""

    def __init__(self, *routes: Route) -> None:
        self._by_shape: dict[tuple[str, int], list[Route]] = {}
        for route in routes:
            self._by_shape.setdefault((route.method, len(route.path)), []).append(route)

    def find(self, method: str, path: list[str]) -> tuple[Route, list[str]] | None:
        """The operation and the values of its placeholders."""
        for route in self._by_shape.get((method, len(path)), ()):
            if (found := route.match(path)) is not None:
                return route, found
        return None


def route(method: str, path: str, operation: str, handle: Callable[..., Answer], **more: Any) -> Route:
    """A route from a path with ``{}`` as placeholders."""
    parts = tuple(ANY if part == ANY else part for part in path.split("/") if part)
    return Route(method, parts, operation, handle, **more)
