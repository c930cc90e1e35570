"""The directory of a Microsoft tenant: its people and its rooms.

https://learn.microsoft.com/en-us/graph/api/user-list
https://learn.microsoft.com/en-us/graph/api/place-list
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from providers.directory import Entry, Kind, entry, number_of_seats, parsed, text
from providers.errors import AccessDenied, InsufficientScopes, NotFound, ProviderError
from providers.http.calls import Bearer, Call, HttpReply
from providers.http.send import send
from providers.microsoft import errors
from providers.microsoft.batch import relative
from providers.microsoft.errors import PROVIDER

# Application permissions. User.ReadBasic.All is enough, but does not show which accounts are disabled.
_PERMISSION: Mapping[Kind, str] = {"user": "User.Read.All", "room": "Place.Read.All"}
_OPERATION: Mapping[Kind, str] = {"user": "directory.users.list", "room": "directory.places.list"}
_FIRST_PAGE: Mapping[Kind, str] = {
    "user": "/users?$select=id,displayName,mail,userPrincipalName,accountEnabled,userType&$top=999",
    "room": "/places/microsoft.graph.room?$top=100",
}


class MicrosoftDirectory:
    """A ``Directory`` by Microsoft Graph, as the application of the grant."""

    def __init__(self, graph: str) -> None:
        self._graph = graph.rstrip("/")

    def scopes(self, kind: Kind) -> tuple[str, ...]:
        """None: a token has all permissions that were consented to."""
        return ()

    def permission(self, kind: Kind) -> str:
        """The application permission that is missing."""
        return (
            f"The application may not read the directory: the tenant's administrator adds the application "
            f"permission {_PERMISSION[kind]} and grants admin consent"
        )

    def entries(self, kind: Kind, bearer: Bearer, *, deadline: float) -> Iterator[Entry]:
        """The people or the rooms of the tenant."""
        operation, path = _OPERATION[kind], _FIRST_PAGE[kind]
        seen: set[str] = set()
        while True:
            call = Call(PROVIDER, operation, "GET", self._graph + path)
            page = send(call, lambda reply: self._error(kind, reply), deadline=deadline, bearer=bearer)
            yield from parsed(page.get("value"), _person if kind == "user" else _room, PROVIDER, operation)
            link = page.get("@odata.nextLink")
            if link is None:
                return
            path = relative(str(link), self._graph, operation)
            if path in seen:
                raise ProviderError(f"The pages of {PROVIDER} do not end", operation=operation)
            seen.add(path)

    def _error(self, kind: Kind, reply: HttpReply) -> ProviderError:
        error = errors.error_for(reply)
        if isinstance(error, AccessDenied):
            # An application has no other rights here than its permissions.
            return InsufficientScopes(self.permission(kind), operation=reply.operation)
        if isinstance(error, NotFound):
            return ProviderError(f"{PROVIDER} refused the request", operation=reply.operation)
        return error


def _person(user: Mapping[str, Any]) -> Entry | None:
    """``{"id": "…", "displayName": "Ada", "mail": "ada@…", "accountEnabled": true, "userType": "Member"}``

    A room is in this list too, as a disabled account. ``mail`` is null without a mailbox.
    """
    if user.get("accountEnabled") is False or user.get("userType") == "Guest":
        return None
    email = text(user.get("mail")) or user.get("userPrincipalName")
    return entry("user", user.get("id"), email, user.get("displayName"))


def _room(room: Mapping[str, Any]) -> Entry | None:
    """``{"id": "…", "displayName": "Aurora", "emailAddress": "aurora@…", "building": "1", "capacity": 8}``"""
    found = entry("room", room.get("id"), room.get("emailAddress"), room.get("displayName"))
    return found and found._replace(
        building=text(room.get("building")) or None, capacity=number_of_seats(room.get("capacity"))
    )
