"""Methods that make an operation, on a client that performs it: blocking, or as a coroutine."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from functools import cache, wraps
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, get_args, get_type_hints, overload

from almanac_client.operations import Listing, Operation
from almanac_client.transport import AsyncTransport, Transport

P = ParamSpec("P")
T = TypeVar("T")
# The transport of a client, which decides what the methods of its resources return.
TransportT = TypeVar("TransportT", bound=Transport | AsyncTransport)


class Resource(Generic[TransportT]):
    """A part of the API, on a client."""

    def __init__(self, transport: TransportT) -> None:
        self.transport = transport


def _require_known(make: Callable[..., Any], names: Iterable[str]) -> None:
    """Refuse keywords that are no options of a method: Python does not check those of a ``TypedDict``.

    :raise TypeError: naming the unknown ones, and the options that there are
    """
    options = _options(make)
    if options is not None and (unknown := sorted(set(names) - options)):
        raise TypeError(
            f"{make.__qualname__}() got an unexpected keyword argument '{unknown[0]}'; "
            f"it takes {', '.join(sorted(options - {'self'}))}"
        )


@cache
def _options(make: Callable[..., Any]) -> frozenset[str] | None:
    parameters = inspect.signature(make).parameters
    open_ones = [each.name for each in parameters.values() if each.kind is each.VAR_KEYWORD]
    if not open_ones:
        return None
    (options,) = get_args(get_type_hints(make)[open_ones[0]])
    named = parameters.keys() - set(open_ones)
    return frozenset(named | options.__required_keys__ | options.__optional_keys__)


class operation(Generic[P, T]):
    """A method that returns its result; on an ``AsyncAlmanac``, a coroutine for its result."""

    def __init__(self, make: Callable[Concatenate[Any, P], Operation[T]]) -> None:
        self._make = make

    @overload
    def __get__(self, resource: None, owner: type) -> Callable[Concatenate[Any, P], Operation[T]]: ...
    @overload
    def __get__(self, resource: Resource[Transport], owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(
        self, resource: Resource[AsyncTransport], owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Callable[..., Any]:
        if resource is None:
            return self._make

        make = MethodType(self._make, resource)

        @wraps(make)
        def perform(*args: P.args, **named: P.kwargs) -> Any:
            _require_known(self._make, named)
            return resource.transport.run(make(*args, **named))

        return perform


class listing(Generic[P, T]):
    """A method that returns an iterator over pages; on an ``AsyncAlmanac``, an asynchronous iterator."""

    def __init__(self, make: Callable[Concatenate[Any, P], Listing[T]]) -> None:
        self._make = make

    @overload
    def __get__(self, resource: None, owner: type) -> Callable[Concatenate[Any, P], Listing[T]]: ...
    @overload
    def __get__(self, resource: Resource[Transport], owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, resource: Resource[AsyncTransport], owner: type) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, resource: Resource[Any] | None, owner: type) -> Callable[..., Any]:
        if resource is None:
            return self._make

        make = MethodType(self._make, resource)

        @wraps(make)
        def iterate(*args: P.args, **named: P.kwargs) -> Any:
            _require_known(self._make, named)
            return resource.transport.iterate(make(*args, **named))

        return iterate
