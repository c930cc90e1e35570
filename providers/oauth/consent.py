"""The link with which a person consents: the authorization request of both providers.

https://developers.google.com/identity/protocols/oauth2/web-server#creatingclient
https://learn.microsoft.com/en-us/entra/identity-platform/v2-oauth2-auth-code-flow#request-an-authorization-code
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from providers.names import ProviderName
from providers.scopes import has_scope, level_scopes

# Makes Microsoft hand out a refresh token; Google goes by another parameter.
OFFLINE = "offline_access"

# The least that names an account, for callers who choose their scopes themselves.
NAMING = {
    ProviderName.GOOGLE: ("openid", "email"),
    ProviderName.MICROSOFT: ("openid", "email", "profile"),
}


@dataclass(frozen=True, slots=True)
class ConsentRequest:
    """What a person is asked for. ``verifier`` stays with us: the link carries its challenge alone.

    ``offline``: also while the person is away, by a refresh token. ``login_hint`` is the address of the
    account that is connected already, if there is one.
    """

    redirect_uri: str
    scopes: Sequence[str]
    state: str = field(repr=False)
    verifier: str = field(repr=False)
    offline: bool
    login_hint: str | None = None


def new_verifier() -> str:
    """A PKCE verifier: https://www.rfc-editor.org/rfc/rfc7636#section-4.1"""
    return secrets.token_urlsafe(48)


def scopes_to_request(provider: ProviderName, wanted: str | Sequence[str], *, offline: bool) -> list[str]:
    """The provider's scopes for a level of access, or those named and what tells the account's address.

    :raise ValueError: for a word that is no level
    """
    if isinstance(wanted, str):
        scopes = list(level_scopes(provider, wanted))
    else:
        scopes = list(dict.fromkeys(wanted))
        scopes += [each for each in NAMING[provider] if not has_scope(provider, scopes, each)]
    scopes = [each for each in scopes if each.lower() != OFFLINE]
    return [*scopes, OFFLINE] if offline and provider is ProviderName.MICROSOFT else scopes


def google_link(auth_url: str, client_id: str, asked: ConsentRequest) -> str:
    """Where Google asks a person.

    A refresh token comes with the first consent only, unless ``prompt=consent`` asks for another:
    https://developers.google.com/identity/protocols/oauth2/web-server#offline
    """
    return _link(
        auth_url,
        client_id,
        asked,
        access_type="offline" if asked.offline else "online",
        prompt="consent" if asked.offline else None,
    )


def microsoft_link(auth_url: str, client_id: str, asked: ConsentRequest) -> str:
    """Where Microsoft asks a person; one who is signed in to several accounts chooses among them."""
    return _link(
        auth_url,
        client_id,
        asked,
        response_mode="query",
        prompt=None if asked.login_hint else "select_account",
    )


def _link(auth_url: str, client_id: str, asked: ConsentRequest, **more: str | None) -> str:
    link: str = prepare_grant_uri(
        auth_url,
        client_id,
        "code",
        redirect_uri=asked.redirect_uri,
        scope=list(asked.scopes),
        state=asked.state,
        code_challenge=create_s256_code_challenge(asked.verifier),
        code_challenge_method="S256",
        login_hint=asked.login_hint,
        **more,
    )
    return link
