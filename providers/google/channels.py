"""Google's watch channels: ``events.watch`` and ``channels.stop``.

https://developers.google.com/workspace/calendar/api/guides/push
"""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

import orjson

from providers.base import Account, ChannelRequest, OpenChannel
from providers.errors import InvalidCalendarId, NotFound
from providers.google.calendars import NOT_SEGMENTS
from providers.google.errors import PROVIDER, error_for
from providers.google.oauth import GoogleEndpoints
from providers.google.scopes import SCOPES
from providers.http.calls import Bearer, Call, Json, unreadable
from providers.http.send import send
from providers.scopes import Operation

OPERATION = Operation.WATCH_EVENTS

# Google's default, in seconds; it documents no longer lifetime.
LIFETIME = 604_800


class GoogleChannels:
    """Watch channels on the events of a calendar."""

    def __init__(self, endpoints: GoogleEndpoints) -> None:
        self._api = endpoints.api.rstrip("/")

    def open(
        self, account: Account, calendar_id: str, wanted: ChannelRequest, *, deadline: float
    ) -> OpenChannel:
        """Open a watch channel; Google sends its first notification a moment later."""
        SCOPES.require(account.scopes, OPERATION)
        if calendar_id in NOT_SEGMENTS:
            raise InvalidCalendarId(f"{PROVIDER} cannot read this calendar id", operation=OPERATION)
        body = {
            "id": wanted.id,
            "type": "web_hook",
            "address": wanted.address,
            "token": wanted.secret.reveal,
            "params": {"ttl": str(LIFETIME)},
        }
        call = self._call(f"/calendars/{quote(calendar_id, safe='')}/events/watch", body, repeatable=False)
        return _opened(send(call, error_for, deadline=deadline, bearer=Bearer.of(account)))

    def extend(self, account: Account, channel_id: str, *, deadline: float) -> None:
        """Return None: Google's channels cannot be extended."""

    def close(self, account: Account, channel_id: str, resource: str, *, deadline: float) -> None:
        """Stop a watch channel."""
        call = self._call("/channels/stop", {"id": channel_id, "resourceId": resource}, answers=False)
        try:
            send(call, error_for, deadline=deadline, bearer=Bearer.of(account))
        except NotFound:
            return

    def _call(self, path: str, body: Json, *, repeatable: bool = True, answers: bool = True) -> Call:
        return Call(
            PROVIDER,
            OPERATION,
            "POST",
            self._api + path,
            orjson.dumps(body),
            repeatable=repeatable,
            answers=answers,
        )


def _opened(answer: Json) -> OpenChannel:
    try:
        ends = datetime.fromtimestamp(int(answer["expiration"]) / 1000, UTC)
    except (KeyError, TypeError, ValueError, OverflowError, OSError) as error:
        raise unreadable(PROVIDER, OPERATION) from error
    return OpenChannel(str(answer.get("id")), str(answer.get("resourceId")), ends, confirmed=False)
