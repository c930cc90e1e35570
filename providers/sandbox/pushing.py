"""The controls of channels: ``/sandbox/channels``, described in ``controls``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from providers.sandbox.channels import Channel
from providers.sandbox.microsoft import subscriptions
from providers.sandbox.seeds import Undescribed, read
from providers.sandbox.world import World

SHAPE = {**dict.fromkeys(("provider", "email", "event"), str), "seconds": float}


def respond(world: World, method: str, what: list[str], spec: Mapping[str, Any]) -> Any:
    """Handle a call; None when the path is unknown.

    :raise Undescribed: when the body is invalid
    """
    read(spec, SHAPE)
    match method, what:
        case "GET", []:
            return [described(each) for each in living(world)]
        case "POST", ["drop"]:
            return drop(chosen(world, spec))
        case "POST", ["lifecycle"]:
            return lifecycle(world, chosen(world, spec), spec.get("event"))
        case "POST", ["longest"]:
            world.channels.longest = spec.get("seconds")
            return {"seconds": world.channels.longest}
    return None


def living(world: World) -> list[Channel]:
    return [each for each in world.channels.by_id.values() if not subscriptions.gone(each)]


def chosen(world: World, spec: Mapping[str, Any]) -> list[Channel]:
    return [
        each
        for each in living(world)
        if spec.get("provider") in (None, each.account.provider)
        and (spec.get("email") is None or spec["email"].lower() == each.account.email.lower())
    ]


def drop(channels: list[Channel]) -> dict[str, int]:
    for each in channels:
        each.dropped = True
    return {"channels": len(channels)}


def lifecycle(world: World, channels: list[Channel], event: Any) -> dict[str, int]:
    if event not in subscriptions.LIFECYCLE:
        raise Undescribed(f"event is one of {', '.join(subscriptions.LIFECYCLE)}")
    subscribed = [each for each in channels if each.lifecycle_address]
    for each in subscribed:
        if event == "subscriptionRemoved":
            world.channels.close(each)
        world.channels.send(each, subscriptions.lifecycle(each, event))
    return {"channels": len(subscribed)}


def described(channel: Channel) -> dict[str, Any]:
    return {
        "id": channel.id,
        "provider": channel.account.provider,
        "email": channel.account.email,
        "calendarId": channel.calendar.id,
        "address": channel.address,
        "expiresAt": subscriptions.when(channel.expires_at),
        "sent": channel.sent,
        "dropped": channel.dropped,
    }
