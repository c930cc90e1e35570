"""Watch channels: ``events.watch`` and ``channels.stop``.

https://developers.google.com/workspace/calendar/api/guides/push
"""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any
from urllib.parse import quote, urlsplit

from providers.sandbox.calls import Call
from providers.sandbox.channels import Channel, Message
from providers.sandbox.exchange import Answer
from providers.sandbox.google.calendars import json_answer, seen
from providers.sandbox.google.errors import refusal
from providers.sandbox.json_validation import shape_error

WATCH = {
    **dict.fromkeys(("id", "type", "address", "token"), str),
    "params": {"ttl": str},
}
LIFETIME = 604_800
MAX_ID, MAX_TOKEN = 64, 256


def watch(call: Call, calendar_id: str) -> Answer:
    """``events.watch``: the first message, ``sync``, follows the answer."""
    calendar = seen(call, calendar_id)
    body = posted(call)
    if "#holiday@" in calendar.id:
        raise refusal("pushNotSupportedForRequestedResource")
    if calendar.access_role == "freeBusyReader":
        raise refusal("forbidden")
    channel_id, address, token = (body.get(name) or "" for name in ("id", "address", "token"))
    if not channel_id or not address:
        raise refusal("required")
    if body.get("type") not in ("web_hook", "webhook"):
        raise refusal("invalid", "Invalid channel type.")
    if len(channel_id) > MAX_ID or len(token) > MAX_TOKEN or not urlsplit(address).hostname:
        raise refusal("invalid")
    channels = call.world.channels
    if channel_id in channels.by_id:
        raise refusal("channelIdNotUnique", f"Channel id {channel_id} not unique")
    ttl = (body.get("params") or {}).get("ttl") or str(LIFETIME)
    if not ttl.isdecimal():
        raise refusal("invalid")
    name = quote(calendar_id, safe="")
    channel = Channel(
        channel_id,
        call.account,
        calendar,
        address,
        token,
        channels.ends(time.time() + min(int(ttl), LIFETIME)),
        lambda channel, _event, _kind: message(channel, "exists"),
        resource=f"https://www.googleapis.com/calendar/v3/calendars/{name}/events?alt=json",
    )
    channels.open(channel)
    channels.send(channel, message(channel, "sync"))
    return json_answer(described(channel))


def stop(call: Call) -> Answer:
    """``channels.stop``: only by the account that opened the channel."""
    body = posted(call)
    channel = call.world.channels.by_id.get(body.get("id") or "")
    if (
        channel is None
        or channel.account is not call.account
        or channel.resource_id != body.get("resourceId")
    ):
        raise refusal("notFound", f"Channel '{body.get('id')}' not found for project.")
    call.world.channels.close(channel)
    return Answer(204)


def posted(call: Call) -> dict[str, Any]:
    try:
        body = call.json()
    except ValueError as error:
        raise refusal("parseError") from error
    if not isinstance(body, dict) or shape_error(body, WATCH):
        raise refusal("badRequest")
    return body


def described(channel: Channel) -> dict[str, Any]:
    return {
        "kind": "api#channel",
        "id": channel.id,
        "resourceId": channel.resource_id,
        "resourceUri": channel.resource,
        **({"token": channel.secret} if channel.secret else {}),
        "expiration": str(int(channel.expires_at * 1000)),
    }


def message(channel: Channel, state: str) -> Message:
    """A notification: all data is in its headers."""
    # Message numbers increase, with gaps.
    channel.number += 1 if state == "sync" else 3
    headers = {
        "Content-Type": "application/json; utf-8",
        "X-Goog-Channel-ID": channel.id,
        "X-Goog-Channel-Expiration": formatdate(channel.expires_at, usegmt=True),
        "X-Goog-Resource-ID": channel.resource_id,
        "X-Goog-Resource-URI": channel.resource,
        "X-Goog-Resource-State": state,
        "X-Goog-Message-Number": str(channel.number),
    }
    if channel.secret:
        headers["X-Goog-Channel-Token"] = channel.secret
    return Message(headers)
