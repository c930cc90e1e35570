"""Microsoft Graph's subscriptions to the events of a calendar.

https://learn.microsoft.com/en-us/graph/change-notifications-overview
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import orjson

from providers.base import PRIMARY, Account, ChannelRequest, OpenChannel
from providers.errors import NotFound
from providers.http.calls import Bearer, Call, Json, unreadable
from providers.http.send import send
from providers.microsoft.batch import correlation_header
from providers.microsoft.errors import PROVIDER, error_for
from providers.microsoft.mailbox import account_path
from providers.microsoft.notifications import BETWEEN
from providers.microsoft.oauth import MicrosoftEndpoints
from providers.microsoft.scopes import SCOPES
from providers.scopes import Operation
from providers.timestamps import instant, utc_text

OPERATION = Operation.WATCH_EVENTS

# The maximum in every version of Graph's documentation; newer ones allow 10 080 minutes.
LIFETIME = timedelta(minutes=4230)


class MicrosoftSubscriptions:
    """Subscriptions as channels."""

    def __init__(self, endpoints: MicrosoftEndpoints) -> None:
        self._subscriptions = f"{endpoints.graph.rstrip('/')}/subscriptions"

    def open(
        self, account: Account, calendar_id: str, wanted: ChannelRequest, *, deadline: float
    ) -> OpenChannel:
        """Subscribe; before it answers, Graph calls our address for its validation handshake."""
        SCOPES.require(account.scopes, OPERATION)
        body = {
            "changeType": "created,updated,deleted",
            "notificationUrl": wanted.address,
            "lifecycleNotificationUrl": wanted.address,
            "resource": _resource(account, calendar_id),
            "expirationDateTime": _end(),
            "clientState": f"{wanted.id}{BETWEEN}{wanted.secret.reveal}",
        }
        answer = self._send(account, "POST", "", body, repeatable=False, deadline=deadline)
        subscription = answer.get("id")
        if not isinstance(subscription, str):
            raise unreadable(PROVIDER, OPERATION)
        return OpenChannel(subscription, "", _expiry(answer), confirmed=True)

    def extend(self, account: Account, channel_id: str, *, deadline: float) -> datetime:
        """Renew a subscription, which also reauthorizes it."""
        body = {"expirationDateTime": _end()}
        return _expiry(self._send(account, "PATCH", _path(channel_id), body, deadline=deadline))

    def close(self, account: Account, channel_id: str, resource: str, *, deadline: float) -> None:
        """Delete a subscription."""
        try:
            self._send(account, "DELETE", _path(channel_id), answers=False, deadline=deadline)
        except NotFound:
            return

    def _send(
        self,
        account: Account,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        deadline: float,
        repeatable: bool = True,
        answers: bool = True,
    ) -> Json:
        content = None if body is None else orjson.dumps(body)
        bearer = Bearer.of(account)
        call = Call(
            PROVIDER,
            OPERATION,
            method,
            self._subscriptions + path,
            content,
            repeatable=repeatable,
            answers=answers,
            headers=correlation_header(bearer),
        )
        return send(call, error_for, deadline=deadline, bearer=bearer)


def _resource(account: Account, calendar_id: str) -> str:
    mailbox = account_path(account).removeprefix("/")
    return f"{mailbox}/events" if calendar_id == PRIMARY else f"{mailbox}/calendars/{calendar_id}/events"


def _path(subscription: str) -> str:
    return f"/{quote(subscription, safe='')}"


def _end() -> str:
    return utc_text(int((datetime.now(UTC) + LIFETIME).timestamp() * 1000))


def _expiry(answer: Json) -> datetime:
    try:
        return datetime.fromtimestamp(instant(answer["expirationDateTime"]) / 1000, UTC)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unreadable(PROVIDER, OPERATION) from error
