"""Subscriptions to the events of a calendar, with their handshake and lifecycle notifications.

https://learn.microsoft.com/graph/api/subscription-post-subscriptions
"""

from __future__ import annotations

import secrets
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import orjson

from providers.sandbox.accounts import Account
from providers.sandbox.calendars import Calendar
from providers.sandbox.calls import Call
from providers.sandbox.channels import Channel, Message, post
from providers.sandbox.exchange import Answer
from providers.sandbox.json_validation import shape_error
from providers.sandbox.microsoft import applications
from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.microsoft.mailbox import object_id, seen
from providers.sandbox.microsoft.pages import collection, entity

SUBSCRIPTION = dict.fromkeys(
    ("changeType", "notificationUrl", "lifecycleNotificationUrl", "resource", "expirationDateTime"), str
) | {"clientState": str}
MINUTE = 60
LONGEST, SHORTEST = 10_080 * MINUTE, 45 * MINUTE
MAX_STATE = 128
TENANT = "84bd8158-6d4d-4958-8b9f-9d6445542f95"
LIFECYCLE = ("reauthorizationRequired", "subscriptionRemoved", "missed")


def create(call: Call) -> Answer:
    """``POST /subscriptions``: returns after the address has answered the handshake."""
    body = posted(call)
    for name in ("changeType", "notificationUrl", "resource", "expirationDateTime"):
        if not body.get(name):
            raise refusal("InvalidRequest", f"{name} is missing.")
    if len(body.get("clientState") or "") > MAX_STATE:
        raise refusal("InvalidRequest", "clientState is too long.")
    account, calendar = watched(call, body["resource"])
    ends = end(call, body["expirationDateTime"])
    lifecycle = body.get("lifecycleNotificationUrl") or ""
    for address in dict.fromkeys((body["notificationUrl"], *([lifecycle] if lifecycle else []))):
        with call.world.unlocked():
            shake_hands(address)
    channel = Channel(
        str(uuid.uuid4()),
        account,
        calendar,
        body["notificationUrl"],
        body.get("clientState") or "",
        ends,
        changed,
        resource=body["resource"],
        application=application_of(call),
        lifecycle_address=lifecycle,
    )
    call.world.channels.open(channel)
    return entity(call.request, "subscriptions/$entity", described(channel), 201)


def list_all(call: Call) -> Answer:
    """``GET /subscriptions``"""
    mine = [each for each in call.world.channels.by_id.values() if is_own(call, each)]
    return collection(call.request, "subscriptions", [described(each) for each in mine if not gone(each)], "")


def get(call: Call, subscription: str) -> Answer:
    """``GET /subscriptions/{id}``"""
    return entity(call.request, "subscriptions/$entity", described(find(call, subscription)))


def update(call: Call, subscription: str) -> Answer:
    """``PATCH /subscriptions/{id}``: only its expiry can change."""
    channel = find(call, subscription)
    channel.expires_at = end(call, posted(call).get("expirationDateTime") or "")
    return entity(call.request, "subscriptions/$entity", described(channel))


def delete(call: Call, subscription: str) -> Answer:
    """``DELETE /subscriptions/{id}``"""
    call.world.channels.close(find(call, subscription))
    return Answer(204)


def reauthorize(call: Call, subscription: str) -> Answer:
    """``POST /subscriptions/{id}/reauthorize``"""
    find(call, subscription)
    return Answer(204)


def gone(channel: Channel) -> bool:
    return time.time() >= channel.expires_at


def application_of(call: Call) -> str:
    """The client id of the application that calls with its own permissions; empty for a user's token."""
    grant = call.access.grant
    return grant.client_id if grant.domain is not None else ""


def is_own(call: Call, channel: Channel) -> bool:
    """Whether this caller opened the subscription: a user, or an application in this tenant."""
    domain = call.access.grant.domain
    if domain is not None:
        return channel.application == domain.client_id and domain.has(channel.account)
    return not channel.application and channel.account is call.account


def find(call: Call, subscription: str) -> Channel:
    channel = call.world.channels.by_id.get(subscription)
    # A dropped subscription is unknown to Graph, without a notice.
    if channel is None or not is_own(call, channel) or channel.dropped or gone(channel):
        raise refusal("ResourceNotFound", "The object was not found.")
    return channel


