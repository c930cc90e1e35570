"""Where providers tell us of changes. They have no API key: the secret of the channel is the proof."""

from __future__ import annotations

from itertools import islice

import orjson
from flask import Blueprint, Response, request

from app.accounts.provider_notifications import handle
from app.http.errors import Invalid, NotFound
from providers.google import channels as google
from providers.microsoft import subscriptions as microsoft
from providers.names import ProviderName

blp = Blueprint("push", __name__)

# Google sends no body, Graph less than a kilobyte for each of the changes that it tells of at once.
LARGEST_BODY = 256 * 1024
# Many more than Graph sends, few enough to look up for somebody who proves nothing.
MOST_NOTIFICATIONS = 100
# Graph's own is a tenth of this.
LONGEST_TOKEN = 2048


@blp.before_request
def _limit_body() -> None:
    request.max_content_length = LARGEST_BODY


@blp.post("/push/google")
def google_push() -> Response:
    """A notification of a watch channel."""
    if not handle(ProviderName.GOOGLE, [google.notification(request.headers.get)]):
        raise NotFound("There is no such channel")
    return Response(status=204)


@blp.post("/push/microsoft")
def microsoft_push() -> Response:
    """Notifications of subscriptions, or the handshake of a new one."""
    token = request.args.get("validationToken")
    if token is not None:
        return _handshake(token)
    try:
        body = orjson.loads(request.get_data())
    except orjson.JSONDecodeError as error:
        raise Invalid("The request body is not valid JSON") from error
    told = list(islice(microsoft.notifications(body), MOST_NOTIFICATIONS + 1))
    if len(told) > MOST_NOTIFICATIONS:
        raise Invalid(f"More than {MOST_NOTIFICATIONS} notifications at once")
    if not handle(ProviderName.MICROSOFT, told):
        raise NotFound("There is no such channel")
    return Response(status=202)


def _handshake(token: str) -> Response:
    """Graph's question whether we are there; the token says nothing to anybody but who asks."""
    if not 0 < len(token) <= LONGEST_TOKEN:
        raise Invalid("validationToken is empty or too long")
    return Response(token, mimetype="text/plain", headers={"X-Content-Type-Options": "nosniff"})
