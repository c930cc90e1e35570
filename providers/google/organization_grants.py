"""Access tokens of a Google Workspace domain: a service account impersonates its people.

https://developers.google.com/identity/protocols/oauth2/service-account
"""

from __future__ import annotations

import time
from collections.abc import Collection

import orjson
from joserfc import jwt
from joserfc.jwk import RSAKey

from providers.base import IssuedTokens
from providers.definition import GrantCredential
from providers.errors import ClockRefused, GrantRefused, ProviderError, ScopesRefused, SubjectRefused
from providers.google.oauth import GoogleEndpoints
from providers.google.service_accounts import InvalidKey, ServiceAccountKey
from providers.http.calls import HttpReply
from providers.oauth.organization_grants import passing, refused, request

_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"

# Seconds that an assertion is valid: the maximum.
_ASSERTION_LIFE = 3600

# https://developers.google.com/identity/protocols/oauth2/service-account#error-codes
_AUTHORIZE = (
    "Google has not authorized the service account for these scopes: the administrator adds its client id "
    "and the scopes under Domain-wide delegation in the Admin console"
)
_KEY = "Google does not accept the key of the service account: make a new key and enter it"
_CLOCK = "Google finds the time of this server wrong: correct its clock"
_SUBJECT = (
    "Google knows no active account with this address in the domain: check the address, and whether the "
    "account is suspended"
)

_BY_WORD = {
    "unauthorized_client": _AUTHORIZE,
    "access_denied": _AUTHORIZE,
    "invalid_scope": _AUTHORIZE,
    "admin_policy_enforced": "A policy of the Google Workspace domain blocks these scopes: the administrator "
    "allows them for the service account",
    "org_internal": "The Google Cloud project of the service account is internal to another organization: "
    "use a service account of your own organization",
    "disabled_client": "The service account is disabled: enable it in the Google Cloud console",
    "invalid_client": _KEY,
}

# The words about scopes that are not authorized.
_OF_SCOPES = frozenset({"unauthorized_client", "access_denied", "invalid_scope"})

# Google has one error word for the key, the clock and the account. Its description tells them apart.
_BY_DESCRIPTION: tuple[tuple[str, type[GrantRefused], str], ...] = (
    ("short-lived token", ClockRefused, _CLOCK),
    ("reasonable timeframe", ClockRefused, _CLOCK),
    ("Invalid JWT", GrantRefused, _KEY),
    ("account not found", GrantRefused, _KEY),
)


class ServiceAccounts:
    """Tokens of service accounts, which impersonate the accounts of their domains."""

    def __init__(self, endpoints: GoogleEndpoints) -> None:
        self._endpoints = endpoints

    def token(self, grant: GrantCredential, subject: str | None, *, deadline: float) -> IssuedTokens:
        """An access token for the account ``subject``; the secret is the JSON text of a key file."""
        try:
            key = ServiceAccountKey.parse(orjson.loads(grant.secret or ""))
        except (InvalidKey, ValueError) as error:
            # It was checked before it was stored.
            raise GrantRefused("The key of the service account cannot be read: enter it again") from error
        return token(self._endpoints, key, subject or "", grant.scope, deadline=deadline)


def token(
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
    return request("Google", endpoints.token, form, error_for, deadline)


def error_for(reply: HttpReply) -> ProviderError:
    """The exception for an error answer to an assertion."""
    body = reply.body or {}
    word, description = body.get("error"), body.get("error_description")
    if error := passing(reply, word):
        return error
    if isinstance(word, str) and word in _BY_WORD:
        kind = ScopesRefused if word in _OF_SCOPES else GrantRefused
        return kind(_BY_WORD[word], operation=reply.operation)
    if word == "invalid_grant":
        text = description if isinstance(description, str) else ""
        for part, kind, sentence in _BY_DESCRIPTION:
            if part in text:
                return kind(sentence, operation=reply.operation)
        # "Invalid email or User ID", "Not a valid email". For an unknown description, one account fails
        # and not the whole domain.
        return SubjectRefused(_SUBJECT, operation=reply.operation)
    return refused(reply)


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
    return jwt.encode(header, claims, RSAKey.import_key(key.private_key))
