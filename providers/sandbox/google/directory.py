"""The Directory API of a domain: people and rooms.

https://developers.google.com/workspace/admin/directory/reference/rest/v1/users/list
https://developers.google.com/workspace/admin/directory/reference/rest/v1/resources.calendars/list
"""

from __future__ import annotations

from typing import Any

from providers.sandbox.accounts import Account, Domain, Room, shown_name
from providers.sandbox.calls import Call
from providers.sandbox.consent import subject
from providers.sandbox.exchange import Answer
from providers.sandbox.google.calendars import json_answer
from providers.sandbox.google.errors import refusal
from providers.sandbox.google.pages import page

DEFAULT_PAGE, MAX_PAGE = 100, 500
NO_ADMINISTRATOR = "Not Authorized to access this resource/api"


def list_users(call: Call) -> Answer:
    """``users.list``"""
    domain = domain_of(call)
    if call.request.one("customer") != "my_customer":
        raise refusal("badRequest", "Bad Request")
    users = sorted(call.world.members(domain), key=lambda member: member.email)
    return listed(call, "admin#directory#users", "users", [user_resource(each) for each in users])


def list_rooms(call: Call) -> Answer:
    """``resources.calendars.list``"""
    rooms = [room_resource(each) for each in domain_of(call).rooms]
    return listed(call, "admin#directory#resources#calendars#calendarResourcesList", "items", rooms)


def domain_of(call: Call) -> Domain:
    """The domain of the token's account, which must be an administrator's."""
    domain = call.world.domain_of(call.account)
    if domain is None or not call.account.administrator:
        raise refusal("forbidden", NO_ADMINISTRATOR)
    return domain


def listed(call: Call, kind: str, name: str, resources: list[dict[str, Any]]) -> Answer:
    """A page; an empty one has no list."""
    items, token = page(call.request, resources, DEFAULT_PAGE, MAX_PAGE)
    document: dict[str, Any] = {"kind": kind, "etag": '"cP1h-2Qk"'}
    if items:
        document[name] = items
    return json_answer(document | ({"nextPageToken": token} if token else {}))


def user_resource(member: Account) -> dict[str, Any]:
    return {
        "kind": "admin#directory#user",
        "id": subject(member),
        "primaryEmail": member.email,
        "name": {"fullName": shown_name(member.email)},
        "isAdmin": bool(member.administrator),
        "suspended": member.suspended,
        "archived": False,
    }


def room_resource(room: Room) -> dict[str, Any]:
    resource = {
        "kind": "admin#directory#resources#calendars#CalendarResource",
        "resourceId": room.id,
        "resourceEmail": room.email,
        "resourceName": room.name,
        "generatedResourceName": room.name,
        "resourceCategory": room.category,
    }
    if room.building:
        resource["buildingId"] = room.building
    return resource | ({"capacity": room.capacity} if room.capacity else {})
