"""Access tokens of a Microsoft tenant: an application reads its mailboxes.

https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow
"""

from __future__ import annotations

import base64
from dataclasses import replace
from urllib.parse import quote

import orjson

from providers.base import IssuedTokens, Token
from providers.definition import GrantCredential
from providers.errors import ClientRefused, ClockRefused, GrantRefused, ProviderError, ProviderNotConfigured
from providers.http.calls import HttpReply
from providers.microsoft import oauth
from providers.microsoft.oauth import MicrosoftEndpoints
from providers.oauth.client import Client
from providers.oauth.organization_grants import passing, refused, request
from providers.oauth.token_errors import error_codes

# Every application permission that the administrator has consented to.
_ALL_CONSENTED = "https://graph.microsoft.com/.default"

# https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes#aadsts-error-codes
_WRONG_CREDENTIALS = (
    "Microsoft does not accept the client secret: make a new one under Certificates & secrets, and enter its "
    "Value"
)
_EXPIRED_CERTIFICATE = (
    "The certificate of the application has expired: make a new one, upload it under Certificates & secrets, "
    "and enter it with its private key"
)
_APPLICATION = (
    "Microsoft knows no such application in this tenant: the tenant's administrator grants it admin consent, "
    "or corrects the client id"
)
_TENANT = "Microsoft knows no such tenant: enter the Directory (tenant) ID"
_CONSENT = "The tenant's administrator has to grant admin consent to the application"

_BY_CODE: dict[object, tuple[type[GrantRefused], str]] = {
    7000215: (ClientRefused, _WRONG_CREDENTIALS),
    7000222: (
        ClientRefused,
        "The client secret of the application has expired: make a new one under Certificates & secrets, and "
        "enter its Value",
    ),
    700027: (
        ClientRefused,
        "Microsoft does not know the certificate: upload it under Certificates & secrets of the application",
    ),
    700024: (ClockRefused, "Microsoft finds the time of this server wrong: correct its clock"),
    700016: (GrantRefused, _APPLICATION),
    7000229: (GrantRefused, _APPLICATION),
    7000112: (GrantRefused, "The application is disabled in this tenant: its administrator enables it"),
    90002: (GrantRefused, _TENANT),
    900023: (GrantRefused, _TENANT),
}
# The beginnings of permissions that lists of people and rooms need.
_OF_DIRECTORY = ("User.Read", "Place.Read")

_BY_WORD: dict[str, tuple[type[GrantRefused], str]] = {
    "invalid_client": (ClientRefused, _WRONG_CREDENTIALS),
    "unauthorized_client": (GrantRefused, _APPLICATION),
    "invalid_tenant": (GrantRefused, _TENANT),
    "access_denied": (GrantRefused, _CONSENT),
    "invalid_grant": (GrantRefused, _CONSENT),
}


class Applications:
    """Tokens of applications in tenants: the organization's own, or the one of this installation."""

    def __init__(self, endpoints: MicrosoftEndpoints, ours: Client) -> None:
        self._endpoints = endpoints
        self._ours = ours

    def token(self, grant: GrantCredential, subject: str | None, *, deadline: float) -> IssuedTokens:
        """An access token for every mailbox of the tenant."""
        client = self._ours
        if grant.client_id is not None and grant.secret is not None:
            client = Client(grant.client_id, Token(grant.secret))
        return token(self._endpoints, grant.tenant or "", client, deadline=deadline)


def token(endpoints: MicrosoftEndpoints, tenant: str, client: Client, *, deadline: float) -> IssuedTokens:
    """An access token for the mailboxes of a tenant; the grant's ``scope`` has the permissions, if known.

    :raise GrantRefused: when the administrator of the tenant has to act
    :raise ClientRefused: when that concerns the client id and secret
    :raise ProviderNotConfigured: without client id and secret
    :raise Unavailable: when the same call may succeed later
    """
    if not client.complete:
        raise ProviderNotConfigured("Microsoft is not configured: this installation is not registered there")
    url = replace(endpoints, tenant=quote(tenant, safe="")).token
    try:
        proof = oauth.authentication(client, url)
    except oauth.Expired:
        raise ClientRefused(_EXPIRED_CERTIFICATE) from None
    form = {"grant_type": "client_credentials", "scope": _ALL_CONSENTED} | proof
    grant = request("Microsoft", url, form, error_for, deadline)
    return replace(grant, scope=_permissions(grant.access_token))


def error_for(reply: HttpReply) -> ProviderError:
    """The exception for an error answer to client credentials."""
    word = (reply.body or {}).get("error")
    if error := passing(reply, word):
        return error
    known = next((_BY_CODE[code] for code in error_codes(reply) if code in _BY_CODE), None)
    if known is None and isinstance(word, str):
        known = _BY_WORD.get(word)
    if known is None:
        return refused(reply)
    kind, sentence = known
    return kind(sentence, operation=reply.operation)


def _permissions(issued: Token) -> tuple[str, ...] | None:
    """The application permissions in a token, None when it does not show those for calendars.

    The answer to the request has no ``scope``. Microsoft's tokens carry the permissions as ``roles``, but
    their format is not promised to applications, and what Exchange grants to an application by roles of its
    own is not among them. So an application with permissions for the directory alone may reach calendars:
    https://learn.microsoft.com/en-us/entra/identity-platform/access-tokens
    https://learn.microsoft.com/en-us/exchange/permissions-exo/application-rbac
    """
    parts = issued.reveal.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    roles = claims.get("roles") if isinstance(claims, dict) else None
    if not isinstance(roles, list):
        return None
    found = tuple(each for each in roles if isinstance(each, str))
    return None if found and all(each.startswith(_OF_DIRECTORY) for each in found) else found
