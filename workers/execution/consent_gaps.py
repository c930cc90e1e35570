"""The access that a person did not grant with their consent."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from providers.scopes import Operation


class Permission(StrEnum):
    """A part of the access to calendars, in the order in which sentences name them."""

    operations: frozenset[Operation]
    words: str

    def __new__(cls, value: str, words: str, *operations: Operation) -> Permission:
        """A permission with its name in sentences."""
        permission = str.__new__(cls, value)
        permission._value_ = value
        permission.words, permission.operations = words, frozenset(operations)
        return permission

    # A delegated or custom grant may have any of them.
    LIST = "list", "the list of calendars", Operation.LIST_CALENDARS
    TIMES = "times", "free and busy times", Operation.FREE_BUSY
    READ = "read", "reading events", Operation.LIST_EVENTS, Operation.GET_EVENT, Operation.WATCH_EVENTS
    CHANGE = (
        *("change", "changing events"),
        *(Operation.INSERT_EVENT, Operation.UPDATE_EVENT, Operation.DELETE_EVENT),
    )


def missing_permissions(
    wanted: Collection[Operation], granted: Collection[Operation]
) -> tuple[Permission, ...]:
    """The permissions that were requested and not granted."""
    left = set(wanted) - set(granted)
    return tuple(each for each in Permission if each.operations & left)


def join_names(missing: Collection[Permission]) -> str:
    """The permissions as a list in a sentence."""
    *most, last = [each.words for each in Permission if each in missing]
    return f"{', '.join(most)} and {last}" if most else last
