"""Whose account was connected: the e-mail address, from whatever the grant lets us ask."""

from __future__ import annotations

import base64
import logging
import re
import time
from collections.abc import Iterator

import orjson

from providers import refusals
from providers.base import Token
from providers.endpoints import GoogleEndpoints, MicrosoftEndpoints
from providers.errors import AuthorizationInvalid, ProviderError
from providers.http import Bearer, Call, Json, Reply, send

log = logging.getLogger(__name__)

WHO = "oauth.userinfo"

_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")
_LONGEST_ADDRESS = 320


def claims(id_token: object, audience: str) -> Json:
    """What an id token made for ``audience`` says; ``{}`` for any other, and for what is none.

    It comes straight from the token endpoint over TLS, so that nobody has to check its signature:
    https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation (step 6)
    """
    try:
        _, payload, _ = str(id_token).split(".")
        told = orjson.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except ValueError:
        return {}
    if not isinstance(told, dict):
        return {}
    made_for = told.get("aud")
    return told if audience in (made_for if isinstance(made_for, list) else [made_for]) else {}


def google_email(
    endpoints: GoogleEndpoints, access_token: Token, claimed: Json, *, deadline: float
) -> str | None:
    """The address of a Google account: claimed, by userinfo, or as the id of its main calendar."""
    if (email := _address(claimed, "email")) is not None:
        return email
    asked = _Asking("Google", access_token, deadline)
    for url, field in (
        (endpoints.userinfo, "email"),
        (f"{endpoints.api}/users/me/calendarList/primary", "id"),
    ):
        if (email := _address(asked.get(url), field)) is not None:
            return email
    return None


def microsoft_email(
    endpoints: MicrosoftEndpoints, access_token: Token, claimed: Json, *, deadline: float
) -> str | None:
    """The address of a Microsoft account: claimed, or from its profile, where ``mail`` may be null.

    https://learn.microsoft.com/en-us/entra/identity-platform/id-token-claims-reference
    """
    if (email := _address(claimed, "email", "preferred_username")) is not None:
        return email
    profile = f"{endpoints.graph}/me?$select=mail,userPrincipalName"
    return _address(_Asking("Microsoft", access_token, deadline).get(profile), "mail", "userPrincipalName")


class _Asking:
    """Asks with a token just granted. An address is good to have: without it the connection works too."""

    def __init__(self, provider: str, access_token: Token, deadline: float) -> None:
        self._provider = provider
        self._token = access_token
        # What is left has to do for storing the connection.
        now = time.monotonic()
        self._deadline = now + (deadline - now) / 2

    def get(self, url: str) -> Json:
        """The answer, or ``{}`` when the provider refuses or fails."""
        try:
            return send(
                Call(self._provider, WHO, "GET", url),
                _refusal,
                deadline=self._deadline,
                bearer=Bearer(_Fresh(self._token)),
            )
        except ProviderError as error:
            log.info("%s does not tell whose account it is: %s", self._provider, error.reason)
            return {}


class _Fresh:
    """A token just granted, which nothing renews."""

    def __init__(self, token: Token) -> None:
        self._token = token

    def access_token(self, *, deadline: float) -> Token:
        return self._token

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        raise AuthorizationInvalid("The provider rejects the token that it has just granted")


def _refusal(reply: Reply) -> ProviderError:
    return refusals.error(reply.provider, refusals.by_status(reply.status), operation=reply.operation)


def _address(told: Json, *fields: str) -> str | None:
    return next(_addresses(told, fields), None)


def _addresses(told: Json, fields: tuple[str, ...]) -> Iterator[str]:
    for field in fields:
        value = told.get(field)
        if isinstance(value, str) and len(value) <= _LONGEST_ADDRESS and _ADDRESS.fullmatch(value):
            yield value
