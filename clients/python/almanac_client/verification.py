"""Verification of received webhooks, by the Standard Webhooks scheme."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from standardwebhooks.webhooks import Webhook as SignedWebhook
from standardwebhooks.webhooks import WebhookVerificationError

from almanac_client.errors import NotVerified
from almanac_client.records import WebhookEvent


def verify_webhook(payload: bytes | str, headers: Mapping[str, str], secret: str) -> WebhookEvent:
    """The event of a received webhook, after its signature was checked.

    ``payload`` is the body exactly as it was received, and ``secret`` the one that ``webhooks.create``
    returned.

    >>> event = verify_webhook(request.get_data(), request.headers, secret)

    :raise NotVerified: when the signature is not that of the secret, or is older than five minutes
    """
    signed = SignedWebhook(secret)
    try:
        signed.verify(payload, dict(headers), json_parse=False)
        return msgspec.json.decode(payload, type=WebhookEvent)
    # A malformed signature is a ValueError.
    except (WebhookVerificationError, msgspec.DecodeError, ValueError) as error:
        raise NotVerified(f"the webhook was not verified: {error}") from error
