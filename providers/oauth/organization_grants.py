"""Access tokens from organization grants: Google service accounts, applications in Microsoft tenants.

https://developers.google.com/identity/protocols/oauth2/service-account
https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-client-creds-grant-flow
"""

from __future__ import annotations

import base64
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from joserfc import jwt
from joserfc.jwk import RSAKey

from providers.base import IssuedTokens, Token
from providers.errors import ProviderNotConfigured
from providers.http.send import FORM, Call, ErrorReader, send
from providers.oauth import private_keys
from providers.oauth.client import token_grant
from providers.oauth.endpoints import Client, GoogleEndpoints, MicrosoftEndpoints
from providers.oauth.organization_grant_errors import google_error, microsoft_error

OPERATION = "oauth.token.delegated"

_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"

# Seconds that an assertion is valid: the maximum.
_ASSERTION_LIFE = 3600

# Every application permission that the administrator has consented to.
_ALL_CONSENTED = "https://graph.microsoft.com/.default"


class InvalidKey(ValueError):
    """The text is not the key file of a Google service account; ``field`` is the field at fault, if any."""

    def __init__(self, sentence: str, field: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.field = field


@dataclass(frozen=True, slots=True)
class ServiceAccountKey:
    """The key of a Google service account; ``private_key`` is its RSA key, ready to sign."""

    client_email: str
    private_key: RSAKey = field(repr=False)
    private_key_id: str | None = None
    client_id: str | None = None

    @classmethod
    def parse(cls, key: Mapping[str, Any]) -> ServiceAccountKey:
        """Read the fields of a key file, which Google offers for download as JSON.

        https://developers.google.com/identity/protocols/oauth2/service-account#creatinganaccount

        :raise InvalidKey: when a field is missing or wrong
        """
        if key.get("type") != "service_account":
            raise InvalidKey("type is not service_account: upload the JSON key of a service account", "type")
        client_email, private_key = _text(key, "client_email"), _text(key, "private_key")
        if "@" not in client_email:
            raise InvalidKey("client_email is no e-mail address", "client_email")
        return cls(
            client_email,
            _rsa_key(private_key),
            _text(key, "private_key_id", required=False),
            _text(key, "client_id", required=False),
        )


def google_token(
    endpoints: GoogleEndpoints,
    key: ServiceAccountKey,
    subject: str,
    scopes: Collection[str],
    *,
    deadline: float,
) -> IssuedTokens:
    """An access token for the account ``subject``, by domain-wide delegation.

    :raise GrantRefused: when the administrator of the domain has to act
    :raise SubjectRefused: when the account does not exist or is suspended
    :raise Unavailable: when the same call may succeed later
    """
    # The key file names a token URL too. It is not used: the file comes from a tenant, and the assertion
    # would go to any server that it names.
    assertion = _assertion(key, subject, scopes, endpoints.token)
    form = {"grant_type": _JWT_BEARER, "assertion": assertion}
    return _request("Google", endpoints.token, form, google_error, deadline)


def microsoft_token(
    endpoints: MicrosoftEndpoints, tenant: str, client: Client, *, deadline: float
) -> IssuedTokens:
    """An access token for the mailboxes of a tenant; the grant's ``scope`` has the permissions, if known.

    :raise GrantRefused: when the administrator of the tenant has to act
    :raise ClientRefused: when that concerns the client id and secret
    :raise ProviderNotConfigured: without client id and secret
    :raise Unavailable: when the same call may succeed later
    """
    if not client.complete:
        raise ProviderNotConfigured("Microsoft is not configured: this installation is not registered there")
    form = {
        "grant_type": "client_credentials",
        "client_id": client.id,
        "client_secret": client.secret.reveal,
        "scope": _ALL_CONSENTED,
    }
    url = replace(endpoints, tenant=quote(tenant, safe="")).token
    grant = _request("Microsoft", url, form, microsoft_error, deadline)
    return replace(grant, scope=_permissions(grant.access_token))


def _request(
    title: str, url: str, form: Mapping[str, str], read_error: ErrorReader, deadline: float
) -> IssuedTokens:
    call = Call(title, OPERATION, "POST", url, urlencode(form).encode(), content_type=FORM)
    return token_grant(title, send(call, read_error, deadline=deadline), OPERATION)


def _assertion(key: ServiceAccountKey, subject: str, scopes: Collection[str], audience: str) -> str:
    """A signed JWT: https://developers.google.com/identity/protocols/oauth2/service-account#authorizingrequests"""
    now = int(time.time())
    header = {"alg": "RS256", "typ": "JWT"}
    if key.private_key_id is not None:
        header["kid"] = key.private_key_id
    claims = {
        "iss": key.client_email,
        "sub": subject,
        "scope": " ".join(sorted(scopes)),
        "aud": audience,
        "iat": now,
        "exp": now + _ASSERTION_LIFE,
    }
    return jwt.encode(header, claims, key.private_key)


def _permissions(token: Token) -> tuple[str, ...] | None:
    """The application permissions in a token, None when it does not show them.

    The answer to the request has no ``scope``. Microsoft's tokens carry the permissions as ``roles``, but
    their format is not promised to applications:
    https://learn.microsoft.com/en-us/entra/identity-platform/access-tokens
    """
    parts = token.reveal.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = orjson.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    roles = claims.get("roles") if isinstance(claims, dict) else None
    if not isinstance(roles, list):
        return None
    return tuple(each for each in roles if isinstance(each, str))


def _rsa_key(pem: str) -> RSAKey:
    try:
        return RSAKey.import_key(private_keys.load(pem))
    except private_keys.WrongSize:
        sizes = f"{private_keys.MIN_BITS} to {private_keys.MAX_BITS} bits"
        raise InvalidKey(f"private_key must have {sizes}", "private_key") from None
    except private_keys.NotAnRsaKey:
        raise InvalidKey("private_key is no private RSA key in PEM format", "private_key") from None


def _text(key: Mapping[str, Any], field: str, *, required: bool = True) -> Any:
    value = key.get(field)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value:
        raise InvalidKey(f"{field} is missing from the key file of the service account", field)
    return value
