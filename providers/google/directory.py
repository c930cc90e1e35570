"""The directory of a Google Workspace domain: its people and its rooms.

https://developers.google.com/workspace/admin/directory/reference/rest/v1/users/list
https://developers.google.com/workspace/admin/directory/reference/rest/v1/resources.calendars/list
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from providers.directory import Entry, Kind, entry, number_of_seats, parsed, text
from providers.errors import (
    AccessDenied,
    InsufficientScopes,
    NotFound,
    ProviderError,
    ProviderNotConfigured,
)
from providers.google import errors
from providers.google.scopes import PREFIX
from providers.http.calls import Bearer, Call, HttpReply, Json, unreadable
from providers.http.send import send

PROVIDER = "Google Directory"

# The maximum of both lists.
PER_PAGE = 500

_SCOPE: Mapping[Kind, str] = {
    "user": PREFIX + "admin.directory.user.readonly",
    "room": PREFIX + "admin.directory.resource.calendar.readonly",
}
_OPERATION: Mapping[Kind, str] = {"user": "directory.users.list", "room": "directory.resources.list"}
_ADMINISTRATOR = (
    "Google does not let the subject of the grant read the directory: store the grant with the address of "
    "an administrator of the domain"
)
_NOT_ENABLED = (
    "The Admin SDK API is not enabled in the Google Cloud project of the service account: enable it there"
)
# "CONFERENCE_ROOM" and "CATEGORY_UNKNOWN" are the others: a car or a projector is no room.
_NO_ROOM = "OTHER"


class GoogleDirectory:
    """A ``Directory`` by the Admin SDK, as the subject of the grant."""

    def __init__(self, base: str) -> None:
        self._base = base

    def scopes(self, kind: Kind) -> tuple[str, ...]:
        """Google issues a token only if each of its scopes is authorized: so this one alone."""
        return (_SCOPE[kind],)

    def permission(self, kind: Kind) -> str:
        """The scope that is missing."""
        return (
            f"Google has not authorized the service account for the directory: the administrator adds the "
            f"scope {_SCOPE[kind]} under Domain-wide delegation in the Admin console"
        )

    def entries(self, kind: Kind, bearer: Bearer, *, deadline: float) -> Iterator[Entry]:
        """The people or the rooms of the whole Workspace account."""
        operation = _OPERATION[kind]
        for page in self._pages(kind, bearer, deadline):
            # A page without entries has no list, and its kind all the same.
            if not isinstance(page.get("kind"), str):
                raise unreadable(PROVIDER, operation)
            records = page.get("users" if kind == "user" else "items", [])
            yield from parsed(records, _person if kind == "user" else _room, PROVIDER, operation)

    def _pages(self, kind: Kind, bearer: Bearer, deadline: float) -> Iterator[Json]:
        operation = _OPERATION[kind]
        if kind == "user":
            path = "/users"
            query = {"customer": "my_customer", "orderBy": "email"}
            wanted = "users(id,primaryEmail,name/fullName,suspended,archived)"
        else:
            path, query = "/customer/my_customer/resources/calendars", {}
            wanted = (
                "items(resourceId,resourceEmail,resourceName,generatedResourceName,resourceCategory,"
                "buildingId,capacity)"
            )
        query |= {"maxResults": str(PER_PAGE), "fields": f"kind,nextPageToken,{wanted}"}
        seen: set[str] = set()
        while True:
            call = Call(PROVIDER, operation, "GET", f"{self._base}{path}?{urlencode(query)}")
            page = send(call, lambda reply: self._error(kind, reply), deadline=deadline, bearer=bearer)
            yield page
            token = page.get("nextPageToken")
            if token is None:
                return
            if not isinstance(token, str) or not token:
                raise unreadable(PROVIDER, operation)
            if token in seen:
                raise ProviderError(f"The pages of {PROVIDER} do not end", operation=operation)
            seen.add(token)
            query["pageToken"] = token

    def _error(self, kind: Kind, reply: HttpReply) -> ProviderError:
        error = errors.error_for(reply)
        match error:
            case InsufficientScopes():
                error.message = self.permission(kind)
            case AccessDenied():
                error.message = _ADMINISTRATOR
            case ProviderNotConfigured():
                error.message = _NOT_ENABLED
            case NotFound():
                return ProviderError(f"{PROVIDER} refused the request", operation=reply.operation)
        return error


def _person(user: Mapping[str, Any]) -> Entry | None:
    """``{"id": "1", "primaryEmail": "ada@…", "name": {"fullName": "Ada"}, "suspended": false, …}``"""
    if user.get("suspended") is True or user.get("archived") is True:
        return None
    name = user.get("name")
    full_name = name.get("fullName") if isinstance(name, dict) else None
    return entry("user", user.get("id"), user.get("primaryEmail"), full_name)


def _room(resource: Mapping[str, Any]) -> Entry | None:
    """``{"resourceId": "1", "resourceEmail": "…@resource.calendar.google.com", "capacity": 8, …}``"""
    if resource.get("resourceCategory") == _NO_ROOM:
        return None
    name = text(resource.get("resourceName")) or text(resource.get("generatedResourceName"))
    found = entry("room", resource.get("resourceId"), resource.get("resourceEmail"), name)
    return found and found._replace(
        building=text(resource.get("buildingId")) or None, capacity=number_of_seats(resource.get("capacity"))
    )