def posted(call: Call) -> dict[str, Any]:
    try:
        body = call.json()
    except ValueError as error:
        raise refusal("BadRequest", "Unable to read JSON request payload.") from error
    if not isinstance(body, dict) or shape_error(body, SUBSCRIPTION):
        raise refusal("BadRequest", "Unable to read JSON request payload.")
    return body


def watched(call: Call, resource: str) -> tuple[Account, Calendar]:
    """The mailbox and the calendar of a resource.

    :raise Refused: for a calendar that this caller cannot watch
    """
    match [unquote(each) for each in resource.strip("/").split("/")]:
        case ["users", user, *path]:
            mailbox = replace(call, access=applications.for_user(call.world, call.access, user))
        case ["me", *path] if call.access.grant.domain is None:
            mailbox = call
        case _:
            raise refusal("InvalidRequest", "The resource cannot be subscribed to.")
    match path:
        case ["events"] | ["calendar", "events"]:
            calendar = seen(mailbox)
        case ["calendars", calendar_id, "events"]:
            calendar = seen(mailbox, calendar_id)
        case _:
            raise refusal("InvalidRequest", "The resource cannot be subscribed to.")
    if calendar.access_role != "owner":
        raise refusal("ErrorAccessDenied")
    return mailbox.account, calendar


def end(call: Call, text: str) -> float:
    """The expiry of a subscription for which ``text`` was requested."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise refusal("InvalidRequest", "expirationDateTime is not a time.") from error
    left = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - time.time()
    if left > LONGEST:
        raise refusal("ExtensionError", "Subscription expiration can only be 10080 minutes in the future.")
    return call.world.channels.ends(time.time() + max(left, SHORTEST))


def shake_hands(address: str) -> None:
    """Validate an address: it must answer with the token that it receives.

    :raise Refused: when it does not
    """
    token = (
        f"Validation: Testing client application reachability for subscription {secrets.token_hex(8)}+&<b>"
    )
    between = "&" if urlsplit(address).query else "?"
    try:
        if not urlsplit(address).hostname:
            raise OSError("no address")
        status, kind, echoed = post(
            f"{address}{between}validationToken={quote(token, safe='')}",
            Message({"Content-Type": "text/plain; charset=utf-8"}),
        )
    except OSError as error:
        status, kind, echoed = 0, type(error).__name__, b""
    if status != 200 or not kind.startswith("text/plain") or echoed != token.encode():
        raise refusal(
            "ValidationError", f"Subscription validation request failed. HTTP status code: {status}."
        )


def described(channel: Channel) -> dict[str, Any]:
    return {
        "id": channel.id,
        "resource": channel.resource,
        "applicationId": "24d3b144-21ae-4080-943f-7067b395b913",
        "changeType": "created,updated,deleted",
        "clientState": channel.secret,
        "notificationUrl": channel.address,
        "lifecycleNotificationUrl": channel.lifecycle_address or None,
        "expirationDateTime": when(channel.expires_at),
        "creatorId": object_id(channel.account),
        "latestSupportedTlsVersion": "v1_2",
    }


def when(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "0Z"


def changed(channel: Channel, event_id: str, kind: str) -> Message:
    """A notification of a change in an event."""
    path = f"Users/{object_id(channel.account)}@{TENANT}/Events/{event_id}"
    return sent(
        channel,
        {
            "id": secrets.token_urlsafe(10),
            "changeType": kind,
            "resource": path,
            "resourceData": {
                "@odata.type": "#Microsoft.Graph.Event",
                "@odata.id": path,
                "@odata.etag": f'W/"{secrets.token_urlsafe(24)}"',
                "id": event_id,
            },
        },
    )


def lifecycle(channel: Channel, event: str) -> Message:
    """A lifecycle notification of the subscription."""
    return sent(channel, {"lifecycleEvent": event}, channel.lifecycle_address)


def sent(channel: Channel, entry: dict[str, Any], address: str = "") -> Message:
    whole = {
        "subscriptionId": channel.id,
        "subscriptionExpirationDateTime": when(channel.expires_at),
        "clientState": channel.secret,
        "tenantId": TENANT,
        **entry,
    }
    return Message({"Content-Type": "application/json"}, orjson.dumps({"value": [whole]}), address)
