"""The people and rooms of a tenant, as an application reads them.

https://learn.microsoft.com/graph/api/user-list
https://learn.microsoft.com/graph/api/place-list
"""

from __future__ import annotations

from typing import Any

from providers.sandbox.accounts import Account, Domain, Room, shown_name
from providers.sandbox.calls import Call
from providers.sandbox.exchange import Answer
from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.microsoft.mailbox import object_id
from providers.sandbox.microsoft.pages import chosen, collection, page, selected

USERS = "microsoft.users.list"
PLACES = "microsoft.places.list"


def list_users(call: Call) -> Answer:
    """``GET /users``: a room is in the list too, as a disabled account."""
    domain = domain_of(call)
    rooms = {room.email.lower(): room.name for room in domain.rooms}
    members, link = page(call.request, call.world.members(domain))
    names = chosen(call.request)
    users = [selected(user_resource(each, rooms.get(each.email.lower())), names) for each in members]
    return collection(call.request, "users", users, link)


def list_rooms(call: Call) -> Answer:
    """``GET /places/microsoft.graph.room``"""
    rooms, link = page(call.request, domain_of(call).rooms)
    return collection(call.request, "places/microsoft.graph.room", [room_resource(r) for r in rooms], link)


def domain_of(call: Call) -> Domain:
    """The tenant of an application; the tokens of users list nothing here."""
    domain = call.access.grant.domain
    if domain is None:
        raise refusal("Authorization_RequestDenied")
    return domain


def user_resource(member: Account, room: str | None) -> dict[str, Any]:
    return {
        "id": object_id(member),
        "displayName": shown_name(member.email) if room is None else room,
        "mail": member.email,
        "userPrincipalName": member.email,
        "accountEnabled": room is None and not member.suspended,
        "userType": "Guest" if member.guest else "Member",
    }


def room_resource(room: Room) -> dict[str, Any]:
    return {
        "id": room.id,
        "displayName": room.name,
        "emailAddress": room.email,
        "building": room.building or None,
        "capacity": room.capacity or None,
        "floorLabel": None,
    }
