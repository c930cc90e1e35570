"""Finds the operation of a call by its verb and path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from providers.sandbox.exchange import Answer

# Stands for one segment of a path, which is handed to the operation.
ANY = "{}"


@dataclass(frozen=True, slots=True)
class Route:
    """One operation: ``scopes`` are those of which the token needs one, ``calendar`` the index of its id.

    ``calendar`` is None where the path names none; ``primary`` says that it means the main one.
    """

    method: str
    path: tuple[str, ...]
    operation: str
    handle: Callable[..., Answer]
    scopes: frozenset[str]
    calendar: int | None = None
    primary: bool = False

    def match(self, path: list[str]) -> list[str] | None:
        """What stands at the open places of the path, or None if it is another."""
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
        """The operation and the open places of its path."""
        for route in self._by_shape.get((method, len(path)), ()):
            if (found := route.match(path)) is not None:
                return route, found
        return None


def route(method: str, path: str, operation: str, handle: Callable[..., Answer], **more: Any) -> Route:
    """A route from a path with ``{}`` in its open places."""
    parts = tuple(ANY if part == ANY else part for part in path.split("/") if part)
    return Route(method, parts, operation, handle, **more)
