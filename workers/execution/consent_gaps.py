"""The access that a person did not grant with their consent, in words for pages and answers of the API."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations

from providers.base import Failed
from providers.errors import Reason
from providers.scopes import Operation

# The permissions, in the order in which sentences name them. A delegated or custom grant may have any of
# them.
PERMISSIONS = {
    "the list of calendars": {Operation.LIST_CALENDARS},
    "free and busy times": {Operation.FREE_BUSY},
    "reading events": {Operation.LIST_EVENTS, Operation.GET_EVENT, Operation.WATCH_EVENTS},
    "changing events": {Operation.INSERT_EVENT, Operation.UPDATE_EVENT, Operation.DELETE_EVENT},
}


def missing_permissions(wanted: Collection[Operation], granted: Collection[Operation]) -> frozenset[str]:
    """The permissions that were requested and not granted."""
    left = set(wanted) - set(granted)
    return frozenset(part for part, operations in PERMISSIONS.items() if operations & left)


def join_names(missing: Collection[str]) -> str:
    """The permissions as a list in a sentence."""
    *most, last = [part for part in PERMISSIONS if part in missing]
    return f"{', '.join(most)} and {last}" if most else last


def _incomplete(missing: frozenset[str]) -> Failed:
    return Failed(
        Reason.AUTHORIZATION_INVALID,
        f"Not everything was granted: {join_names(missing)} is missing. The connection that works is kept; "
        "start again and leave every permission selected",
    )


# The failure for each set of missing permissions. The texts form a closed set, so a page can recognize them
# as Almanac's.
INCOMPLETE: Mapping[frozenset[str], Failed] = {
    missing: _incomplete(missing)
    for number in range(1, len(PERMISSIONS) + 1)
    for missing in map(frozenset, combinations(PERMISSIONS, number))
}
