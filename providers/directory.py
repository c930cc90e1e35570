"""The directory of an organization: the people and rooms that its grant may list.

Nothing of it is stored. A provider that has one offers it as the part ``directory`` of its definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol, get_args

from providers.http.calls import Bearer, unreadable

Kind = Literal["user", "room"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Entry(NamedTuple):
    """A person or a room. ``id`` is the directory's; ``building`` and ``capacity`` are those of rooms."""

    kind: Kind
    id: str
    email: str
    name: str
    building: str | None = None
    capacity: int | None = None

    def matches(self, part: str) -> bool:
        """Whether the name or the address has this part, whatever the case."""
        wanted = part.casefold()
        return wanted in self.name.casefold() or wanted in self.email.casefold()


class Listing(NamedTuple):
    """The entries of one kind; ``more``: there are others, which are left out."""

    entries: tuple[Entry, ...]
    more: bool = False


class Directory(Protocol):
    """Lists the people and rooms of an organization."""

    def scopes(self, kind: Kind) -> tuple[str, ...]:
        """The scopes to request a token with; empty where a token has everything that was authorized."""
        ...

    def permission(self, kind: Kind) -> str:
        """A sentence about the scope or permission that the administrator adds."""
        ...

    def entries(self, kind: Kind, bearer: Bearer, *, deadline: float) -> Iterator[Entry]:
        """The entries, page by page, without suspended, disabled and guest accounts.

        :raise InsufficientScopes: when the grant does not allow this
        :raise AccessDenied: when the account that reads may not
        :raise ProviderError: for any other failure, also after some entries
        """
        ...


def parsed(
    records: object, parse: Callable[[Mapping[str, Any]], Entry | None], provider: str, operation: str
) -> Iterator[Entry]:
    """The entries of a page; ``parse`` leaves a record out by None.

    :raise ProviderError: when the records are no list of objects
    """
    if not isinstance(records, list):
        raise unreadable(provider, operation)
    for record in records:
        if not isinstance(record, dict):
            raise unreadable(provider, operation)
        if (found := parse(record)) is not None:
            yield found


def entry(kind: Kind, identifier: object, email: object, name: object) -> Entry | None:
    """An entry; None without an id or an address, by which nothing could be read."""
    if not text(identifier) or not text(email):
        return None
    return Entry(kind, text(identifier), text(email), text(name))


def number_of_seats(value: object) -> int | None:
    """The capacity of a room, None where the provider gives none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def text(value: object) -> str:
    """A text of a provider, ``""`` where it gives none."""
    return value if isinstance(value, str) else ""
