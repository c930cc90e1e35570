"""Routes for notifications from providers, authenticated by the secret of the channel, not by an API key."""

from __future__ import annotations

from itertools import islice

import orjson
from flask import Blueprint, Response, request

from app.accounts.provider_notifications import handle
from app.http.errors import ApiError, Invalid, NotFound
from app.http.routes import route_facts
from app.schemas.error_codes import Code
from providers.google import channels as google
from providers.microsoft import subscriptions as microsoft
from providers.names import ProviderName

blp = Blueprint("push", __name__)

# In bytes. Google sends no body; Graph sends less than a kilobyte for each change in a request.
MAX_BODY = 256 * 1024
# Many more than Graph sends, and few enough to look up for an unauthenticated client.
MAX_NOTIFICATIONS = 100
# Ten times the length of Graph's own.
MAX_TOKEN = 2048


@blp.before_request
def _limit_body() -> None:
    request.max_content_length = MAX_BODY


@blp.post("/push/google")
@route_facts(needs_key=False)
def google_push() -> Response:
    """A notification of a watch channel."""
    if not handle(ProviderName.GOOGLE, [google.notification(request.headers.get)]):
        raise NotFound("There is no such channel", Code.CHANNEL_NOT_FOUND)
    return Response(status=204)


@blp.post("/push/microsoft")
@route_facts(needs_key=False)
def microsoft_push() -> Response:
    """Notifications of subscriptions, or the handshake of a new one."""
    token = request.args.get("validationToken")
    if token is not None:
        return _handshake(token)
    try:
        body = orjson.loads(request.get_data())
    except orjson.JSONDecodeError as error:
        raise ApiError("The request body is not valid JSON", Code.MALFORMED_BODY) from error
    notifications = list(islice(microsoft.notifications(body), MAX_NOTIFICATIONS + 1))
    if len(notifications) > MAX_NOTIFICATIONS:
        raise Invalid(f"value must have at most {MAX_NOTIFICATIONS} elements", param="value")
    if not handle(ProviderName.MICROSOFT, notifications):
        raise NotFound("There is no such channel", Code.CHANNEL_NOT_FOUND)
    return Response(status=202)


def _handshake(token: str) -> Response:
    """Graph's validation request for a new subscription: the response repeats its token as plain text."""
    if not 0 < len(token) <= MAX_TOKEN:
        raise Invalid("validationToken is empty or too long", param="validationToken")
    return Response(token, mimetype="text/plain", headers={"X-Content-Type-Options": "nosniff"})
