"""Requests access tokens by the grant of an organization."""

from __future__ import annotations

from collections.abc import Collection

import orjson

from providers.base import IssuedTokens, Token
from providers.errors import GrantRefused
from providers.names import ProviderName
from providers.oauth.endpoints import Client
from providers.oauth.organization_grants import InvalidKey, ServiceAccountKey, google_token, microsoft_token
from workers.runtime import Runtime


def by_service_account(
    runtime: Runtime, key_file: str, subject: str, scope: Collection[str], *, deadline: float
) -> IssuedTokens:
    """An access token for the Google account ``subject``, by the JSON text of a key file.

    :raise ProviderError: as ``google_token``
    """
    try:
        key = ServiceAccountKey.parse(orjson.loads(key_file))
    except (InvalidKey, ValueError) as error:
        # It was checked before it was stored.
        raise GrantRefused("The key of the service account cannot be read: enter it again") from error
    endpoints = runtime.registrations.google_endpoints()
    return google_token(endpoints, key, subject, scope, deadline=deadline)


def by_application(
    runtime: Runtime, tenant: str, client_id: str | None, secret: str | None, *, deadline: float
) -> IssuedTokens:
    """An access token for the mailboxes of a tenant.

    Without ``client_id`` it is requested by the installation's registration.

    :raise ProviderError: as ``microsoft_token``
    """
    if client_id is None or secret is None:
        client = runtime.providers[ProviderName.MICROSOFT].oauth.client
    else:
        client = Client(client_id, Token(secret))
    return microsoft_token(runtime.registrations.microsoft_endpoints(), tenant, client, deadline=deadline)
